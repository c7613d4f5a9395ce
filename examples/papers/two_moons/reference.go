package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/diag/score"
	"github.com/kelvin-ppl/kelvin/draws"
	cells "github.com/kelvin-ppl/kelvin/examples/internal/grid"
	"github.com/kelvin-ppl/kelvin/examples/internal/seeds"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
	"gonum.org/v1/gonum/floats"
)

// The sizes of a run with a small network on which NUTS converges.
var (
	fullReference = settings{train: 300, test: 500, validation: 500, epochs: 1000, members: 10, samples: 400,
		long: chain{5000, 50, 300}, parallel: chain{5000, 100, 100}, variational: 20_000, nutsWarmup: 1000, nutsDraws: 1000,
		nutsDepth: 10, side: 30, tuned: chosenSmall}
	quickReference = settings{train: 60, test: 60, validation: 60, epochs: 10, members: 3, samples: 10,
		long: chain{20, 2, 10}, parallel: chain{10, 5, 4}, variational: 50, nutsWarmup: 20, nutsDraws: 20, nutsDepth: 5,
		side: 12, tuned: chosenSmall}
)

// compared are the methods that NUTS is a reference for. They are those of the large network, two of them a second time
// with the settings that were nearest to NUTS.
var compared = []struct {
	method  string
	nearest bool
}{{nameMAP, false}, {nameLaplace, false}, {nameDropout, false}, {nameEnsemble, false}, {nameSGLDLong, false},
	{nameSGLDLong, true}, {nameSGHMCLong, false}, {nameSGHMCLong, true}, {nameParallel, false}, {nameVI, false}}

// referenceResult is what one seed gives.
type referenceResult struct {
	Rows        []referenceRow `json:"rows"` // NUTS comes first
	Convergence convergence    `json:"convergence"`
	Notes       []string       `json:"notes"`
}

// referenceRow are the scores of a method, and its mean distances from NUTS in the probability of label 1: at test
// points, and at the points of the grid that are far from the data. Those of NUTS are distances between the means of
// its first two chains and of its last two, which is what chance makes of them at half the draws.
type referenceRow struct {
	Title    string  `json:"title"`
	NLL      float64 `json:"nll"`
	Accuracy float64 `json:"accuracy"`
	Test     float64 `json:"test"`
	Far      float64 `json:"far"`
}

// convergence is what R-hat says of four chains. Hidden units can change places, and a unit of tanh can change its
// sign with those that follow it, without a change of the function: chains are near different twins of one point, so
// that R-hat of single weights says nothing. What is judged does not change between twins.
type convergence struct {
	Predictions float64            `json:"predictions"` // the largest R-hat of probabilities, at test points and the grid
	Above       float64            `json:"above"`       // the share of these points where it is at least 1.01
	Invariants  map[string]float64 `json:"invariants"`  // R-hat
	ESS         float64            `json:"ess"`         // the least of all these quantities, bulk
	Divergent   float64            `json:"divergent"`   // the share of transitions
	Cut         float64            `json:"cut"`         // the share of trajectories at the largest depth
	Weights     float64            `json:"weights"`     // the largest R-hat of single weights, which is not judged
}

// limit is the R-hat below which chains count as converged (Vehtari et al. 2021).
const limit = 1.01

func (c convergence) converged() bool {
	worst := c.Predictions
	for _, r := range c.Invariants {
		worst = max(worst, r)
	}
	return worst < limit
}

// sampled is NUTS on all data from four draws of the prior, which are further apart than the posterior's.
func (t *task) sampled(ctx context.Context) (predictor, *draws.Draws, error) {
	streams := torch.NewStreams(t.seed+8, referenceChains)
	start, err := nn.Init(t.model.net, nn.EachSite(func(nn.Site) nn.Law {
		return nn.Normal(1 / math.Sqrt(t.model.precision))
	}), &streams)
	if err != nil {
		return nil, nil, err
	}
	r, err := infer.Run(ctx, t.program(t.model.logPosterior, start), hmc.NUTS{MaxDepth: t.nutsDepth, TargetAccept: 0.9},
		infer.Options{Chains: referenceChains, Warmup: t.nutsWarmup, Draws: t.nutsDraws, Seed: t.seed + 6,
			Observer: infer.Silent})
	if err != nil {
		return nil, nil, err
	}
	p, err := t.params(r.Unconstrained)
	return t.network(p), r.Unconstrained, err
}

const referenceChains = 4

