package method

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Limits of the notes about a run.
const (
	heldShare    = 0.01 // of the updates
	inflated     = 1.05 // factor on a standard deviation: worth a note
	spoiled      = 1.2  // and that makes figures wrong
	unsettled    = 0.1  // distance to the mode, in standard deviations of the posterior: worth a note
	notConverged = 1.0
	iterations   = 20 // of the power method
	// A gradient of all data in minibatch runs, as numbers in the data times parameters of all chains.
	mostNumbers = 1e8
)

// Notes are what the method has to say about a run: held updates, what the step size does to the law, momenta that are
// too hot or too cold, and for an optimiser how far the mode is.
func (t *stepper[S, P]) Notes(state infer.State, run infer.RunSummary) []draws.Note {
	s, ok := state.(S)
	if !ok || run.Updates == 0 {
		return nil
	}
	p := P(&s).base().Params
	var notes []draws.Note
	add := func(kind string, serious bool, advice, format string, a ...any) {
		notes = append(notes, draws.Note{Kind: kind, Serious: serious, Text: fmt.Sprintf(format, a...),
			Advice: fmt.Sprintf("%s: %s", t.Algorithm.Name, advice)})
	}
	total := run.Updates * p.Chains()
	if run.Held > 0 {
		share := float64(run.Held) / float64(total)
		advice := "make LR smaller, or start where the density is finite."
		if t.NeedsAllData { // its steps are its own
			advice = "start where the density is finite, and look for a density that overflows."
		}
		if run.Undefined > 0 {
			advice = "mend the gradients that are NaN first, as another note says."
		}
		add("held", share > heldShare, advice,
			"%d of %d updates were held because the density or its gradient was not finite.", run.Held, total)
	}
	if float64(run.Held) > 0.5*float64(total) {
		return notes // the rest would tell of chains that stood still
	}
	if t.Temperature == nil {
		t.unsettled(p, run, add)
		return notes
	}
	if run.Info.Temperature == 0 {
		return notes
	}
	if t.Inflation != nil {
		lambda, factor, stable := t.curvature(p, run), 1.0, ""
		_ = torch.Do(func(*torch.Scope) error {
			m := torch.Must(t.move(P(&s).base()))
			inflates := func() float64 { return math.Sqrt(t.Inflation(&s, m, lambda)) }
			factor = inflates()
			for range 20 { // halvings
				if m.LR /= 2; math.IsInf(factor, 0) && inflates() < spoiled {
					stable = fmt.Sprintf(": %.2g is stable there", m.LR)
					break
				}
			}
			return nil
		})
		switch {
		case !(lambda > 0):
		case math.IsInf(factor, 0) || math.IsNaN(factor):
			add("step_size", true, "make LR smaller"+stable+".",
				"The step size %g is unstable at curvature %.3g of the mean log posterior, the largest at the last draw.",
				run.Info.LR, lambda)
		case factor > inflated:
			add("step_size", factor > spoiled, "make LR smaller.",
				"The step size %g inflates standard deviations by %.0f %% where the curvature is largest, %.3g.",
				run.Info.LR, 100*(factor-1), lambda)
		}
	}
	if t.Kinetic == nil || t.Temperature(max(run.Updates-2, 0)) != t.Temperature(max(run.Updates-1, 0)) {
		return notes
	}
	rows, err := (&thermal[S, P]{&seeded[S, P]{t}}).KineticTemperatures(state)
	if err != nil {
		return notes
	}
	sum, d := 0.0, float64(p.Layout.Dim())
	for _, row := range rows {
		for i, site := range p.Layout.Sites {
			sum += row[i] * float64(site.Size)
		}
	}
	n := d * float64(len(rows))
	ratio := sum / n / run.Info.Temperature
	// n·ratio has a χ² law with n degrees of freedom.
	if off := math.Abs(ratio - 1); off > 0.05 && off > 5*math.Sqrt(2/n) {
		add("kinetic_temperature", off > 0.2,
			"make LR smaller; if gradients are noisy, take larger batches or correct for the noise.",
			"The kinetic temperature of the momenta is %.3g times the temperature.", ratio)
	}
	return notes
}

