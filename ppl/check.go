package ppl

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/diag/loo"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/thread"
	"github.com/kelvin-ppl/kelvin/torch"
)

// blockElements is about how many predicted values, or log likelihoods, are computed at once.
const blockElements = 1 << 20

// LogLikelihood is the log density of every observation under every draw of the posterior, on the data that the model
// was compiled on: draws with a site for each observed variable, of the shape of its log densities, and the same
// chains. It is what cross-validation needs and what a store keeps as log_likelihood. Plates and Scale do not multiply
// it. A Factor and a Density are not among them, since they are not of single observations; where a mask leaves an
// observation out it is 0.
func (p *Program) LogLikelihood(posterior *draws.Draws) (*draws.Draws, error) {
	p = p.predicting()
	q := Predictive{Model: p.model, Batch: p.batch}
	if posterior != nil && posterior.Total()*p.Data() >= compiledElements {
		q.compiled = &outputs{}
	}
	out, err := p.blocks(posterior, func(block *draws.Draws, _ int) (Values, error) { return q.LogLikelihood(block) })
	if err != nil {
		return nil, fmt.Errorf("ppl.LogLikelihood: %w", err)
	}
	if out.Dim() == 0 {
		return nil, fmt.Errorf("ppl.LogLikelihood: the model observes nothing: a likelihood that is a Factor or a Density " +
			"is not one of single observations; use Observe")
	}
	return out, nil
}

// LOO is leave-one-out cross-validation of the model on its data by Pareto-smoothed importance sampling: [loo.LOO] of
// [Program.LogLikelihood] with the relative efficiencies of its chains. The observations are those of all observed
// variables, in the order of the sites of LogLikelihood, or of the sites that are named; those that a mask leaves out
// are not among them. Chains of different lengths are cut to the shortest.
func (p *Program) LOO(posterior *draws.Draws, sites ...string) (*loo.Result, error) {
	o, err := p.observations(posterior, sites)
	if err == nil {
		var r *loo.Result
		if r, err = o.loo(); err == nil {
			return r, nil
		}
	}
	return nil, fmt.Errorf("ppl.LOO: %w", err)
}

// Predict draws the observed variables anew, once for each draw of the posterior: draws of the posterior predictive,
// with a site for each variable of Observe and the same chains, as a store keeps them. Chain after chain, draw i uses
// the random stream (seed, i). For new covariates, other sites and the prior see [Predictive].
func (p *Program) Predict(posterior *draws.Draws, seed uint64) (*draws.Draws, error) {
	p = p.predicting()
	if len(p.observed) == 0 {
		return nil, fmt.Errorf("ppl.Predict: the model has nothing to predict: no variable of Observe")
	}
	q := Predictive{Model: p.model, Batch: p.batch, Seed: seed, Sites: p.observed}
	out, err := p.blocks(posterior, func(block *draws.Draws, first int) (Values, error) {
		q.first = first
		return q.Posterior(block)
	})
	if err != nil {
		return nil, fmt.Errorf("ppl.Predict: %w", err)
	}
	return out, nil
}

// blocks evaluates f on parts of the draws and joins the values. first is how many draws came before a part.
func (p *Program) blocks(posterior *draws.Draws,
	f func(block *draws.Draws, first int) (Values, error)) (*draws.Draws, error) {
	if posterior == nil || posterior.Total() == 0 {
		return nil, fmt.Errorf("there are no draws: %w", draws.ErrNoDraws)
	}
	size := int(max(1, min(constrainRows, blockElements/p.Data())))
	var out *draws.Draws
	first := 0
	for c := range posterior.Chains() {
		chain, err := posterior.Chain(c)
		if err != nil {
			return nil, err
		}
		for from := 0; from < chain.MaxLen(); from += size {
			to := min(from+size, chain.MaxLen())
			block, err := chain.Slice(from, to)
			if err != nil {
				return nil, err
			}
			values, err := f(block, first)
			if err != nil {
				return nil, err
			}
			if out == nil {
				if out, err = drawsOf(values, nil, posterior.Chains()); err != nil {
					return nil, err
				}
				out.Grow(posterior.MaxLen())
			}
			if err := appendValues(out, values, c, to-from); err != nil {
				return nil, err
			}
			first += to - from
		}
	}
	return out, nil
}