// judge takes R-hat of predictions and of functions of the weights.
func (t *task) judge(d *draws.Draws, predictions ...prediction) (c convergence, err error) {
	c.ESS = math.Inf(1)
	points, above := 0, 0
	for _, p := range predictions {
		for i := range p.p {
			chains := chunks(p.probabilities(i), referenceChains)
			r := diag.RHat(chains)
			c.Predictions, c.ESS = max(c.Predictions, r), min(c.ESS, diag.ESSBulk(chains))
			if points++; !(r < limit) {
				above++
			}
		}
	}
	c.Above = float64(above) / float64(points)
	series := map[string][][]float64{}
	for k := range referenceChains {
		own := map[string][]float64{}
		for i := range d.Len(k) {
			for name, v := range invariants(t.model.net.Layout(), d.Row(k, i)) {
				own[name] = append(own[name], v)
			}
		}
		for stat, into := range map[string]*float64{draws.StatDivergent: &c.Divergent, draws.StatMaxDepth: &c.Cut} {
			v, err := d.Stat(stat, k)
			if err != nil {
				return c, err
			}
			*into += mean(v) / referenceChains
		}
		if own["log posterior"], err = d.Stat(draws.StatLP, k); err != nil {
			return c, err
		}
		for name, x := range own {
			series[name] = append(series[name], x)
		}
	}
	c.Invariants = map[string]float64{}
	for name, x := range series {
		c.Invariants[name], c.ESS = diag.RHat(x), min(c.ESS, diag.ESSBulk(x))
	}
	for j := range d.Dim() {
		var x [][]float64
		for k := range referenceChains {
			x = append(x, d.Element(k, j))
		}
		c.Weights = max(c.Weights, diag.RHat(x))
	}
	return c, nil
}

// invariants are functions of the weights of a network with one hidden layer that neither another order of its units
// nor a change of their signs changes.
func invariants(layout *infer.Layout, flat []float64) map[string]float64 {
	part := func(name string) []float64 {
		s, _ := layout.Site(name)
		return flat[s.Offset : s.Offset+s.Size]
	}
	in, bias, out := part("0.weight"), part("0.bias"), part("2.weight")
	path := 0.0
	for k, v := range out {
		path += math.Abs(v) * math.Sqrt(in[2*k]*in[2*k]+in[2*k+1]*in[2*k+1])
	}
	return map[string]float64{"|w1|²": floats.Dot(in, in), "|b1|²": floats.Dot(bias, bias), "|w2|²": floats.Dot(out, out),
		"b2": part("2.bias")[0], "Σ|w2||w1|": path}
}

// reference runs all methods on one seed.
func (t *task) reference(ctx context.Context) (out referenceResult, err error) {
	predict, d, err := t.sampled(ctx)
	if err != nil {
		return out, err
	}
	truth, all, err := t.both(predict)
	if err != nil {
		return out, err
	}
	if out.Convergence, err = t.judge(d, truth, all); err != nil {
		return out, err
	}
	row, err := t.distance("NUTS", truth, all, truth, all)
	if err != nil {
		return out, err
	}
	var halves [2][2]prediction // [half][test, grid]
	for h := range halves {
		for set, p := range []prediction{truth, all} {
			n := len(p.logits) / 2
			if halves[h][set], err = (prediction{logits: p.logits[h*n : (h+1)*n]}).averaged(); err != nil {
				return out, err
			}
		}
	}
	chance, err := t.distance("", halves[0][0], halves[0][1], halves[1][0], halves[1][1])
	if err != nil {
		return out, err
	}
	row.Test, row.Far = chance.Test, chance.Far
	out.Rows = append(out.Rows, row)
	for _, c := range compared {
		for _, m := range methods {
			if m.name != c.method {
				continue
			}
			title, usual := m.title, t.tuned
			if c.nearest {
				t.tuned, title = nearest, title+", nearest"
			}
			predict, err := m.fit(t, ctx)
			t.tuned = usual
			if err != nil {
				return out, fmt.Errorf("%s: %w", title, err)
			}
			test, everywhere, err := t.both(predict)
			if err != nil {
				return out, fmt.Errorf("%s: %w", title, err)
			}
			row, err := t.distance(title, test, everywhere, truth, all)
			if err != nil {
				return out, err
			}
			out.Rows = append(out.Rows, row)
		}
	}
	out.Notes = t.notes
	return out, nil
}

// both predicts the test points and the grid.
func (t *task) both(predict predictor) (test, all prediction, err error) {
	if test, err = predict(t.test.at); err != nil {
		return test, all, err
	}
	all, err = predict(t.grid.at)
	return test, all, err
}

// distance scores a prediction of the test points, and compares it and that of the grid with others.
func (t *task) distance(title string, test, all, truth, allTruth prediction) (referenceRow, error) {
	row := referenceRow{Title: title}
	logs := make([][]float64, len(test.z))
	for i, z := range test.z {
		l := score.BinaryLogProbabilities(z)
		logs[i] = l[:]
		row.Test += math.Abs(test.p[i]-truth.p[i]) / float64(len(test.p))
	}
	scores, err := score.Score(logs, t.test.label)
	if err != nil {
		return row, err
	}
	row.NLL, row.Accuracy = finite(scores.LogLoss), scores.Accuracy
	var far []float64
	for i, isFar := range t.grid.farFrom(t.train, farAway) {
		if isFar {
			far = append(far, math.Abs(all.p[i]-allTruth.p[i]))
		}
	}
	row.Far = mean(far)
	return row, nil
}

