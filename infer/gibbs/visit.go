package gibbs

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
)

// site is a discrete site.
type site struct {
	infer.Site
	low, high float64
	walks     bool           // by a random walk
	rows      infer.Gradient // whose aux has the log density of each row of the site's plate; nil where there is none
	apart     bool           // its elements are independent given the rest
}

// whole is the nearest value of the support.
func (s *site) whole(x float64) float64 { return min(max(math.Round(x), s.low), s.high) }

// other is the j-th of the values other than x.
func (s *site) other(x float64, j int) float64 {
	if v := s.low + float64(j); v < x {
		return v
	}
	return s.low + float64(j) + 1
}

// visit is one update of all chains, in plain numbers.
type visit struct {
	*discrete
	move   *method.Move
	params infer.Params
	d      int
	x      []float64 // K points, one after another
	widths []float64
	now    []float64 // the log density of each chain at x, a mean over the data
	stale  bool      // now is that of other points
	gain   float64   // of the adaptation; 0 after the warm-up
	random []*rand.Rand
	flips  []float64 // share of elements of each chain that changed
	accept []float64 // mean over walks
	walks  int       // elements that walk
}

// start makes the widths, and refuses a point that is not in the support.
func (t *discrete) start(s *discreteState, m *method.Move) {
	x, d := torch.Must(s.Params.Values()), s.Params.Layout.Dim()
	for _, own := range t.sites {
		for i, v := range x {
			if i%d >= own.Offset && i%d < own.Offset+own.Size {
				m.Require(v == own.whole(v), "Start", v, "site "+own.Name+" has whole numbers of its support")
			}
		}
	}
	s.widths = torch.Must(s.Params.Flat.ZerosLike(false))
}

// step is one update.
func (t *discrete) step(s, next *discreteState, m *method.Move) {
	v := &visit{discrete: t, move: m, params: s.Params, d: s.Params.Layout.Dim(), now: slices.Clone(m.Info.LogPosterior),
		x: torch.Must(s.Params.Values()), widths: torch.Must(torch.ToSlice[float64](s.widths))}
	t.look(m)
	if m.Index < t.warmup {
		v.gain = math.Pow(float64(m.Index+1), -0.6)
	}
	k := len(v.now)
	v.flips, v.accept = make([]float64, k), make([]float64, k)
	shape := torch.Must(torch.Shape(s.Params.Flat))
	seeds := append(slices.Clone(shape[:len(shape)-1]), 2)
	bits := torch.Must(torch.ToSlice[float64](m.Uniform(torch.Must(like(s.Params.Flat, make([]float64, 2*k), seeds...)))))
	for i := range k {
		v.random = append(v.random, rand.New(rand.NewPCG(math.Float64bits(bits[2*i]), math.Float64bits(bits[2*i+1]))))
	}
	for _, own := range t.sites {
		v.site(own)
	}
	next.Params.Flat = torch.Must(like(s.Params.Flat, v.x, shape...))
	next.widths = torch.Must(like(s.widths, v.widths, shape...))
	m.Info.LR, m.Info.TimeStep, m.Info.Stats = 0, 1, map[string][]float64{"flips": v.flips}
	for i := range k {
		v.flips[i] /= float64(v.d)
		v.accept[i] /= float64(max(v.walks, 1))
	}
	if v.walks > 0 {
		m.Info.Stats["walk_accept"] = v.accept
	}
}

// site draws a site: all elements at once where they are independent, else one after another.
func (v *visit) site(s *site) {
	if s.walks {
		v.walks += s.Size
	}
	if s.apart {
		v.together(s)
		return
	}
	if v.stale {
		copy(v.now, v.evaluate(v.move.Evaluate, 1, func([]float64, int, int) {}).Values)
	}
	for i := s.Offset; i < s.Offset+s.Size; i++ {
		if s.walks {
			v.walk(s, i)
		} else {
			v.exact(s, i)
		}
	}
}

// evaluate is f at n points of each chain, which set makes of the chain's: row k·n + j is point j of chain k.
func (v *visit) evaluate(f func(infer.Params) infer.Evaluation, n int,
	set func(x []float64, k, j int)) infer.Evaluation {
	var rows []float64
	for k := range v.now {
		for j := range n {
			rows = append(rows, v.x[k*v.d:(k+1)*v.d]...)
			set(rows[len(rows)-v.d:], k, j)
		}
	}
	flat := torch.Must(like(v.params.Flat, rows, int64(len(rows)/v.d), int64(v.d)))
	return f(infer.Params{Layout: v.params.Layout, Flat: flat})
}

// exact draws element i of all chains from all of its values.
func (v *visit) exact(s *site, i int) {
	m := int(s.high - s.low) // other values
	if m == 0 {
		return
	}
	e := v.evaluate(v.move.Evaluate, m, func(x []float64, _, j int) { x[i] = s.other(x[i], j) })
	for k := range v.now {
		logp := append([]float64{v.now[k]}, e.Values[k*m:(k+1)*m]...)
		if j := v.choose(k, logp); j > 0 {
			v.set(k, i, s.other(v.x[k*v.d+i], j-1))
			v.now[k] = logp[j]
		}
	}
}

// set gives element i of chain k another value.
func (v *visit) set(k, i int, to float64) {
	v.x[k*v.d+i] = to
	v.flips[k]++
}

// choose draws an index with probabilities proportional to exp(logp/tau). What is not a number has probability 0.
func (v *visit) choose(k int, logp []float64) int {
	top, sum := math.Inf(-1), 0.0
	for _, l := range logp {
		if l > top {
			top = l
		}
	}
	sums := make([]float64, len(logp))
	for j, l := range logp {
		if w := math.Exp((l - top) / v.move.Tau); w > 0 {
			sum += w
		}
		sums[j] = sum
	}
	u := v.random[k].Float64() * sum
	return max(slices.IndexFunc(sums, func(s float64) bool { return u < s }), 0)
}

// walk moves element i of all chains by one step of the walk.
func (v *visit) walk(s *site, i int) {
	to := make([]float64, len(v.x))
	v.propose(s, i, to)
	e := v.evaluate(v.move.Evaluate, 1, func(x []float64, k, _ int) { x[i] = s.whole(to[k*v.d+i]) })
	for k := range v.now {
		if v.accepts(s, k, i, to, v.now[k], e.Values[k]) {
			v.now[k] = e.Values[k]
		}
	}
}

// propose is where element i of all chains is to go.
func (v *visit) propose(s *site, i int, to []float64) {
	for k, random := range v.random {
		at := k*v.d + i
		by := 1 + math.Floor(math.Expm1(v.widths[at])*random.ExpFloat64())
		if random.Uint64()&1 == 0 {
			by = -by
		}
		to[at] = v.x[at] + by
	}
}

// accepts moves element i of chain k with the probability of the walk, and adapts its width.
func (v *visit) accepts(s *site, k, i int, to []float64, old, logp float64) bool {
	at := k*v.d + i
	probability := math.Exp(min((logp-old)/v.move.Tau, 0))
	if to[at] != s.whole(to[at]) || math.IsNaN(probability) { // outside of the support
		probability = 0
	}
	v.accept[k] += probability
	v.widths[at] = min(max(v.widths[at]+v.gain*(probability-0.44), 0), 30)
	if v.random[k].Float64() < probability {
		v.set(k, i, to[at])
		return true
	}
	return false
}