// unsettled adds a note where an optimiser is not at a mode: g/√(λ/N) is the distance to it in standard deviations of
// the posterior, with λ the curvature along the gradient g. The gradient of a minibatch does not tell, and that of all
// data is not taken where it is far more expensive than an update.
func (t *stepper[S, P]) unsettled(p infer.Params, run infer.RunSummary, add func(string, bool, string, string,
	...any)) {
	if run.Part || len(run.Info.GradNorm) == 0 || t.inParts(p, run) {
		return
	}
	norms, lambdas := run.Info.GradNorm, []float64(nil)
	var worst siteSlope
	_ = torch.Do(func(*torch.Scope) error {
		e, err := t.gradient.ValueAndGrad(p, run.Batch, 0)
		if err == nil {
			norms, lambdas = e.Norms, t.curvatures(p, run, e.Grad)
			worst = t.steepest(p, run, e.Grad)
		}
		return err
	})
	further := "make more updates (Warmup of infer.Options), or let LR fall to 0 at the end."
	if t.NeedsAllData {
		further = "make more updates (Warmup of infer.Options)."
	}
	norm, lambda, distance := 0.0, 0.0, 0.0 // of the chain that is farthest from a mode
	for k := range norms {
		l, away := math.NaN(), math.Inf(1)
		if lambdas != nil {
			l = lambdas[k]
		}
		if l > 0 {
			away = norms[k] * math.Sqrt(t.n/l)
		}
		if norms[k] > 0 && away > distance {
			norm, lambda, distance = norms[k], l, away
		}
	}
	switch {
	case worst.endless:
		add("not_converged", true, "make more updates (Warmup of infer.Options). Where the density has no mode there, as "+
			"in a hierarchy whose scale goes to 0, they do not help: write it non-centred (ppl.Reparam), give the scale a "+
			"dist.LogNormal prior, or sample with hmc.NUTS.",
			"The run ended at no mode: in %q the log posterior still rises, by %.3g for a unit on unconstrained space, and "+
				"the curvature there, %.3g, does not end it.", worst.site, t.n*worst.norm, t.n*worst.lambda)
	case worst.distance > unsettled && worst.distance > distance:
		add("not_converged", worst.distance > notConverged, further,
			"The run ended about %.2g posterior standard deviations from the mode: the gradient of the mean log posterior in "+
				"%q is %.3g, the curvature along it %.3g.", worst.distance, worst.site, worst.norm, worst.lambda)
	case distance > 0 && !(lambda > 0):
		add("not_converged", true, "make more updates (Warmup of infer.Options).",
			"The run ended where the gradient of the mean log posterior is %.3g and the curvature along it %.3g: at no mode.",
			norm, lambda)
	case distance > unsettled:
		add("not_converged", distance > notConverged, further,
			"The run ended about %.2g posterior standard deviations from the mode: the gradient of the mean log posterior is "+
				"%.3g, the curvature along it %.3g.", distance, norm, lambda)
	default:
		t.modes(p, run, add)
	}
}

// modes adds a note where chains are at different modes: |x|√(Nλ) is how far they are in standard deviations, with λ
// the curvature at a chain's mode along the way x from it to that of the first chain. On a ridge λ is 0, and so is this
// distance.
func (t *stepper[S, P]) modes(p infer.Params, run infer.RunSummary, add func(string, bool, string, string, ...any)) {
	chains, d := p.Chains(), p.Layout.Dim()
	if chains < 2 {
		return
	}
	farthest, most := 0, 0.0
	_ = torch.Do(func(*torch.Scope) error {
		at := torch.Must(torch.ToSlice[float64](p.Flat))
		way, length := slices.Clone(at), make([]float64, chains)
		for k := range chains {
			x := way[k*d : (k+1)*d]
			floats.Sub(x, at[:d])
			if length[k] = floats.Norm(x, 2); length[k] == 0 {
				x[0] = 1 // some direction
			}
		}
		direction := torch.Must(torch.FromSliceOn(torch.Must(torch.DeviceOf(p.Flat)), p.Flat.T().DType(), way,
			p.Flat.Shape()...))
		for k, lambda := range t.curvatures(p, run, direction) {
			if away := length[k] * math.Sqrt(max(lambda, 0)*t.n); away > most {
				farthest, most = k, away
			}
		}
		return nil
	})
	if most < notConverged {
		return
	}
	text := fmt.Sprintf("The chains ended at different modes: that of chain %d is %.3g posterior standard deviations "+
		"from that of chain 0", farthest, most)
	if lp := run.Info.LogPosterior; len(lp) == chains && !math.IsNaN(lp[farthest]-lp[0]) {
		text += fmt.Sprintf(", and its log density differs by %+.3g", (lp[farthest]-lp[0])*t.n)
	}
	add("modes_differ", false, "choose the chain of the highest density, and use hmc.NUTS or hmc.Exchange for the "+
		"posterior. In an ensemble it is as it should be.", "%s.", text)
}

