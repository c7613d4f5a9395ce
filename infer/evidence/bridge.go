package evidence

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/path"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// BridgeOptions are the options of [Bridge]. The zero value is fine.
type BridgeOptions struct {
	Proposals int    // draws from the proposal; default as many as posterior draws are used
	Seed      uint64 // of the proposals
	// Unnormalized estimates the integral of the density of a target as it is, where the target does not say that its
	// prior is normalized.
	Unnormalized bool
}

// Bridge estimates the log evidence from draws of the posterior by bridge sampling (Meng and Wong 1996). posterior are
// draws of any sampler: Unconstrained of an [infer.Result], or the named ones of a compiled model, of [infer.Sample],
// which it maps back. Draws that no run of Kelvin has made it takes for unconstrained. A normal law g, or where that
// fits better a mixture of them, is fitted to the first half of each chain, drawn from N₂ times, and bridged to the
// second halves, of N₁ draws, by the optimal function of Meng and Wong, which is the fixed point of
//
//	Z = (1/N₂) Σ_g p/(s₁p + s₂Zg) / ((1/N₁) Σ_p g/(s₁p + s₂Zg)),  s₁ = n₁/(n₁+N₂), s₂ = 1 − s₁
//
// with p the density without its normalizer and n₁ the effective size of the second halves. The standard error is the
// relative error of Frühwirth-Schnatter (2004), which the R package bridgesampling reports too (Gronau et al. 2020):
//
//	SE² = Var_g(f₁)/(N₂ E_g(f₁)²) + Var_p(f₂)/(n E_p(f₂)²),  f₁ = p/(s₁p + s₂Zg), f₂ = g/(s₁p + s₂Zg)
//
// with n the effective size of f₂. It knows of the posterior what the draws know: of a mode that they have not found,
// nothing.
func Bridge(program infer.Program, posterior *draws.Draws, o BridgeOptions) (*Result, error) {
	const what = "evidence.Bridge"
	if program == nil || posterior == nil {
		return nil, fmt.Errorf("%s: the program or the draws are nil: %w", what, infer.ErrConfig)
	}
	if o.Proposals < 0 || o.Proposals > 1<<24 {
		return nil, &infer.FieldError{Type: "evidence.BridgeOptions", Field: "Proposals", Value: o.Proposals,
			Allowed: "it must be at least 1 and at most 2^24, or 0 for the default"}
	}
	posterior, err := unconstrained(what, program, posterior)
	if err != nil {
		return nil, err
	}
	if !o.Unnormalized {
		if err := normalized(what, program.Target(), program.Batch()); err != nil {
			return nil, err
		}
	}
	e, err := path.Path{Full: true}.On(program, native.Auto)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	fit, rest := halves(posterior)
	g, err := fitMixture(fit, e.Dim(), o.Seed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	b := &bridge{e: e}
	length := len(rest[0]) / e.Dim()
	if o.Proposals == 0 {
		o.Proposals = length * len(rest)
	}
	for _, chain := range rest {
		l, err := b.ratios(g, chain)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		b.own = append(b.own, l)
	}
	if b.proposed, err = b.ratios(g, g.draw(o.Proposals, o.Seed)); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	ess, worst := sizes(rest, e.Dim())
	r, err := b.solve(ess)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if worst > 1.05 {
		r.warn("the chains have an R-hat of %.3g: they have not mixed, so that neither log Z nor its error is that of the "+
			"posterior: draw longer", worst)
	}
	if ess < 200 {
		r.warn("the second halves of the chains are worth %.0f independent draws: the error itself is uncertain below 200: "+
			"draw more", ess)
	}
	if r.SE > 0.1 {
		r.warn("the relative error of Z is %.0f %%: the proposal does not overlap with the posterior well, and an "+
			"error above 10 %% is itself not to be trusted: draw more, or use SMC or TI", 100*r.SE)
	}
	return r, nil
}

// unconstrainer is a program of package ppl, which maps named draws back to unconstrained space.
type unconstrainer interface {
	UnconstrainDraws(named *draws.Draws, batch infer.Batch) (*draws.Draws, error)
}

// unconstrained are draws on a program's unconstrained space: those given, or what the program makes of named ones.
func unconstrained(what string, program infer.Program, d *draws.Draws) (*draws.Draws, error) {
	l := program.Layout()
	if l == nil {
		return nil, fmt.Errorf("%s: the program has no layout: %w", what, infer.ErrLayout)
	}
	if d.Space() == draws.Named {
		by, ok := program.Target().Program.(unconstrainer)
		if !ok {
			return nil, fmt.Errorf("%s: the draws are named values, and the program cannot map them to its unconstrained "+
				"space: give infer.Result.Unconstrained: %w", what, infer.ErrLayout)
		}
		var err error
		if d, err = by.UnconstrainDraws(d, program.Batch()); err != nil {
			return nil, fmt.Errorf("%s: named draws cannot be mapped back: give infer.Result.Unconstrained: %w", what, err)
		}
	}
	sites := d.Sites()
	same := len(sites) == len(l.Sites)
	for i := 0; same && i < len(sites); i++ {
		a, b := sites[i], l.Sites[i]
		same = a.Name == b.Name && a.Offset == b.Offset && a.Size == b.Size
	}
	if !same {
		return nil, fmt.Errorf("%s: the draws are not on the program's unconstrained space, %v: give "+
			"infer.Result.Unconstrained: %w", what, l, infer.ErrLayout)
	}
	if d.MinLen() < 4 {
		return nil, fmt.Errorf("%s: a chain has %d draws: it needs 4 at least: %w", what, d.MinLen(), draws.ErrNoDraws)
	}
	return d, nil
}

// halves are the first and second halves of each chain, as numbers row after row; chains are cut to the shortest.
func halves(d *draws.Draws) (first, second [][]float64) {
	n := d.MinLen() / 2
	for c := range d.Chains() {
		var a, b []float64
		for i := range n {
			a = append(a, d.Row(c, i)[:d.Dim()]...)
			b = append(b, d.Row(c, n+i)[:d.Dim()]...)
		}
		first, second = append(first, a), append(second, b)
	}
	return first, second
}

// sizes are the median over dimensions of the bulk effective sample size, and the largest R-hat.
func sizes(chains [][]float64, d int) (ess, rhat float64) {
	var all []float64
	for i := range d {
		x := make([][]float64, len(chains))
		for c, rows := range chains {
			for k := i; k < len(rows); k += d {
				x[c] = append(x[c], rows[k])
			}
		}
		all = append(all, diag.ESSBulk(x))
		rhat = math.Max(rhat, diag.RHat(x))
	}
	slices.Sort(all)
	return all[len(all)/2], rhat
}

// bridge has the log ratios log p − log g of the draws of each chain, and of the proposals.
type bridge struct {
	e         *path.Evaluator
	own       [][]float64
	proposed  []float64
	gradients int
}

func (b *bridge) ratios(g *mixture, x []float64) ([]float64, error) {
	d := b.e.Dim()
	out := make([]float64, 0, len(x)/d)
	var p path.Points
	for len(x) > 0 {
		n := min(len(x), 4096*d)
		if err := b.e.Eval(x[:n], []float64{1}, &p); err != nil {
			return nil, err
		}
		b.gradients += n / d
		for k, v := range p.LogP {
			if math.IsNaN(v) {
				v = math.Inf(-1)
			}
			out = append(out, v-g.logDensity(x[k*d:(k+1)*d]))
		}
		x = x[n:]
	}
	return out, nil
}

// mostIterations and closeEnough end the fixed point.
const (
	mostIterations = 1000
	closeEnough    = 1e-10
)

// solve finds the fixed point. All is in logarithms: with log ratio l, log f₁ = l − log(s₁e^l + s₂Z) and
// log f₂ = −log(s₁e^l + s₂Z).
func (b *bridge) solve(ess float64) (*Result, error) {
	pooled := slices.Concat(b.own...)
	for _, l := range pooled {
		if !finite(l) {
			return nil, fmt.Errorf("the log density of a posterior draw is not finite: the draws are of another program: %w",
				infer.ErrNonFinite)
		}
	}
	n2 := float64(len(b.proposed))
	ess = math.Min(math.Max(ess, 1), float64(len(pooled)))
	if math.IsNaN(ess) {
		ess = float64(len(pooled))
	}
	s1, s2 := math.Log(ess/(ess+n2)), math.Log(n2/(ess+n2))
	below := func(l, z float64) float64 { return logAdd(s1+l, s2+z) }
	sorted := slices.Clone(pooled)
	slices.Sort(sorted)
	z := sorted[len(sorted)/2]
	r := &Result{Estimator: "bridge sampling", Trace: Trace{XLabel: "iteration", YLabel: "log Z"}}
	up, down := make([]float64, len(b.proposed)), make([]float64, len(pooled))
	step, settled := math.Inf(1), false
	for i := 0; i < mostIterations && !settled; i++ {
		for k, l := range b.proposed {
			up[k] = l - below(l, z)
		}
		for k, l := range pooled {
			down[k] = -below(l, z)
		}
		next := sample.LogSumExp(up) - math.Log(n2) - sample.LogSumExp(down) + math.Log(float64(len(pooled)))
		if !finite(next) {
			return nil, fmt.Errorf("no draw of the proposal has a density that is finite: the posterior does not "+
				"overlap with it; use SMC or TI: %w", infer.ErrNonFinite)
		}
		step, z = math.Abs(next-z), next
		settled = step < closeEnough
		r.Trace.X, r.Trace.Y = append(r.Trace.X, float64(i+1)), append(r.Trace.Y, z)
	}
	if !settled {
		r.warn("the fixed point of the bridge has not settled after %d iterations: the last step is %.2g", mostIterations,
			step)
	}
	relative := func(logs []float64, size float64) float64 { // Var(f)/(size E(f)²)
		m := sample.LogSumExp(logs) - math.Log(float64(len(logs)))
		v := 0.0
		for _, l := range logs {
			d := math.Exp(l-m) - 1
			v += d * d / float64(len(logs)-1)
		}
		return v / size
	}
	for k, l := range b.proposed {
		up[k] = l - below(l, z)
	}
	var chains [][]float64
	at := 0
	for _, own := range b.own {
		f := make([]float64, len(own))
		for k, l := range own {
			down[at+k] = -below(l, z)
			f[k] = math.Exp(down[at+k] + z)
		}
		chains, at = append(chains, f), at+len(own)
	}
	size := diag.ESSMean(chains)
	if !(size > 0) {
		size = float64(len(pooled))
	}
	r.LogZ, r.Gradients = z, b.gradients
	r.SE = math.Sqrt(relative(up, n2) + relative(down, size))
	r.Trace.SD = make([]float64, len(r.Trace.X))
	r.Trace.SD[len(r.Trace.SD)-1] = r.SE
	return r, nil
}

// logAdd is log(e^a + e^b).
func logAdd(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(a, -1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}
