package kernel

import (
	"math"
	"slices"
)

// Swaps counts the swaps between the temperatures of a ladder. Pair i are the temperatures i and i+1.
type Swaps struct {
	Stream   stream  // the random numbers of the swaps
	Rounds   int     // rounds of swaps; even pairs in even rounds, odd pairs in odd ones
	Tried    []int64 // [pairs]
	Accepted []int64 // [pairs]
	Replica  []int   // [temperatures] the replica that is now at each temperature; replica i began at temperature i
	// [replicas] 0 before it has been at the lowest temperature, then 1; -1 from the highest until it is back
	Heading    []int
	RoundTrips []int64 // [replicas] how often it came from the lowest to the highest and back
	// Sampling rounds only, after the warm-up: the same counts.
	SamplingTried, SamplingAccepted []int64
}

// Rate is the fraction of accepted swaps of a pair over the sampling phase.
func (s *Swaps) Rate(pair int) float64 {
	return float64(s.SamplingAccepted[pair]) / float64(s.SamplingTried[pair])
}

// newSwaps is a ladder of n temperatures before its first swap.
func newSwaps(seed, ladder uint64, n int) *Swaps {
	s := &Swaps{
		Stream: newStream(seed, math.MaxUint64-ladder), // no chain has this number
		Tried:  make([]int64, n-1), Accepted: make([]int64, n-1),
		SamplingTried: make([]int64, n-1), SamplingAccepted: make([]int64, n-1),
		Replica: make([]int, n), Heading: make([]int, n), RoundTrips: make([]int64, n),
	}
	for i := range n {
		s.Replica[i] = i
	}
	s.Heading[0] = 1
	return s
}

func (s Swaps) clone() Swaps {
	for _, v := range []*[]int64{&s.Tried, &s.Accepted, &s.RoundTrips, &s.SamplingTried, &s.SamplingAccepted} {
		*v = slices.Clone(*v)
	}
	s.Replica, s.Heading = slices.Clone(s.Replica), slices.Clone(s.Heading)
	return s
}

func (s *Swaps) restore(saved Swaps) error {
	n := len(s.Replica)
	seen := slices.Clone(saved.Replica)
	slices.Sort(seen)
	for i, e := range seen {
		if e != i {
			return misfit("its replicas are %v", saved.Replica)
		}
	}
	for _, v := range [][]int64{saved.Tried, saved.Accepted, saved.SamplingTried, saved.SamplingAccepted} {
		if len(v) != n-1 {
			return misfit("it counts %d pairs of temperatures, not %d", len(v), n-1)
		}
	}
	if len(seen) != n || len(saved.Heading) != n || len(saved.RoundTrips) != n {
		return misfit("it has %d replicas, not %d", len(seen), n)
	}
	*s = saved.clone()
	return nil
}

// swap tries one round on every ladder. All chains stand still.
func (r *runner) swap() error {
	n := len(r.Ladder)
	var pairs [][2]*chain
	for l, s := range r.swaps {
		for i := s.Rounds % 2; i+1 < n; i += 2 {
			pairs = append(pairs, [2]*chain{r.chains[l*n+i], r.chains[l*n+i+1]})
		}
	}
	moved, err := r.exchanged(pairs)
	if err != nil {
		return err
	}
	for _, s := range r.swaps {
		for i := s.Rounds % 2; i+1 < n; i += 2 {
			s.try(i, pairs[0], moved[0], r.Warmup)
			pairs, moved = pairs[1:], moved[1:]
		}
		s.Rounds++
		low, high := s.Replica[0], s.Replica[n-1]
		if s.Heading[low] == -1 {
			s.RoundTrips[low]++
		}
		s.Heading[low] = 1
		if s.Heading[high] == 1 {
			s.Heading[high] = -1
		}
	}
	return nil
}

// exchanged are the points of each pair where the swap would take them: each with its density and gradient at the
// partner's temperature. A density that depends on the temperature evaluates all of them as one batch.
func (r *runner) exchanged(pairs [][2]*chain) ([][2]position, error) {
	out := make([][2]position, len(pairs))
	if !r.tempered {
		for i, p := range pairs {
			out[i] = [2]position{p[1].Point, p[0].Point}
		}
		return out, nil
	}
	rows, d := 2*len(pairs), r.d
	x, t := make([]float64, 0, rows*d), make([]float64, 0, rows)
	for _, p := range pairs {
		x = append(append(x, p[1].Point.X...), p[0].Point.X...)
		t = append(t, p[0].Temperature, p[1].Temperature)
	}
	logp, grad := make([]float64, rows), make([]float64, rows*d)
	if rows > 0 {
		if err := evaluateRows(r.density, x, t, logp, grad); err != nil {
			return nil, err
		}
	}
	for i, p := range pairs {
		for side, c := range p {
			row := 2*i + side
			g := grad[row*d : (row+1)*d : (row+1)*d]
			if !finite(logp[row]) || !allFinite(g) {
				logp[row] = math.NaN()
			}
			out[i][side] = position{X: x[row*d : (row+1)*d : (row+1)*d], Grad: g, LogP: logp[row]}
			c.chainState.Gradients++
		}
	}
	return out, nil
}

// try swaps the points of pair i or not; moved are the points at each other's temperatures. A point that is not finite
// there stays.
func (s *Swaps) try(i int, pair [2]*chain, moved [2]position, warmup int) {
	a, b := pair[0], pair[1]
	var delta float64
	if a.Point.LogP == moved[1].LogP && b.Point.LogP == moved[0].LogP { // it does not depend on the temperature
		delta = (1/a.Temperature - 1/b.Temperature) * (b.Point.LogP - a.Point.LogP)
	} else {
		delta = (moved[0].LogP-a.Point.LogP)/a.Temperature + (moved[1].LogP-b.Point.LogP)/b.Temperature
	}
	accepted := math.Log(s.Stream.Float64()) < delta
	s.Tried[i]++
	if a.Done > warmup {
		s.SamplingTried[i]++
	}
	if !accepted {
		return
	}
	s.Accepted[i]++
	if a.Done > warmup {
		s.SamplingAccepted[i]++
	}
	for side, c := range pair { // a kept momentum stays: its law is the temperature's own
		c.Point.X, c.Point.Grad, c.Point.LogP = moved[side].X, moved[side].Grad, moved[side].LogP
	}
	s.Replica[i], s.Replica[i+1] = s.Replica[i+1], s.Replica[i]
}