// referenceSummary is the JSON output.
type referenceSummary struct {
	Parameters int                    `json:"parameters"`
	Tau        float64                `json:"tau"`
	Seeds      []referenceResult      `json:"seeds"`
	Rows       []referenceSummaryLine `json:"rows"`
	Converged  int                    `json:"converged"` // seeds on which NUTS did
}

type referenceSummaryLine struct {
	Title    string         `json:"title"`
	NLL      seeds.Estimate `json:"nll"`
	Accuracy seeds.Estimate `json:"accuracy"`
	Test     seeds.Estimate `json:"test"`
	Far      seeds.Estimate `json:"far"`
	Excess   seeds.Estimate `json:"excess"` // NLL above that of NUTS, in pairs of one seed
}

// compare runs the small network over seeds.
func compare(ctx context.Context, w io.Writer, o options) error {
	s, mlp, tau := o.problem()
	g := &cells.Grid[referenceResult]{Dir: o.dir(), Workers: o.workers, Settings: map[string]any{"version": 1, "tau": tau,
		"sizes": mlp.Sizes, "run": fmt.Sprintf("%+v", s), "nearest": nearest}}
	for i := range o.seeds {
		seed := o.seed + uint64(i)
		g.Cells = append(g.Cells, cells.Cell[referenceResult]{Name: fmt.Sprintf("seed%d", seed),
			Run: func(ctx context.Context, _, _ string, _ infer.Observer) (out referenceResult, err error) {
				t, err := newTask(s, mlp, seed, tau)
				if err != nil {
					return out, err
				}
				return t.reference(ctx)
			}})
	}
	all, err := g.Run(ctx)
	if err != nil {
		return err
	}
	net, err := mlp.Build()
	if err != nil {
		return err
	}
	sum := summariseReference(all)
	sum.Parameters, sum.Tau = net.NumParams(), tau
	if o.json {
		return json.NewEncoder(w).Encode(sum)
	}
	return sum.print(w, o.seed)
}

func summariseReference(all []referenceResult) referenceSummary {
	sum := referenceSummary{Seeds: all}
	for i, row := range all[0].Rows {
		over := func(of func(referenceResult) float64) seeds.Estimate {
			var x []float64
			for _, r := range all {
				x = append(x, of(r))
			}
			return seeds.Over(x)
		}
		sum.Rows = append(sum.Rows, referenceSummaryLine{Title: row.Title,
			NLL:      over(func(r referenceResult) float64 { return r.Rows[i].NLL }),
			Accuracy: over(func(r referenceResult) float64 { return r.Rows[i].Accuracy }),
			Test:     over(func(r referenceResult) float64 { return r.Rows[i].Test }),
			Far:      over(func(r referenceResult) float64 { return r.Rows[i].Far }),
			Excess:   over(func(r referenceResult) float64 { return r.Rows[i].NLL - r.Rows[0].NLL })})
	}
	for _, r := range all {
		if r.Convergence.converged() {
			sum.Converged++
		}
	}
	return sum
}

func (s *referenceSummary) print(w io.Writer, first uint64) (err error) {
	f := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(w, format, args...)
		}
	}
	f("%d parameters, tanh, prior N(0, %g²); means ± standard errors over %d seeds. |Δp|: mean distance from NUTS in the "+
		"probability\nof label 1, at test points and far from all data; for NUTS that of two chains from two others.\n\n",
		s.Parameters, s.Tau, len(s.Seeds))
	f("%-24s %-17s %-17s %-17s %-17s %-17s\n", "", "NLL", "above NUTS", "accuracy", "|Δp|, test", "|Δp|, far")
	cell := func(e seeds.Estimate) string { return fmt.Sprintf("%.4f ± %.4f", e.Mean, e.SE) }
	for _, r := range s.Rows {
		f("%-24s %-17s %-17s %-17s %-17s %-17s\n", r.Title, cell(r.NLL), cell(r.Excess), cell(r.Accuracy), cell(r.Test),
			cell(r.Far))
	}
	f("\nNUTS converged on %d of %d seeds: R-hat below %g for all probabilities of test points and the grid, and for "+
		"the functions of\nthe weights that follow, which hidden units that change places or signs leave as they are.\n",
		s.Converged, len(s.Seeds), limit)
	for i, r := range s.Seeds {
		c := r.Convergence
		f("seed %d: predictions at most %.4f (%.1f %% of them at %g or more)", first+uint64(i), c.Predictions, 100*c.Above,
			limit)
		for _, name := range []string{"log posterior", "|w1|²", "|b1|²", "|w2|²", "b2", "Σ|w2||w1|"} {
			f(", %s %.4f", name, c.Invariants[name])
		}
		f("; least ESS %.0f; %.2f %% divergent, %.2f %% cut off; single weights, not judged, %.2f\n", c.ESS, 100*c.Divergent,
			100*c.Cut, c.Weights)
		for _, n := range r.Notes {
			f("seed %d: %s\n", first+uint64(i), n)
		}
	}
	return err
}
