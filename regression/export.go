package regression

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native/portable"
	"github.com/kelvin-ppl/kelvin/internal/formula"
	"github.com/kelvin-ppl/kelvin/internal/sample"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// expectedSite is the site of an exported regression with what [Model.Expected] is.
const expectedSite = "expected"

// ExportFitted writes the regression with draws of its posterior, so that package serve predicts rows of columns where
// there is no libtorch: what [Model.Predict] draws, at a site of the outcome's name, and "expected", what
// [Model.Expected] is, each with an element for each row. The draws are those of the model, whole, or [Model.Needed].
// The file has what the formulas learned of the training data: levels, means, knots. Levels that these do not have are
// errors, and so are missing values of columns of mi(). For what else it has see [ppl.Program.ExportFitted].
func (m *Model) ExportFitted(w io.Writer, posterior *draws.Draws) error {
	fail := func(err error) error { return fmt.Errorf("regression.ExportFitted: %w", err) }
	if posterior == nil || posterior.Total() == 0 {
		return fail(draws.ErrNoDraws)
	}
	needed, err := posterior.Select(m.Needed(posterior)...)
	if err != nil {
		return fail(err)
	}
	var density bytes.Buffer
	if err := m.Export(&density); err != nil {
		return fail(err)
	}
	file, err := portable.Read(&density)
	if err != nil {
		return fail(err)
	}
	predicts, err := m.predictive(needed)
	if err != nil {
		return fail(err)
	}
	file.Predictive, file.Draws, file.NoPrediction = predicts.Predictive, needed, ""
	file.Update(m.updates(predicts, posterior))
	if file.Design, err = m.recipe().Save(); err != nil {
		return fail(err)
	}
	if err := file.Write(w); err != nil {
		return fail(err)
	}
	return nil
}

// updates is what serve.Online needs, where draws are whole: the likelihood of rows is that of what predicts them.
func (m *Model) updates(predicts *portable.File, posterior *draws.Draws) (likelihood *portable.Prediction,
	points *draws.Draws, err error) {
	switch {
	case predicts.Likelihood == nil:
		return nil, nil, errors.New(predicts.NoUpdate)
	case len(m.imputed) > 0:
		return nil, nil, errors.New("missing values of mi() have a law of their own, which a row would update too")
	case m.family.partial || len(m.rows.Added) > 0 && !(m.family.trials && len(m.rows.Added) == 1):
		return nil, nil, errors.New("an update takes the outcomes of families with a density, and trials() alone right of " +
			"their bar")
	}
	points, err = m.UnconstrainDraws(posterior, m.Batch())
	return predicts.Likelihood, points, err
}

// recipe makes what a prediction reads of rows.
func (m *Model) recipe() *formula.Recipe {
	r := &formula.Recipe{Of: map[string][]string{}, Bounds: m.bounds, Lowest: m.lowest}
	for _, name := range m.Predictors() {
		if c, err := m.table.Column(name); err == nil {
			r.Of[name] = c.Levels
		}
	}
	for _, p := range m.all() {
		r.Parts = append(r.Parts, p.part())
	}
	return r
}

// predictive is an export of what the model predicts from the values that draws have: these are its latent variables.
// Their laws do not matter, and those of variables that the model makes of others are normal.
func (m *Model) predictive(needed *draws.Draws) (*portable.File, error) {
	batch, err := m.readable()
	if err != nil {
		return nil, err
	}
	defer free(batch)
	program, err := ppl.Compile(func(c *ppl.Ctx) { m.runPredictive(c, needed) }, batch)
	if err != nil {
		return nil, err
	}
	var names []string // values that the model makes of others are not read
	for _, s := range program.Layout().Sites {
		names = append(names, s.Name)
	}
	read, err := needed.Select(names...)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := program.ExportFitted(&b, read, nil); err != nil {
		return nil, err
	}
	return portable.Read(&b)
}

// readable is the batch as a recipe makes it: of a Gaussian process the number, and nothing missing.
func (m *Model) readable() (infer.Batch, error) {
	batch := infer.Batch{}
	for _, p := range m.all() {
		if err := m.add(batch, p.rows, p); err != nil {
			return nil, err
		}
		for i, s := range p.design.Smooths() {
			if err := p.readable(batch, i, s); err != nil {
				return nil, err
			}
		}
	}
	return batch, nil
}

