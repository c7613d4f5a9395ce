package regression

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/formula"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// Rows are the rows that a prediction is for. A level of a group that the training data do not have is an error that
// names it, without DrawNew and MeanNew.
type Rows struct {
	Table    *data.Table // nil is the training data
	DrawNew  bool        // new levels have effects drawn from the group's law, for each draw of the posterior
	MeanNew  bool        // new levels have the mean effect, 0
	NoGroups bool        // leaves group effects out: the population's
	Seed     uint64      // of new levels and of the outcome's noise
}

// dataOf has the tensors of a batch.
type dataOf = func(key string) torch.Tensor

// value is what a prediction has of each row, or of all of them, under a draw.
type value func(a args, source *torch.Source, data dataOf) torch.Tensor

// Expected is the mean of the outcome for each row, under each draw of the posterior: draws of the site "mean", [rows].
// Of categories it has [rows, categories], their probabilities, or expected counts of Multinomial; of several outcomes
// [rows, outcomes]; of Cox hazard ratios.
func (m *Model) Expected(posterior *draws.Draws, rows Rows) (*draws.Draws, error) {
	return m.predict("Expected", "mean", posterior, rows, func(a args, _ *torch.Source, _ dataOf) torch.Tensor {
		return m.expected(a)
	})
}

func (m *Model) expected(a args) torch.Tensor {
	switch {
	case m.family.mean != nil:
		return m.family.mean(a)
	case m.family.logits != nil:
		return m.family.logits(a).Softmax(-1)
	}
	return a.mu
}

// Linear is the linear predictor η of each row, under each draw: draws of the site "eta", [rows].
func (m *Model) Linear(posterior *draws.Draws, rows Rows) (*draws.Draws, error) {
	if m.family.nominal || m.family.joint {
		return nil, fmt.Errorf("regression.Linear: there is a predictor for each category or outcome: use Expected")
	}
	return m.predict("Linear", "eta", posterior, rows,
		func(a args, _ *torch.Source, _ dataOf) torch.Tensor { return a.eta })
}

// Predict is an outcome for each row, under each draw of the posterior: draws of a site of the outcome's name, [rows];
// of Multinomial, Dirichlet and several outcomes [rows, their number].
func (m *Model) Predict(posterior *draws.Draws, rows Rows) (*draws.Draws, error) {
	if err := m.single("Predict"); err != nil {
		return nil, err
	}
	return m.predict("Predict", m.outcome, posterior, rows,
		func(a args, source *torch.Source, data dataOf) torch.Tensor {
			return m.truncated(m.family.dist(a), data).Sample(source).Add(m.lowest)
		})
}

// predict evaluates a function of the parameters of the outcome's law for each row, under each draw.
func (m *Model) predict(name, site string, posterior *draws.Draws, rows Rows,
	f value) (*draws.Draws, error) {
	fail := func(err error) (*draws.Draws, error) { return nil, fmt.Errorf("regression.%s: %w", name, err) }
	if posterior == nil || posterior.Total() == 0 {
		return fail(draws.ErrNoDraws)
	}
	if posterior.Space() == draws.Unconstrained {
		return fail(fmt.Errorf("the draws are on unconstrained space: give the named ones: %w", draws.ErrLayout))
	}
	batch, unseen, n, err := m.batchOf(rows)
	if err != nil {
		return fail(err)
	}
	defer free(batch)
	shape, size := []int{n}, n
	switch {
	case site == "R2":
		shape, size = nil, 1
	case m.wide() && site == "mean", (m.family.several || m.family.joint) && site != "log density":
		shape, size = append(shape, m.categories), n*m.categories
	}
	out, err := draws.New([]draws.Site{{Name: site, Shape: shape, Size: size}}, nil, posterior.Chains())
	if err != nil {
		return fail(err)
	}
	of := predictions{m: m, posterior: posterior, batch: batch, n: n, unseen: unseen, rows: rows, f: f,
		missing: m.missingIn(rows.Table)}
	block := max(1, blockSize/(size+posterior.Dim()))
	for chain := range posterior.Chains() {
		for from := 0; from < posterior.Len(chain); from += block {
			if err := of.add(out, chain, from, min(from+block, posterior.Len(chain)), size); err != nil {
				return fail(err)
			}
		}
	}
	out.SetSpace(draws.Named)
	if m.levels != nil && len(shape) == 2 {
		err = out.Label(site, nil, m.levels)
	}
	return out, err
}

// blockSize is how many numbers are predicted at once.
const blockSize = 1 << 23

func free(batch infer.Batch) {
	for _, t := range batch {
		torch.Free(t)
	}
}

// batchOf are the tensors of rows, and how many new levels each group has.
func (m *Model) batchOf(rows Rows) (infer.Batch, map[string]int, int, error) {
	if rows.DrawNew && rows.MeanNew {
		return nil, nil, 0, errors.New("DrawNew and MeanNew are both set: new levels are drawn, or have the mean effect")
	}
	batch, unseen, n := infer.Batch{}, map[string]int{}, m.rows.N
	for _, p := range m.all() {
		of := p.rows
		if rows.Table != nil {
			var err error
			if of, err = p.design.Rows(rows.Table); err != nil {
				return nil, nil, 0, err
			}
		}
		n = of.N
		for i, d := range p.design.Groups() {
			levels := of.Groups[i].Unseen
			if !rows.DrawNew && !rows.MeanNew && !rows.NoGroups {
				err := formula.Unseen(d.Factor, levels, ": set DrawNew or MeanNew to predict for new ones")
				if err != nil {
					return nil, nil, 0, err
				}
			}
			unseen[m.groupName(d, p)] = len(levels)
		}
		if err := m.add(batch, of, p); err != nil {
			return nil, nil, 0, err
		}
	}
	if m.family.trials && batch["trials"] == (torch.Tensor{}) {
		return nil, nil, 0, fmt.Errorf("the table has no number of trials")
	}
	return batch, unseen, n, nil
}