// drawsOf is an empty container for values with a leading dimension of draws.
func drawsOf(values Values, stats []string, chains int) (*draws.Draws, error) {
	var sites []draws.Site
	offset := 0
	for _, name := range sortedNames(values) {
		shape := shapeOf(values[name])[1:]
		size := int(count(shape))
		sites = append(sites, draws.Site{Name: name, Shape: shape, Offset: offset, Size: size})
		offset += size
	}
	return draws.New(sites, stats, chains)
}

// appendValues appends n draws to a chain, and frees them.
func appendValues(out *draws.Draws, values Values, chain, n int) error {
	columns := map[string][]float64{}
	for name, t := range values {
		v, err := torch.ToSlice[float64](t)
		if err != nil {
			return err
		}
		columns[name] = v
		torch.Free(t)
	}
	x := make([]float64, out.Dim())
	for i := range n {
		for _, s := range out.Sites() {
			if len(columns[s.Name]) != n*s.Size {
				return fmt.Errorf("site %q has another size in other draws: %w", s.Name, draws.ErrLayout)
			}
			copy(x[s.Offset:s.Offset+s.Size], columns[s.Name][i*s.Size:])
		}
		if err := out.AppendChain(chain, x, nil); err != nil {
			return err
		}
	}
	return nil
}

// codePredictive is the kind of the findings of [Program.Check].
const codePredictive diag.Code = "posterior_predictive"

// checkStatistics are what a posterior predictive check compares.
var checkStatistics = []struct {
	name string
	of   func(x []float64) float64
}{
	{"mean", func(x []float64) float64 { m, _ := moments(x); return m }},
	{"sd", func(x []float64) float64 { _, sd := moments(x); return sd }},
	{"smallest", slices.Min[[]float64]},
	{"largest", slices.Max[[]float64]},
}

