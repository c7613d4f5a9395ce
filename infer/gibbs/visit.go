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

// other is the j-th value of the support where x is the first, before all others.
func (s *site) other(x float64, j int) float64 {
	switch v := s.low + float64(j) - 1; {
	case j == 0:
		return x
	case v < x:
		return v
	default:
		return v + 1
	}
}

// visit is one update of all chains, in plain numbers.
type visit struct {
	*discrete
	move     *method.Move
	params   infer.Params
	d        int
	x        []float64 // K points, one after another
	widths   []float64
	now      []float64 // the log density of each chain at x, a mean over the data
	stale    bool      // now is that of other points
	gain     float64   // of the adaptation; 0 after the warm-up
	random   []*rand.Rand
	flips    []float64 // share of elements of each chain that changed
	accepted []float64 // mean over walks
	walks    int       // elements that walk
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
	s.widths = torch.Of(torch.Must(s.Params.Flat.T().ZerosLike(false)))
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
	v.flips, v.accepted = make([]float64, k), make([]float64, k)
	shape := s.Params.Flat.Shape()
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
		v.accepted[i] /= float64(max(v.walks, 1))
	}
	if v.walks > 0 {
		m.Info.Stats["walk_accept"] = v.accepted
	}
}

// site draws a site: all elements at once where they are independent, else one after another.
func (v *visit) site(s *site) {
	if s.walks {
		v.walks += s.Size
	}
	if s.apart {
		v.draw(s, s.Offset, s.Size)
		v.stale = true
		return
	}
	if v.stale {
		v.stale = false
		copy(v.now, v.evaluate(v.move.Evaluate, 1, func([]float64, int, int) {}).Values)
	}
	for i := range s.Size {
		v.draw(s, s.Offset+i, 1)
	}
}

// draw draws n elements of all chains anew: one of any site, or all of one whose elements are independent. Value 0 of m
// is where an element stands, whose log density is known for one alone.
func (v *visit) draw(s *site, from, n int) {
	m, known := 2, 1
	to := make([]float64, len(v.x))
	value := func(at, j int) float64 { return s.other(v.x[at], j) }
	if s.walks {
		v.propose(from, n, to)
		value = func(at, j int) float64 { return []float64{v.x[at], s.whole(to[at])}[j] }
	} else {
		m = int(s.high-s.low) + 1
	}
	f := v.move.Evaluate
	if s.apart {
		known, f = 0, func(p infer.Params) infer.Evaluation {
			return torch.Must(s.rows.ValueAndGrad(p, v.move.Batch, v.move.Tau))
		}
	}
	if m == known {
		return
	}
	e := v.evaluate(f, m-known, func(x []float64, k, j int) {
		for i := from; i < from+n; i++ {
			x[i] = value(k*v.d+i, j+known)
		}
	})
	logs, scale := e.Values, 1.0
	if s.apart {
		logs, scale = torch.Must(torch.ToSlice[float64](e.Aux["rows"])), 1/v.n
	}
	logp := make([]float64, m)
	for k := range v.now {
		for i := range n {
			logp[0] = v.now[k]
			for j := known; j < m; j++ {
				logp[j] = scale * logs[(k*(m-known)+j-known)*n+i]
			}
			at, j := k*v.d+from+i, 0
			if s.walks {
				j = v.accept(k, at, s.whole(to[at]) == to[at], (logp[1]-logp[0])/v.move.Tau)
			} else {
				j = v.choose(k, logp)
			}
			if j > 0 {
				v.x[at], v.now[k] = value(at, j), logp[j]
				v.flips[k]++
			}
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
	flat := torch.Must(like(v.params.Flat, rows, len(rows)/v.d, v.d))
	return f(infer.Params{Layout: v.params.Layout, Flat: flat})
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

// propose is where the walks of n elements of all chains are to go.
func (v *visit) propose(from, n int, to []float64) {
	for k, random := range v.random {
		for at := k*v.d + from; at < k*v.d+from+n; at++ {
			by := 1 + math.Floor(math.Expm1(v.widths[at])*random.ExpFloat64())
			if random.Uint64()&1 == 0 {
				by = -by
			}
			to[at] = v.x[at] + by
		}
	}
}

// accept says whether a walk goes (1) or stays (0), where log is the logarithm of the ratio of densities and inside
// says that it ends in the support, and adapts its width.
func (v *visit) accept(k, at int, inside bool, log float64) int {
	probability := math.Exp(min(log, 0))
	if !inside || math.IsNaN(probability) {
		probability = 0
	}
	v.accepted[k] += probability
	v.widths[at] = min(max(v.widths[at]+v.gain*(probability-0.44), 0), 30)
	if v.random[k].Float64() < probability {
		return 1
	}
	return 0
}
