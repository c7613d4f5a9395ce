package kernel

import "math"

// trade is a swap of two neighbours that is looked at.
type trade struct {
	ladder, pair int
	chains       [2]*chain
	moved        [2]position // the partner's point, at the chain's own rung
	tried        bool        // and not only looked at
}

// swap tries one round on every ladder. All chains stand still.
func (r *runner) swap() error {
	n := len(r.Ladder)
	tries := 1
	if r.RandomPairs {
		tries = n - 1
	}
	for range tries {
		var trades []trade
		for l, s := range r.swaps {
			first, step := s.Rounds%2, 2
			if r.RandomPairs {
				first, step = min(n-2, int(s.Stream.Float64()*float64(n-1))), n
			} else if r.adapts(s) { // neighbours that do not swap tell of the barrier too
				first, step = 0, 1
			}
			for i := first; i+1 < n; i += step {
				trades = append(trades, trade{ladder: l, pair: i, tried: r.RandomPairs || i%2 == s.Rounds%2,
					chains: [2]*chain{r.chains[l*n+i], r.chains[l*n+i+1]}})
			}
		}
		if err := r.exchanged(trades); err != nil {
			return err
		}
		for i := range trades {
			r.look(&trades[i])
		}
		for i := range trades {
			r.settle(&trades[i])
		}
	}
	for l, s := range r.swaps {
		s.travel(r.chains[l*n].Done, r.Warmup)
	}
	return r.moveLadders()
}

// travel counts the round trips after a round.
func (s *Swaps) travel(done, warmup int) {
	n := len(s.Replica)
	s.Rounds++
	low, high := s.Replica[0], s.Replica[n-1]
	sampling := done > warmup
	if sampling {
		if s.SamplingRounds == 0 { // a trip that began in the warm-up does not count
			clear(s.Heading)
		}
		s.SamplingRounds++
	}
	if s.Heading[low] == -1 {
		s.RoundTrips[low]++
		if sampling {
			s.SamplingTrips++
		}
	}
	s.Heading[low] = 1
	if s.Heading[high] == 1 {
		s.Heading[high] = -1
	}
}

// exchanged sets the points of each trade where the swap would take them: each with its density and gradient at the
// partner's rung. A density that depends on the rung evaluates all of them as one batch.
func (r *runner) exchanged(trades []trade) error {
	if !r.tempered {
		for i := range trades {
			t := &trades[i]
			t.moved = [2]position{t.chains[1].Point, t.chains[0].Point}
		}
		return nil
	}
	var points [][]float64
	var chains []*chain
	var at []float64
	for _, t := range trades {
		points = append(points, t.chains[1].Point.X, t.chains[0].Point.X)
		at = append(at, *r.coordinate(t.chains[0]), *r.coordinate(t.chains[1]))
		chains = append(chains, t.chains[0], t.chains[1])
	}
	moved, err := r.positions(points, at, chains)
	if err != nil {
		return err
	}
	for i := range trades {
		trades[i].moved = [2]position{moved[2*i], moved[2*i+1]}
	}
	return nil
}

// positions evaluates points at rungs as one batch. One that is not finite has a LogP that is not a number. The
// gradients are counted for the chains.
func (r *runner) positions(points [][]float64, at []float64, chains []*chain) ([]position, error) {
	rows, d := len(points), r.d
	x := make([]float64, 0, rows*d)
	for _, p := range points {
		x = append(x, p...)
	}
	logp, grad := make([]float64, rows), make([]float64, rows*d)
	if rows > 0 {
		if err := evaluateRows(r.density, x, at, logp, grad); err != nil {
			return nil, err
		}
	}
	out := make([]position, rows)
	for row := range out {
		g := grad[row*d : (row+1)*d : (row+1)*d]
		if !finite(logp[row]) || !allFinite(g) {
			logp[row] = math.NaN()
		}
		out[row] = position{X: x[row*d : (row+1)*d : (row+1)*d], Grad: g, LogP: logp[row]}
		chains[row].chainState.Gradients++
	}
	return out, nil
}

// exponent is the logarithm of the ratio that a trade is accepted with.
func (t *trade) exponent() float64 {
	a, b := t.chains[0], t.chains[1]
	if a.Point.LogP == t.moved[1].LogP && b.Point.LogP == t.moved[0].LogP { // it does not depend on the rung
		return (1/a.Temperature - 1/b.Temperature) * (b.Point.LogP - a.Point.LogP)
	}
	return (t.moved[0].LogP-a.Point.LogP)/a.Temperature + (t.moved[1].LogP-b.Point.LogP)/b.Temperature
}

// look takes note of a trade before any is settled: how likely it is refused, and the slopes.
func (r *runner) look(t *trade) {
	s := r.swaps[t.ladder]
	refused := 1.0
	if e := t.exponent(); !math.IsNaN(e) {
		refused = -math.Expm1(math.Min(0, e))
	}
	if r.adapts(s) {
		s.Looked[t.pair]++
		s.Refused[t.pair] += refused
	}
	if t.chains[0].Done <= r.Warmup {
		return
	}
	s.SamplingRefused[t.pair] += refused
	beta := [2]float64{}
	for side, c := range t.chains {
		if beta[side] = *r.coordinate(c); r.Path == "" {
			beta[side] = 1 / beta[side]
		}
	}
	for side, c := range t.chains {
		other := t.chains[1-side]
		slope := (t.moved[1-side].LogP/other.Temperature - c.Point.LogP/c.Temperature) / (beta[1-side] - beta[side])
		s.see(t.pair+side, slope, r.Path != "" && s.Ladder[len(s.Ladder)-1] == 0)
	}
}

// settle swaps the points or not. A point that is not finite at the other rung stays.
func (r *runner) settle(t *trade) {
	if !t.tried {
		return
	}
	s := r.swaps[t.ladder]
	sampling := t.chains[0].Done > r.Warmup
	accepted := math.Log(s.Stream.Float64()) < t.exponent()
	s.Tried[t.pair]++
	if sampling {
		s.SamplingTried[t.pair]++
	}
	if !accepted {
		return
	}
	s.Accepted[t.pair]++
	if sampling {
		s.SamplingAccepted[t.pair]++
	}
	for side, c := range t.chains { // a kept momentum stays: its law is the rung's own
		c.Point.X, c.Point.Grad, c.Point.LogP = t.moved[side].X, t.moved[side].Grad, t.moved[side].LogP
	}
	s.Replica[t.pair], s.Replica[t.pair+1] = s.Replica[t.pair+1], s.Replica[t.pair]
}