// Check is a posterior predictive check (Gelman, Meng and Stern 1996): the mean, the standard deviation, the
// smallest and the largest value of each observed variable, in the data and in data that [Program.Predict] draws
// from the posterior. A statistic of the data whose two-sided p-value, with half of the ties on either side, is
// below 0.01 is a Warning: the model does not make such data. The kind of a finding is "posterior_predictive", its
// Figure the p-value. The report of a model that fits has one Info for each variable, with its figures; Join adds it
// to that of [diag.Diagnose]. Fewer than 200 draws have no p-values that small, other than by chance, and points of an
// optimiser no uncertainty of the parameters: both are a Warning, the first in place of those of single statistics.
//
// Data that are NaN are missing, as those of a series may be: they are left out, and so are predictions in their
// places. A variable whose data are all missing is not checked.
func (p *Program) Check(posterior *draws.Draws, seed uint64) (*diag.Report, error) {
	const (
		limit  = 0.01
		fewest = 2 / limit // the data lie beyond all of n draws of their own law with probability 2/(n + 1)
	)
	predicted, err := p.Predict(posterior, seed)
	if err != nil {
		return nil, err
	}
	report := &diag.Report{Checked: []diag.Code{codePredictive}, Chains: predicted.Chains(), Draws: predicted.MinLen()}
	report.Subject = fmt.Sprintf("posterior predictive check of %d draws", predicted.Total())
	add := func(severity diag.Severity, site, which string, figure float64, figures string) {
		f := diag.Finding{Code: codePredictive, Severity: severity, Site: site, Chain: -1, Observation: -1,
			Figure: figure, Threshold: limit, Message: fmt.Sprintf("%s: the data%s have %s", site, which, figures)}
		if severity > diag.Info {
			f.Advice = "Data that the model makes look different in this respect. Look for what it leaves out: a " +
				"wider distribution, groups that differ, a covariate, a trend."
		}
		report.Findings = append(report.Findings, f)
	}
	few := predicted.Total() < fewest
	optimiser := strings.HasPrefix(posterior.Attrs()[draws.AttrMethod], "optim.")
	if few || optimiser {
		message, advice := fmt.Sprintf("there are %d draws, fewer than the %.0f of which a p-value below %g is a sign",
			predicted.Total(), float64(fewest), limit), "Draw more, in infer.Options{Draws: ...}."
		if optimiser {
			message = "the draws are points of an optimiser: predictions leave out the uncertainty of the parameters"
			advice = "Check draws of the posterior: those of a sampler, such as hmc.NUTS, or of a fit, such as laplace."
		}
		report.Findings = append(report.Findings, diag.Finding{Code: codePredictive, Severity: diag.Warning, Chain: -1,
			Observation: -1, Figure: float64(predicted.Total()), Threshold: fewest, Message: message, Advice: advice})
	}
	data, err := p.observedValues()
	if err != nil {
		return nil, fmt.Errorf("ppl.Check: %w", err)
	}
	for _, site := range predicted.Sites() {
		seen := present(data[site.Name])
		y := slices.Clone(seen(data[site.Name]))
		if len(y) == 0 || site.Size == 0 {
			continue
		}
		which := ""
		if missing := len(data[site.Name]) - len(y); missing > 0 {
			which = fmt.Sprintf(", without %d that are missing,", missing)
		}
		var good []string
		for _, s := range checkStatistics {
			if s.name == "sd" && len(y) < 2 {
				continue
			}
			have := s.of(y)
			var drawn []float64
			above := 0.0
			for c := range predicted.Chains() {
				for i := range predicted.Len(c) {
					t := s.of(seen(predicted.Row(c, i)[site.Offset : site.Offset+site.Size]))
					drawn = append(drawn, t)
					if t > have {
						above++
					} else if t == have {
						above += 0.5
					}
				}
			}
			share := above / float64(len(drawn))
			value := 2 * min(share, 1-share)
			mean, sd := moments(drawn)
			figures := fmt.Sprintf("%s %.4g (of predicted data %.4g ± %.2g, p = %.2g)", s.name, have, mean, sd, value)
			if few || !(value < limit) {
				good = append(good, figures)
				continue
			}
			add(diag.Warning, site.Name, which, value, figures)
		}
		if len(good) > 0 {
			add(diag.Info, site.Name, which, 1, strings.Join(good, ", "))
		}
	}
	slices.SortStableFunc(report.Findings, func(a, b diag.Finding) int { return int(b.Severity) - int(a.Severity) })
	return report, nil
}

// observedValues are the data of the variables of Observe.
func (p *Program) observedValues() (map[string][]float64, error) {
	p = p.predicting()
	out := map[string][]float64{}
	err := torch.Do(func(*torch.Scope) error {
		defer thread.Evaluate()() // as in plateSizes.resolve
		give := placeholders(0)
		execute(p.model, p.batch, nil, process(func(s *Site) {
			give(s)
			if slices.Contains(p.observed, s.Name) {
				out[s.Name] = torch.Must(torch.ToSlice[float64](s.Value))
			}
		}))
		return nil
	})
	return out, err
}

// present takes the values in the places where y is not NaN. What it returns is good until the next call.
func present(y []float64) func(x []float64) []float64 {
	if !slices.ContainsFunc(y, math.IsNaN) {
		return func(x []float64) []float64 { return x }
	}
	var kept []float64
	return func(x []float64) []float64 {
		kept = kept[:0]
		for i, v := range x {
			if i < len(y) && !math.IsNaN(y[i]) {
				kept = append(kept, v)
			}
		}
		return kept
	}
}

// moments are the mean and the standard deviation, with divisor n − 1.
func moments(x []float64) (mean, sd float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		sd += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(sd / float64(max(len(x)-1, 1)))
}