// predictions are what predict asks for.
type predictions struct {
	m         *Model
	posterior *draws.Draws
	batch     infer.Batch
	n         int
	unseen    map[string]int
	missing   map[string][]int // rows of a table without a value of mi()
	rows      Rows
	f         value
}

// add appends the predictions of the draws from to to of a chain.
func (q predictions) add(out *draws.Draws, chain, from, to, size int) error {
	before := 0
	for c := range chain {
		before += q.posterior.Len(c)
	}
	return torch.Do(func(*torch.Scope) error {
		var in []torch.Tensor
		names := q.m.Needed(q.posterior)
		for _, name := range names {
			s, err := q.posterior.Site(name)
			if err != nil {
				return err
			}
			var flat []float64
			for i := from; i < to; i++ {
				flat = append(flat, q.posterior.Row(chain, i)[s.Offset:s.Offset+s.Size]...)
			}
			t, err := torch.FromSlice(flat, append([]int{to - from}, s.Shape...)...)
			if err != nil {
				return err
			}
			in = append(in, t)
		}
		streams := torch.NewStreams(q.rows.Seed, to-from)
		for k := range streams.Chains { // as ppl.Predictive has them, all chains one after the other
			streams.Chains[k] += uint64(before + from)
		}
		values, err := torch.VmapSources(func(in []torch.Tensor, source *torch.Source) ([]torch.Tensor, error) {
			g := fromDraw{values: map[string]torch.Tensor{}, q: q, source: source}
			for i, name := range names {
				g.values[name] = in[i]
			}
			data := func(key string) torch.Tensor { return q.batch[key] }
			a, _, _ := q.m.args(g, data)
			return []torch.Tensor{q.f(a, source, data)}, nil
		}, in, &streams, nil)
		if err != nil {
			return err
		}
		flat, err := torch.ToSlice[float64](torch.Of(values[0].T().MustTotype(gotch.Double, false)))
		if err != nil {
			return err
		}
		for i := range to - from {
			if err := out.AppendChain(chain, flat[i*size:(i+1)*size], nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// fromDraw gives a predictor the values of a draw.
type fromDraw struct {
	values map[string]torch.Tensor
	q      predictions
	source *torch.Source
}

func (g fromDraw) sample(site string, _ func() dist.Distribution) torch.Tensor {
	v, ok := g.values[site]
	if !ok {
		panic(&ppl.SiteError{Site: site, Message: "the draws do not have it: give those of the model, whole"})
	}
	return v
}

func (fromDraw) keep(string, torch.Tensor) {}

func (g fromDraw) known(site string) (torch.Tensor, bool) {
	v, ok := g.values[site]
	return v, ok
}

// each is a predictor for each row.
func (g fromDraw) each(eta torch.Tensor) torch.Tensor {
	if len(eta.Shape()) == 0 {
		return eta.Expand(g.q.n)
	}
	return eta
}

// grown are the effects of the levels of a group, known and new.
func (g fromDraw) grown(name string, e groupEffects) torch.Tensor {
	shape := e.r.Shape()
	n, k := g.q.unseen[name], shape[1]
	switch {
	case g.q.rows.NoGroups:
		return torch.Zeros(shape[0]+n, k)
	case n == 0:
		return e.r
	case g.q.rows.DrawNew:
		return torch.Cat(0, e.r, e.spread(dist.Normal(0, 1).Expand(n, k).Sample(g.source)))
	}
	return torch.Cat(0, e.r, torch.Zeros(n, k))
}

// R2 is Bayesian R², var μ/(var μ + E var y) over the rows, for each draw (Gelman, Goodrich, Gabry and Vehtari 2019,
// The American Statistician 73): draws of the site "R2". The variance of the outcome is that of its law.
func (m *Model) R2(posterior *draws.Draws) (*draws.Draws, error) {
	if err := m.single("R2"); err != nil {
		return nil, err
	}
	if m.wide() || m.bounds {
		return nil, fmt.Errorf("regression.R2: it is not defined for categories, several outcomes and truncated ones")
	}
	out, err := m.predict("R2", "R2", posterior, Rows{},
		func(a args, _ *torch.Source, _ dataOf) torch.Tensor {
			d := m.family.dist(a)
			mu := d.Mean()
			fitted := mu.Sub(mu.Mean()).Square().Sum().Div(float64(m.rows.N) - 1)
			return fitted.Div(fitted.Add(d.Variance().Add(mu.Mul(0)).Mean()))
		})
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(out.Pooled(0), math.IsNaN) {
		return nil, fmt.Errorf("regression.R2: the outcome has no variance under some draws")
	}
	return out, nil
}
