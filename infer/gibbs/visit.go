package gibbs

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
)

// visit is one update of all chains of [Discrete], in plain numbers.
type visit struct {
	*discrete
	state   discreteState
	batch   infer.Batch
	tau     float64   // T/N
	x       []float64 // K points, one after another
	widths  []float64
	now     []float64 // the log density of each chain at x, a mean over the data
	gain    float64   // of the adaptation; 0 after the warm-up
	random  []*rand.Rand
	flips   []float64 // elements of each chain that changed
	accept  []float64 // sums over walks
	walking int       // elements that walk
	stale   bool      // now is that of other points
}

// Update draws all elements of each chain anew. A chain whose density is not finite is held.
func (t *discrete) Update(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	s, err := method.StateAs[discreteState](state, discreteName)
	if err != nil {
		return nil, infer.Info{}, err
	}
	temperature := t.Temperature(s.Step)
	if err := method.CheckValue(discreteName, fmt.Sprintf("Temperature at update %d", s.Step), temperature, 0,
		true); err != nil {
		return nil, infer.Info{}, err
	}
	next := discreteState{Params: infer.Params{Layout: s.Params.Layout}, Step: s.Step + 1, Streams: s.Streams}
	var info infer.Info
	err = torch.Do(func(scope *torch.Scope) error {
		v, e, err := t.begin(s, b, temperature)
		if err != nil {
			return err
		}
		info = infer.Info{LogPosterior: slices.Clone(v.now), GradNorm: make([]float64, len(v.now)), Diverged: e.Diverged(),
			Temperature: temperature}
		if info.Diverged == nil {
			for _, own := range t.sites {
				if err := v.site(own); err != nil {
					return err
				}
			}
		}
		info.Stats = v.stats()
		shape := torch.Must(torch.Shape(s.Params.Flat))
		if next.Params.Flat, err = like(s.Params.Flat, v.x, shape...); err != nil {
			return err
		}
		next.widths, err = like(s.Params.Flat, v.widths, shape...)
		scope.Keep(next.Params.Flat, next.widths)
		return err
	})
	if err != nil {
		return nil, infer.Info{}, fmt.Errorf("%s: %w", discreteName, err)
	}
	return next, info, nil
}

// begin looks at the points before the update.
func (t *discrete) begin(s discreteState, b infer.Batch, temperature float64) (v *visit, e infer.Evaluation, err error) {
	v = &visit{discrete: t, state: s, batch: b, tau: temperature / t.n}
	if err = t.look(b); err != nil {
		return nil, e, err
	}
	if v.x, err = s.Params.Values(); err != nil {
		return nil, e, err
	}
	if v.widths, err = torch.ToSlice[float64](s.widths); err != nil {
		return nil, e, err
	}
	if e, err = t.gradient.ValueAndGrad(s.Params, b, v.tau); err != nil {
		return nil, e, err
	}
	chains := s.Params.Chains()
	v.now, v.flips, v.accept = slices.Clone(e.Values), make([]float64, chains), make([]float64, chains)
	if s.Step < int64(t.Warmup) {
		v.gain = math.Pow(float64(s.Step+1), -0.6)
	}
	for k := range chains {
		v.random = append(v.random, random(s.Streams, k, s.Step))
	}
	return v, e, nil
}

// stats are those of the update.
func (v *visit) stats() map[string][]float64 {
	d := float64(v.state.Params.Layout.Dim())
	for _, s := range v.sites {
		if s.walks {
			v.walking += s.Size
		}
	}
	out := map[string][]float64{"flips": v.flips}
	for k := range v.flips {
		v.flips[k] /= d
		v.accept[k] /= float64(max(v.walking, 1))
	}
	if v.walking > 0 {
		out["walk_accept"] = v.accept
	}
	return out
}

