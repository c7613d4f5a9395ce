package regression

import (
	"fmt"
	"math"
	"strings"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// NewLevels is what a prediction does with a level of a group that the training data do not have.
type NewLevels int

// A new level is an error that names it, has effects drawn from the group's law for each draw of the posterior, or has
// the mean effect, 0.
const (
	RefuseNew NewLevels = iota
	DrawNew
	MeanNew
)

// Rows are the rows that a prediction is for.
type Rows struct {
	Table     *data.Table // nil is the training data
	NewLevels NewLevels
	NoGroups  bool   // leaves group effects out: the population's
	Seed      uint64 // of new levels and of the outcome's noise
}

// Expected is the mean of the outcome for each row, under each draw of the posterior: draws of the site "mean", [rows].
// Of ordered categories it has [rows, categories], their probabilities.
func (m *Model) Expected(posterior *draws.Draws, rows Rows) (*draws.Draws, error) {
	return m.predict("Expected", "mean", posterior, rows, func(a args, _ *torch.Source, _ infer.Batch) torch.Tensor {
		switch {
		case m.family.ordinal:
			return m.probabilities(a)
		case m.family.nominal:
			return a.logits.Softmax(-1)
		}
		if m.family.mean != nil {
			return m.family.mean(a)
		}
		return a.mu
	})
}

// Linear is the linear predictor η of each row, under each draw: draws of the site "eta", [rows].
func (m *Model) Linear(posterior *draws.Draws, rows Rows) (*draws.Draws, error) {
	if m.family.nominal {
		return nil, fmt.Errorf("regression.Linear: the family categorical has a predictor for each category: use Expected")
	}
	return m.predict("Linear", "eta", posterior, rows, func(a args, _ *torch.Source, _ infer.Batch) torch.Tensor {
		return a.eta
	})
}

// Predict is an outcome for each row, under each draw of the posterior: draws of a site of the outcome's name, [rows].
func (m *Model) Predict(posterior *draws.Draws, rows Rows) (*draws.Draws, error) {
	return m.predict("Predict", m.outcome, posterior, rows,
		func(a args, source *torch.Source, batch infer.Batch) torch.Tensor {
			d := m.truncated(m.law(a), func(key string) torch.Tensor { return batch[key] })
			return d.Sample(source).Add(m.lowest)
		})
}

// probabilities are those of ordered categories, [rows, categories].
func (m *Model) probabilities(a args) torch.Tensor {
	var parts []any
	below := a.eta.Mul(0)
	for k := range m.categories - 1 {
		to := a.of["thresholds"].Slice(-1, k, k+1).Sub(a.eta).Sigmoid()
		parts = append(parts, to.Sub(below))
		below = to
	}
	return torch.Stack(1, append(parts, torch.Of(1).Sub(below))...)
}

// predict evaluates a function of the parameters of the outcome's law for each row, under each draw.
func (m *Model) predict(name, site string, posterior *draws.Draws, rows Rows,
	f func(a args, source *torch.Source, batch infer.Batch) torch.Tensor) (*draws.Draws, error) {
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
	shape := []int64{int64(n)}
	if (m.family.ordinal || m.family.nominal) && site == "mean" {
		shape = append(shape, int64(m.categories))
	}
	size := n
	for _, k := range shape[1:] {
		size *= int(k)
	}
	out, err := draws.New([]draws.Site{{Name: site, Shape: shape, Size: size}}, nil, posterior.Chains())
	if err != nil {
		return fail(err)
	}
	of := predictions{m: m, posterior: posterior, batch: batch, n: n, unseen: unseen, rows: rows, f: f}
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
	batch, unseen, n := infer.Batch{}, map[string]int{}, m.rows.N
	for _, p := range m.predictors {
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
			if len(levels) > 0 && rows.NewLevels == RefuseNew && !rows.NoGroups {
				return nil, nil, 0, fmt.Errorf("group %s: the training data do not have the levels %s: set NewLevels to "+
					"regression.DrawNew or MeanNew to predict for new ones", d.Factor, listed(levels))
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

// listed shows the first of many.
func listed(names []string) string {
	most := min(len(names), 5)
	text := `"` + strings.Join(names[:most], `", "`) + `"`
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// predictions are what predict asks for.
type predictions struct {
	m         *Model
	posterior *draws.Draws
	batch     infer.Batch
	n         int
	unseen    map[string]int
	rows      Rows
	f         func(a args, source *torch.Source, batch infer.Batch) torch.Tensor
}

// add appends the predictions of the draws from to to of a chain.
func (q predictions) add(out *draws.Draws, chain, from, to, size int) error {
	return torch.Do(func(*torch.Scope) error {
		var in []torch.Tensor
		var names []string
		for _, s := range q.posterior.Sites() {
			if strings.HasPrefix(s.Name, "unit_") || strings.HasPrefix(s.Name, "z_") && !strings.HasPrefix(s.Name, "z_s(") {
				continue // what is made of them is there
			}
			var flat []float64
			for i := from; i < to; i++ {
				flat = append(flat, q.posterior.Row(chain, i)[s.Offset:s.Offset+s.Size]...)
			}
			t, err := torch.FromSlice(flat, append([]int64{int64(to - from)}, s.Shape...)...)
			if err != nil {
				return err
			}
			names, in = append(names, s.Name), append(in, t)
		}
		streams := torch.NewStreams(q.rows.Seed, to-from)
		for k := range streams.Chains {
			streams.Chains[k] += uint64(chain)<<32 + uint64(from)
		}
		values, err := torch.VmapSources(func(in []torch.Tensor, source *torch.Source) ([]torch.Tensor, error) {
			g := fromDraw{values: map[string]torch.Tensor{}, q: q, source: source}
			for i, name := range names {
				g.values[name] = in[i]
			}
			a, _, _ := q.m.args(g, func(key string) torch.Tensor { return q.batch[key] })
			return []torch.Tensor{q.f(a, source, q.batch)}, nil
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
		return eta.Expand(int64(g.q.n))
	}
	return eta
}

// grown are the effects of the levels of a group, known and new.
func (g fromDraw) grown(name string, e groupEffects) torch.Tensor {
	shape := e.r.Shape()
	n, k := int64(g.q.unseen[name]), shape[1]
	switch {
	case g.q.rows.NoGroups:
		return torch.Zeros(shape[0]+n, k)
	case n == 0:
		return e.r
	case g.q.rows.NewLevels == DrawNew:
		return torch.Cat(0, e.r, e.spread(dist.Normal(0, 1).Expand(n, k).Sample(g.source)))
	}
	return torch.Cat(0, e.r, torch.Zeros(n, k))
}

// R2 is Bayesian R², var μ/(var μ + E var y) over the rows, for each draw (Gelman, Goodrich, Gabry and Vehtari 2019,
// The American Statistician 73): draws of the site "R2". The variance of the outcome is that of its law.
func (m *Model) R2(posterior *draws.Draws) (*draws.Draws, error) {
	if m.family.ordinal || m.family.nominal || m.bounds {
		return nil, fmt.Errorf("regression.R2: it is not defined for categories and truncated outcomes")
	}
	both, err := m.predict("R2", "R2", posterior, Rows{}, func(a args, _ *torch.Source, _ infer.Batch) torch.Tensor {
		d := m.law(a)
		mu := d.Mean()
		n := float64(m.rows.N)
		fitted := mu.Sub(mu.Mean()).Square().Sum().Div(n - 1)
		noise := d.Variance().Add(mu.Mul(0)).Mean()
		return fitted.Div(fitted.Add(noise)).Expand(int64(m.rows.N))
	})
	if err != nil {
		return nil, err
	}
	out, err := draws.New([]draws.Site{{Name: "R2", Size: 1}}, nil, both.Chains())
	if err != nil {
		return nil, err
	}
	for c := range both.Chains() {
		for i := range both.Len(c) {
			v := both.Row(c, i)[0]
			if math.IsNaN(v) {
				return nil, fmt.Errorf("regression.R2: draw %d of chain %d has no variance", i, c)
			}
			if err := out.AppendChain(c, []float64{v}, nil); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
