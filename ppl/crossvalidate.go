package ppl

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/diag/loo"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/sample"
	"github.com/kelvin-ppl/kelvin/torch"
)

// observations are the single observations of a model, as cross-validation numbers them.
type observations struct {
	sites  []draws.Site
	chains int
	names  []string    // those asked for; none is all
	rows   [][]float64 // the log density of each under each draw
	column []int       // of each: its place among those of sites
}

// observed evaluates the log densities of the observations of some sites, without those that a mask leaves out.
func (p *Program) observations(posterior *draws.Draws, names []string) (o observations, err error) {
	likelihood, err := p.LogLikelihood(posterior)
	if err != nil {
		return o, err
	}
	if len(names) > 0 {
		if likelihood, err = likelihood.Select(names...); err != nil {
			return o, err
		}
	}
	if likelihood.MinLen() != likelihood.MaxLen() {
		if likelihood, err = likelihood.Slice(0, likelihood.MinLen()); err != nil {
			return o, err
		}
	}
	o.sites, o.chains, o.names = likelihood.Sites(), likelihood.Chains(), names
	all := likelihood.Rows()
	for j := range likelihood.Dim() {
		if slices.ContainsFunc(all, func(row []float64) bool { return row[j] != 0 }) {
			o.column = append(o.column, j)
		}
	}
	if len(o.column) == likelihood.Dim() {
		o.rows = all
		return o, nil
	}
	for _, row := range all {
		kept := make([]float64, len(o.column))
		for i, j := range o.column {
			kept[i] = row[j]
		}
		o.rows = append(o.rows, kept)
	}
	return o, nil
}

// loo is leave-one-out cross-validation by importance sampling.
func (o observations) loo() (*loo.Result, error) {
	efficiency, err := loo.RelativeEfficiency(o.rows, o.chains)
	if err != nil {
		return nil, err
	}
	return loo.LOO(o.rows, efficiency)
}

// logMean is the log of the mean density of an observation over the draws.
func (o observations) logMean(i int) float64 {
	x := make([]float64, len(o.rows))
	for s, row := range o.rows {
		x[s] = row[i]
	}
	return sample.LogSumExp(x) - math.Log(float64(len(x)))
}

// without is a model in which some observations do not count.
func (o observations) without(m Model, left []int) Model {
	masks := map[string][]bool{}
	for _, i := range left {
		for _, s := range o.sites {
			if at := o.column[i] - s.Offset; at >= 0 && at < s.Size {
				if masks[s.Name] == nil {
					masks[s.Name] = slices.Repeat([]bool{true}, s.Size)
				}
				masks[s.Name][at] = false
			}
		}
	}
	shapes := map[string][]int{}
	for _, s := range o.sites {
		shapes[s.Name] = s.Shape
	}
	return handle(m, func(*Ctx) Handler {
		return process(func(s *Site) {
			counts, ok := masks[s.Name]
			if !ok || s.Kind != KindSample || !s.Observed {
				return
			}
			mask := torch.New(counts, shapes[s.Name]...)
			if s.Mask != (torch.Tensor{}) {
				mask = torch.Of(mask.T().MustLogicalAnd(s.Mask.T(), false))
			}
			s.Mask = mask
		})
	})
}

// heldOut are the log predictive densities of some observations by a fit without others.
func (p *Program) heldOut(ctx context.Context, o observations, test, without []int, method infer.Method,
	options infer.Options) ([]float64, error) {
	full := p.predicting()
	var q *Program
	var err error
	if m := o.without(full.open, without); p.laplace != nil {
		q, err = MarginalLaplace(m, p.batch, p.laplace.site)
	} else {
		q, err = Compile(m, p.batch)
	}
	if err != nil {
		return nil, err
	}
	fitted, err := infer.Sample(ctx, q, method, options)
	if err != nil {
		return nil, err
	}
	now, err := p.observations(fitted, o.names)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(now.column, o.column) {
		return nil, fmt.Errorf("other observations have a density under the new fit: %w", draws.ErrLayout)
	}
	var out []float64
	for _, i := range test {
		out = append(out, now.logMean(i))
	}
	return out, nil
}

// refitting are the options of fits beside that of all data.
func (p *Program) refitting(options infer.Options) (infer.Options, error) {
	if p.sums != nil {
		return options, fmt.Errorf("the model has discrete variables that are summed out, and observations in one sum "+
			"cannot be left out: write it with dist.Mixture or dist.MixtureSameFamily: %w", infer.ErrConfig)
	}
	options.Checkpoint, options.Save, options.Start = nil, nil, infer.Params{}
	if options.Observer == nil {
		options.Observer = infer.Silent
	}
	return options, nil
}