// siteSlope is the gradient of the mean log posterior in one site.
type siteSlope struct {
	site         string
	norm, lambda float64 // of the gradient, and the curvature along it
	distance     float64 // of the mode along it, in standard deviations of the posterior
	endless      bool    // the curvature says of no mode along it
}

// Limits of what is looked at site by site.
const (
	mostSites = 16
	rises     = 0.1 // nats for a unit, or for the size of the point where that is more: worth a note
)

// steepest is the site whose gradient is farthest from a mode, for the chain where it is. Along the whole gradient a
// site may be missed: another one whose curvature is 10³⁰ times as large, as that of effects whose scale goes to 0,
// leaves nothing of it. g²/λ along any direction is at most that of the whole way to the mode.
func (t *stepper[S, P]) steepest(p infer.Params, run infer.RunSummary, grad torch.Tensor) (worst siteSlope) {
	sites, d := p.Layout.Sites, p.Layout.Dim()
	if len(sites) < 2 || len(sites) > mostSites {
		return worst
	}
	_ = torch.Do(func(*torch.Scope) error {
		all := torch.Must(torch.ToSlice[float64](grad))
		at := torch.Must(torch.ToSlice[float64](p.Flat))
		for _, site := range sites {
			part := make([]float64, len(all))
			norms, sizes := make([]float64, len(all)/d), make([]float64, len(all)/d)
			for k := range norms {
				from, to := k*d+site.Offset, k*d+site.Offset+site.Size
				copy(part[from:to], all[from:to])
				norms[k], sizes[k] = floats.Norm(part[from:to], 2), floats.Norm(at[from:to], 2)
			}
			direction := torch.Must(torch.FromSliceOn(torch.Must(torch.DeviceOf(grad)), grad.T().DType(), part,
				grad.Shape()...))
			for k, lambda := range t.curvatures(p, run, direction) {
				now := siteSlope{site: site.Name, norm: norms[k], lambda: lambda}
				switch {
				case !(norms[k] > 0) || math.IsNaN(lambda):
					continue
				case lambda > 0:
					now.distance = norms[k] * math.Sqrt(t.n/lambda)
				default:
					now.endless = t.n*norms[k]*max(1, sizes[k]) > rises
				}
				if now.endless && (!worst.endless || now.norm > worst.norm) ||
					!now.endless && !worst.endless && now.distance > worst.distance {
					worst = now
				}
			}
		}
		return nil
	})
	return worst
}

// curvature is the median over chains of the largest curvature of the mean log density at p. NaN where it cannot be
// told.
func (t *stepper[S, P]) curvature(p infer.Params, run infer.RunSummary) float64 {
	lambdas := t.curvatures(p, run, torch.Tensor{})
	if len(lambdas) == 0 {
		return math.NaN()
	}
	slices.Sort(lambdas)
	return lambdas[len(lambdas)/2]
}

// inParts says whether all of the data at once would take far more memory or time than an update. A parameter may meet
// every number of a datum, as the weights of a convolution meet the pixels, and values are kept for each of them: so it
// is numbers that count, and not data.
func (t *stepper[S, P]) inParts(p infer.Params, run infer.RunSummary) bool {
	if run.Batches == nil {
		return false
	}
	numbers := 0.0
	for _, x := range run.Batch {
		numbers += float64(x.Numel())
	}
	return max(t.n, numbers)*float64(p.Layout.Dim())*float64(p.Chains()) > mostNumbers
}

// curvatures are [Curvatures] of the mean log density of a run.
func (t *stepper[S, P]) curvatures(p infer.Params, run infer.RunSummary, direction torch.Tensor) []float64 {
	c := curve{gradient: t.gradient, tau: run.Info.Temperature / t.n, parts: t.inParts(p, run),
		next: func() (infer.Batch, error) { return run.Batch, nil }}
	if c.parts {
		at := run.Batches.Position()
		defer func() { _ = run.Batches.Seek(at) }()
		c.next = run.Batches.Next
	}
	lambdas, err := c.largest(p, direction)
	if err != nil {
		return nil
	}
	return lambdas
}