// readable changes what a batch has of smooth i.
func (p *predictor) readable(batch infer.Batch, i int, s formula.SmoothDesign) error {
	put := func(key string, z []float64) error {
		t, err := torch.FromSlice(z)
		if err != nil {
			return err
		}
		torch.Detach(t)
		batch[key] = t
		return nil
	}
	column := func(j int) []float64 { return formula.Every(p.rows.Smooths[i], j, s.Columns) }
	if s.Kind == "gp" {
		torch.Free(batch[p.data("z%d", i)])
		delete(batch, p.data("z%d", i))
		err := put(p.data("at%d", i), column(0))
		if s.Columns > 1 {
			err = errors.Join(err, put(p.data("by%d", i), column(1)))
		}
		return err
	}
	for k, f := range s.Factors {
		if f.Levels != nil {
			continue
		}
		z := column(k)
		mean, _ := sample.Moments(present(z))
		for row, v := range z {
			if math.IsNaN(v) {
				z[row] = mean
			}
		}
		key := p.data("z%d_%d", i, k)
		torch.Free(batch[key])
		if err := put(key, z); err != nil {
			return err
		}
	}
	return nil
}

// runPredictive is the model of [Model.predictive].
func (m *Model) runPredictive(c *ppl.Ctx, needed *draws.Draws) {
	data := func(c *ppl.Ctx) dataOf {
		return func(key string) torch.Tensor {
			for _, p := range m.predictors {
				for i, s := range p.design.Smooths() {
					if f := p.process[i]; s.Kind == "gp" && key == p.data("z%d", i) {
						basis := f.Basis(c.Data(p.data("at%d", i)))
						if f.means != nil {
							basis = basis.Sub(torch.New(f.means))
						}
						if s.Columns > 1 {
							basis = basis.Mul(c.Data(p.data("by%d", i)).Unsqueeze(1))
						}
						return basis
					}
				}
			}
			return c.Data(key)
		}
	}
	y := c.Data("y")
	g := inExport{inModel{c}, needed, y.Shape()[0]}
	a, _, _ := m.args(g, data(c))
	c.Plate("rows", 0, func(c *ppl.Ctx) {
		c.Deterministic(expectedSite, m.expected(a))
		c.Observe(m.outcome, raised{m.truncated(m.family.dist(a), data(c)), m.lowest}, y)
	})
}

// inExport declares as latent variables what draws have.
type inExport struct {
	inModel
	needed *draws.Draws
	n      int // rows
}

func (g inExport) sample(site string, d func() dist.Distribution) torch.Tensor {
	if _, err := g.needed.Site(site); err != nil {
		panic(&ppl.SiteError{Site: site, Message: "the draws do not have it: give those of the model, whole"})
	}
	return g.inModel.sample(site, d)
}

func (inExport) keep(string, torch.Tensor) {}

// known declares what the model makes of others, and the effects of groups.
func (g inExport) known(site string) (torch.Tensor, bool) {
	s, err := g.needed.Site(site)
	if err != nil {
		return torch.Tensor{}, false
	}
	return g.c.Sample(site, dist.Normal(0, 1).Expand(s.Shape...)), true
}

func (g inExport) each(eta torch.Tensor) torch.Tensor {
	if len(eta.Shape()) == 0 {
		return eta.Expand(g.n)
	}
	return eta
}

func (inExport) impute(_ imputation, _ dist.Distribution, x torch.Tensor) torch.Tensor { return x }

// raised is the law of ordered categories, which are numbers from lowest on. Its density is of numbers from 0 on.
type raised struct {
	dist.Distribution
	lowest float64
}

// Expand broadcasts the batch shape.
func (d raised) Expand(batch ...int) dist.Distribution {
	return raised{d.Distribution.Expand(batch...), d.lowest}
}

// Sample draws categories.
func (d raised) Sample(src *dist.Source, sample ...int) torch.Tensor {
	return d.Distribution.Sample(src, sample...).Add(d.lowest)
}