// KFold is the expected log predictive density of each observation by fits with a method to parts of the data, as folds
// divide them: it needs no importance weights. Observations of a fold do not count in its fit, and all else is there:
// the latent variables of a group whose observations are all left out have their prior, so that folds of whole groups
// tell of new ones. posterior is of all data, and gives the effective number of parameters. The observations are those
// of [Program.LOO]; those that no fold predicts, of the past, are not in the result.
func (p *Program) KFold(ctx context.Context, posterior *draws.Draws, folds loo.Folds, method infer.Method,
	options infer.Options, sites ...string) (*loo.Result, error) {
	fail := func(err error) (*loo.Result, error) { return nil, fmt.Errorf("ppl.KFold: %w", err) }
	options, err := p.refitting(options)
	if err != nil {
		return fail(err)
	}
	o, err := p.observations(posterior, sites)
	if err != nil {
		return fail(err)
	}
	test, without, err := folds.Assign(len(o.column))
	if err != nil {
		return fail(err)
	}
	points := map[int]loo.Point{}
	for k := range test {
		elpd, err := p.heldOut(ctx, o, test[k], without[k], method, options)
		if err != nil {
			return fail(fmt.Errorf("fold %d of %d: %w", k+1, len(test), err))
		}
		for j, i := range test[k] {
			points[i] = o.point(i, elpd[j])
		}
	}
	r := &loo.Result{Draws: len(o.rows)}
	for i := range o.column {
		if point, ok := points[i]; ok {
			r.Pointwise = append(r.Pointwise, point)
		}
	}
	r.Sum()
	return r, nil
}

// point is what a fit without an observation tells of it.
func (o observations) point(i int, elpd float64) loo.Point {
	return loo.Point{ELPD: elpd, P: o.logMean(i) - elpd, MCSE: math.NaN(), K: math.NaN(), ESS: math.NaN()}
}

// RepairedLOO is [Program.LOO] in which each observation whose Pareto k is above 0.5, where the variance of importance
// weights need not be finite, is looked at again: the draws are moved and stretched to the posterior without it (moment
// matching: Paananen, Piironen, Bürkner and Vehtari 2021), and where that leaves k above the threshold, the model is
// fitted without it by the method, as KFold does; a nil method leaves those as they are. The k of an observation that
// was fitted without is NaN. A program of [MarginalLaplace] has its points fitted, and not matched.
func (p *Program) RepairedLOO(ctx context.Context, posterior *draws.Draws, method infer.Method, options infer.Options,
	sites ...string) (*loo.Result, error) {
	fail := func(err error) (*loo.Result, error) { return nil, fmt.Errorf("ppl.RepairedLOO: %w", err) }
	o, err := p.observations(posterior, sites)
	if err != nil {
		return fail(err)
	}
	r, err := o.loo()
	if err != nil {
		return fail(err)
	}
	limit := loo.KThreshold(r.Draws)
	var m *matcher
	r.Unreliable = 0
	for i, point := range r.Pointwise {
		if !(point.K > finiteVariance) {
			continue
		}
		if point, err = p.repair(ctx, i, point, &m, posterior, o, method, options); err != nil {
			return fail(fmt.Errorf("observation %d: %w", i, err))
		}
		if point.K > limit {
			r.Unreliable++
		}
		r.Pointwise[i] = point
	}
	r.Sum()
	return r, nil
}

// finiteVariance is the Pareto k below which importance weights have one.
const finiteVariance = 0.5

// repair is the point of one observation by moment matching, or by a fit without it.
func (p *Program) repair(ctx context.Context, i int, point loo.Point, m **matcher, posterior *draws.Draws,
	o observations, method infer.Method, options infer.Options) (loo.Point, error) {
	limit := loo.KThreshold(len(o.rows))
	var err error
	if p.laplace == nil {
		if *m == nil {
			if *m, err = p.matcher(posterior, o); err != nil {
				return point, err
			}
		}
		if point, err = (*m).match(i, point, finiteVariance); err != nil {
			return point, err
		}
		point.P = o.logMean(i) - point.ELPD
	}
	if !(point.K > limit) || method == nil {
		return point, nil
	}
	if options, err = p.refitting(options); err != nil {
		return point, err
	}
	elpd, err := p.heldOut(ctx, o, []int{i}, []int{i}, method, options)
	if err != nil {
		return point, err
	}
	return o.point(i, elpd[0]), nil
}