// site draws a site: all elements at once where they are independent, else one after another.
func (v *visit) site(s *site) error {
	if s.apart {
		return v.together(s)
	}
	if err := v.refresh(); err != nil {
		return err
	}
	for i := s.Offset; i < s.Offset+s.Size; i++ {
		var err error
		if s.walks {
			err = v.walk(s, i)
		} else {
			err = v.exact(s, i)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// evaluate is a gradient at n points of each chain, which are made by set: row k·n + j is point j of chain k.
func (v *visit) evaluate(g infer.Gradient, n int, set func(x []float64, k, j int)) (infer.Evaluation, error) {
	d := v.state.Params.Layout.Dim()
	var rows []float64
	for k := range v.random {
		for j := range n {
			rows = append(rows, v.x[k*d:(k+1)*d]...)
			set(rows[len(rows)-d:], k, j)
		}
	}
	flat, err := like(v.state.Params.Flat, rows, int64(len(rows)/d), int64(d))
	if err != nil {
		return infer.Evaluation{}, err
	}
	return g.ValueAndGrad(infer.Params{Layout: v.state.Params.Layout, Flat: flat}, v.batch, v.tau)
}

// exact draws element i of all chains from all of its values.
func (v *visit) exact(s *site, i int) error {
	d, m := v.state.Params.Layout.Dim(), int(s.high-s.low)+1
	e, err := v.evaluate(v.gradient, m-1, func(x []float64, _, j int) { x[i] = s.other(x[i], j) })
	if err != nil {
		return err
	}
	for k, random := range v.random {
		x := &v.x[k*d+i]
		logp := append([]float64{v.now[k]}, e.Values[k*(m-1):(k+1)*(m-1)]...)
		if j := choose(random, logp, v.tau); j > 0 {
			*x, v.now[k] = s.other(*x, j-1), logp[j]
			v.flips[k]++
		}
	}
	return nil
}

// other is the j-th of the values other than x.
func (s *site) other(x float64, j int) float64 {
	if at := s.low + float64(j); at < x {
		return at
	}
	return s.low + float64(j) + 1
}

// choose draws an index with probabilities proportional to exp(logp/tau). What is not a number has probability 0.
func choose(random *rand.Rand, logp []float64, tau float64) int {
	top := math.Inf(-1)
	for _, l := range logp {
		if l > top {
			top = l
		}
	}
	sum, sums := 0.0, make([]float64, len(logp))
	for j, l := range logp {
		if w := math.Exp((l - top) / tau); w > 0 {
			sum += w
		}
		sums[j] = sum
	}
	u := random.Float64() * sum
	if j := slices.IndexFunc(sums, func(s float64) bool { return u < s }); j >= 0 {
		return j
	}
	return 0
}

// walk moves element i of all chains by one step of the walk.
func (v *visit) walk(s *site, i int) error {
	d := v.state.Params.Layout.Dim()
	to := make([]float64, len(v.random))
	for k, random := range v.random {
		to[k] = s.step(random, v.x[k*d+i], v.widths[k*d+i])
	}
	e, err := v.evaluate(v.gradient, 1, func(x []float64, k, _ int) { x[i] = s.within(to[k], x[i]) })
	if err != nil {
		return err
	}
	for k := range v.random {
		if v.accepts(s, k, i, to[k], v.now[k], e.Values[k]) {
			v.now[k] = e.Values[k]
		}
	}
	return nil
}

// step is where the walk goes from x.
func (s *site) step(random *rand.Rand, x, width float64) float64 {
	by := 1 + math.Floor(math.Expm1(width)*random.ExpFloat64())
	if random.Uint64()&1 == 0 {
		by = -by
	}
	return x + by
}

// within is where a walk to a point is evaluated: where it stands, if the point is outside the support.
func (s *site) within(to, x float64) float64 {
	if to < s.low || to > s.high {
		return x
	}
	return to
}

// accepts moves element i of chain k with the probability of the walk, and adapts its width.
func (v *visit) accepts(s *site, k, i int, to, old, logp float64) bool {
	d := v.state.Params.Layout.Dim()
	probability := math.Exp(min((logp-old)/v.tau, 0))
	if s.within(to, v.x[k*d+i]) != to || math.IsNaN(probability) {
		probability = 0
	}
	v.accept[k] += probability
	width := &v.widths[k*d+i]
	*width = min(max(*width+v.gain*(probability-0.44), 0), 30)
	if !(v.random[k].Float64() < probability) {
		return false
	}
	v.x[k*d+i] = to
	v.flips[k]++
	return true
}