// Curvatures are the largest curvatures of the mean log density at the points of p, with the log Jacobian times tau, by
// the power method on differences of gradients. Each of its 20 iterations has the next batch; with parts of the data,
// not all of them in every batch, the curvatures are means over the last ten.
func Curvatures(g infer.Gradient, p infer.Params, tau float64, parts bool, next func() (infer.Batch,
	error)) ([]float64, error) {
	return curve{g, tau, parts, next}.largest(p, torch.Tensor{})
}

// curve is what tells curvatures: gradients at τ, of the next batch.
type curve struct {
	gradient infer.Gradient
	tau      float64
	parts    bool
	next     func() (infer.Batch, error)
}

// largest are the largest curvatures at the points of p; with a direction for each, the curvatures along those.
//
// Where all of the data are too many, each iteration has the next minibatch, and the curvatures are means of those of
// the second half of the iterations. A direction does not depend on the minibatch that it meets, so that the mean of
// its curvature is that of all data, which is not above the largest one.
func (c curve) largest(p infer.Params, direction torch.Tensor) ([]float64, error) {
	d := p.Layout.Dim()
	lambdas := make([]float64, p.Chains())
	err := torch.Do(func(*torch.Scope) error {
		h := 1e-5
		if p.Flat.T().DType() != gotch.Double {
			h = 1e-2
		}
		v := direction
		rounds := 1
		if v == (torch.Tensor{}) {
			values := make([]float64, p.Chains()*d)
			for i := range values { // in no direction that a model prefers
				values[i] = 1 + math.Mod(float64(i%d+1)*math.Phi, 1)
			}
			shape := p.Flat.Shape()
			v = torch.Must(torch.FromSliceOn(torch.Must(torch.DeviceOf(p.Flat)), p.Flat.T().DType(), values, shape...))
			rounds = iterations
		}
		counted := 0.0
		for round := range rounds {
			now, next, err := c.product(p, v, h)
			if err != nil {
				return err
			}
			if v != direction {
				v.T().MustDrop()
			}
			if v = next; !c.parts {
				lambdas = now
			} else if 2*round >= rounds {
				counted++
				for k := range lambdas {
					lambdas[k] += (now[k] - lambdas[k]) / counted
				}
			}
		}
		return nil
	})
	return lambdas, err
}

// product is minus the Hessian of the mean log density at the points of p times the directions of v, and the curvatures
// along these.
func (c curve) product(p infer.Params, v torch.Tensor, h float64) (curvatures []float64, out torch.Tensor, err error) {
	err = torch.Do(func(scope *torch.Scope) error {
		batch := torch.Must(c.next())
		norms := v.Square().T().MustSumDimIntlist([]int64{-1}, true, v.T().DType(), false).MustSqrt(false)
		v := v.Div(norms).T()
		ahead, behind := p, p
		ahead.Flat, behind.Flat = Combine(Term(1, p.Flat), Term(h, torch.Of(v))), Combine(Term(1, p.Flat),
			Term(-h, torch.Of(v)))
		up := torch.Must(c.gradient.ValueAndGrad(ahead, batch, c.tau)).Grad
		down := torch.Must(c.gradient.ValueAndGrad(behind, batch, c.tau)).Grad
		out = Combine(Term(-0.5/h, up), Term(0.5/h, down))
		curvatures = torch.Must(torch.ToSlice[float64](torch.Of(out.Mul(v).T().MustSumDimIntlist([]int64{-1}, false,
			v.DType(), false))))
		scope.Keep(out)
		return nil
	})
	return curvatures, out, err
}

// StationaryVariance is the variance of x of the recursion (x, y)' = A(x, y) + noise, with A = (a b; c d) and noise of
// variances (n₁, n₁₂, n₂): P₁₁ of P = APAᵀ + N. It is +Inf where the recursion is unstable.
func StationaryVariance(a, b, c, d, n1, n12, n2 float64) float64 {
	if det := a*d - b*c; !(math.Abs(det) < 1 && math.Abs(a+d) < 1+det) {
		return math.Inf(1)
	}
	system := mat.NewDense(3, 3, []float64{1 - a*a, -2 * a * b, -b * b, -a * c, 1 - a*d - b*c, -b * d, -c * c,
		-2 * c * d, 1 - d*d})
	var p mat.VecDense
	if p.SolveVec(system, mat.NewVecDense(3, []float64{n1, n12, n2})) != nil {
		return math.Inf(1)
	}
	return p.AtVec(0)
}
