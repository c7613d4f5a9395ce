package regression

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/formula"
	"github.com/kelvin-ppl/kelvin/internal/sample"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/models/survival"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Model is a regression with its data: a program for every method. What [ppl.Program] has, it has; its draws have
//
//	intercept    where all columns are 0; intercept_centred is that where each has its mean
//	b            [K], a coefficient for each column, with their names as labels
//	sd_g, cor_g  standard deviations of the effects of group g, by column, and their correlations
//	r_g          [levels, columns], the effects themselves
//	sd_s(x)      the standard deviation of the coefficients of a smooth: 0 is a straight line
//	b[mo(x)]     the mean step of a monotonic effect; simplex_mo(x) are the shares of the steps. A product, as mo(x):z,
//	             has both for each of its columns; simplex_mo(x):mo(w)_2 are those of the second mo() in it
//	sd_gp(x)     the standard deviation of a Gaussian process, and length_gp(x) its length
//	thresholds   those of ordered categories where all columns are 0; thresholds_centred as intercept_centred
//	sigma, ...   the family's parameters; those with a formula have the sites above with _sigma at the end
//	x_missing    the missing values of a column of mi(x), which has the sites above with _x at the end
//	rescor       the correlations of the residuals of several outcomes, each of which has the sites above with its name
//	             at the end
//
// and what these are made of: L_g, z_g, z_s(x), z_gp(x), and unit_b where the scales of the priors of b are small.
type Model struct {
	*ppl.Program
	formula    Formula
	family     *spec
	predictors []*predictor // the mean's first
	imputed    []imputation // the columns of mi()
	outcome    string
	levels     []string // of an outcome that is a factor
	categories int      // of ordered ones
	lowest     float64  // the first of ordered ones that are numbers
	scale      float64  // s of the priors
	rows       *formula.Rows
	table      *data.Table // the training data
	bounds     bool        // the outcome is truncated
	cox        survival.Cox
	cells      *cells // nil where rows are not merged
	dropped    int
	priors     []Prior
	sites      []site
	used       map[string]bool
	sealed     bool // priors and labels are known
}

// Dropped is how many rows had missing values and are left out.
func (m *Model) Dropped() int { return m.dropped }

// Outcome is the name of the outcome as the formula has it, and of its site.
func (m *Model) Outcome() string { return m.outcome }

func (m *Model) eta() float64 {
	if m.formula.Eta == 0 {
		return 1
	}
	return m.formula.Eta
}

// groupName is a group as sites name it: its factor, with a number where the formula has several groups of one factor.
func (m *Model) groupName(d formula.GroupDesign, p *predictor) string {
	same, at := 0, 0
	for _, other := range p.design.Groups() {
		if other.Factor == d.Factor {
			if same++; other.Name == d.Name {
				at = same
			}
		}
	}
	if at > 1 {
		return fmt.Sprintf("%s_%d%s", d.Factor, at, p.suffix())
	}
	return d.Factor + p.suffix()
}

// learn makes the predictors and the batch.
func (m *Model) learn(parsed map[string]*formula.Formula, table *data.Table) error {
	options := formula.Options{EmptyCells: m.formula.EmptyCells, Collinear: m.formula.Collinear}
	for _, name := range append([]string{""}, m.family.params...) {
		f, ok := parsed[name]
		if !ok {
			continue
		}
		design, err := f.Fit(table, options)
		if err != nil {
			return err
		}
		rows, err := design.Rows(table)
		if err != nil {
			return err
		}
		p := &predictor{param: name, design: design, rows: rows, scale: 1}
		if name == "" {
			m.rows, m.outcome = rows, f.Outcome.Value.String()
			if err := m.learnOutcome(f, rows); err != nil {
				return err
			}
			p.scale, p.plain = m.scale, m.family.ordinal || m.family.partial
			p.centre = m.centre()
		}
		if err := p.learn(); err != nil {
			return err
		}
		if name == "" {
			if len(rows.Y) == rows.N {
				p.centred = p.informed(m.working(true), rows.Added["trials"])
			}
		}
		p.turn = m.newTurn(p)
		if m.family.nominal && name == "" {
			m.forEachCategory(p)
			continue
		}
		m.predictors = append(m.predictors, p)
	}
	if m.family.joint {
		m.forEachOutcome()
	}
	return m.learnImputed(parsed, table, options)
}

// forEachCategory copies the predictor of the formula for each category but the first.
func (m *Model) forEachCategory(p *predictor) {
	for k := 1; k < m.categories; k++ {
		of := *p
		of.shared = true
		if of.param = fmt.Sprint(m.lowest + float64(k)); m.levels != nil {
			of.param = m.levels[k]
		}
		m.predictors = append(m.predictors, &of)
	}
}

// learn takes the moments of columns.
func (p *predictor) learn() error {
	rows, k := p.rows, len(p.design.Names())
	for j := range k {
		mean, sd := sample.Moments(formula.Every(rows.X, j, k))
		p.means, p.sds = append(p.means, mean), append(p.sds, sd)
	}
	for i, d := range p.design.Groups() {
		var sds []float64
		for j := range d.Columns {
			_, sd := sample.Moments(formula.Every(rows.Groups[i].X, j, len(d.Columns)))
			sds = append(sds, sd)
		}
		p.group = append(p.group, sds)
	}
	for i, s := range p.design.Smooths() {
		if err := p.learnSmooth(s, rows.Smooths[i]); err != nil {
			return err
		}
	}
	return nil
}

// compile runs the model once for its priors and labels, and compiles it.
func (m *Model) compile() (err error) {
	batch := infer.Batch{}
	for _, p := range m.all() {
		if err := m.add(batch, p.rows, p); err != nil {
			return err
		}
	}
	if err := m.merge(batch); err != nil {
		return err
	}
	if m.cells != nil {
		batch = m.cells.batch
	}
	m.Program, err = ppl.Compile(m.run, batch)
	if err != nil {
		return fmt.Errorf("%s: %w", typeName, err)
	}
	m.sealed = true
	return m.unused()
}

// run is the model.
func (m *Model) run(c *ppl.Ctx) {
	if m.cells != nil && c.Has(cellKey(" n")) {
		law := m.law(c)
		c.Plate("rows", 0, func(c *ppl.Ctx) { c.Observe(m.outcome, law, c.Data("y")) })
		return
	}
	a, w, rest := m.args(inModel{c}, c.Data)
	if m.family.partial {
		m.ratios(c, a.eta)
		return
	}
	c.Plate("rows", 0, func(c *ppl.Ctx) {
		law := dist.Distribution(nil)
		if w.ok {
			law = m.family.glm(c.Data("x"), w.b, rest, a)
		} else {
			law = m.weighted(m.seen(a, c.Data), c.Data)
		}
		if m.cells != nil {
			law = merged{Distribution: law}
		}
		c.Observe(m.outcome, law, c.Data("y"))
	})
}

// weights are the coefficients of a family whose density takes columns and coefficients apart.
type weights struct {
	b  torch.Tensor
	ok bool
}

// args are the parameters of the outcome's law, by row.
func (m *Model) args(g getter, data dataOf) (a args, w weights, rest torch.Tensor) {
	p := m.predictors[0]
	data = m.impute(g, data)
	a.of = map[string]torch.Tensor{}
	switch {
	case m.family.joint:
		return m.jointly(g, data), w, rest
	case m.family.nominal:
		m.nominal(&a, g, data)
		return a, w, rest
	}
	if r := m.formula.R2D2; r != nil && m.family.scaled { // the prior of the coefficients is a share of the variance
		a.of["sigma"] = m.parameter(g, "sigma", data)
	}
	e := p.sites(g, m, a.of["sigma"])
	for _, name := range m.family.params {
		if _, there := a.of[name]; !there {
			a.of[name] = m.parameter(g, name, data)
		}
	}
	if m.family.trials {
		a.trials = data("trials")
	}
	if m.family.ordinal {
		a.of["thresholds"] = m.thresholds(g, e.b)
	}
	_, fused := g.(inModel)
	if fused && m.family.glm != nil && m.family.canonical() && len(p.means) > 0 &&
		len(m.rows.Added) == 0 {
		return a, weights{e.b, true}, p.rest(e, data)
	}
	a.eta = g.each(p.eta(e, data))
	a.mu = inverse(m.family.linked(), a.eta)
	return a, w, rest
}

// nominal adds the logits of categories without an order, and the parameters beside them.
func (m *Model) nominal(a *args, g getter, data dataOf) {
	a.logits = []any{nil}
	for _, p := range m.predictors[:m.categories-1] {
		a.logits = append(a.logits, g.each(p.eta(p.sites(g, m, torch.Tensor{}), data)))
	}
	a.logits[0] = a.logits[1].(torch.Tensor).Mul(0)
	for _, name := range m.family.params {
		a.of[name] = m.parameter(g, name, data)
	}
	if m.family.trials {
		a.trials = data("trials")
	}
}

// parameter is one beside the mean.
func (m *Model) parameter(g getter, name string, data dataOf) torch.Tensor {
	if name == "sigma" && m.rows.Added["se"] != nil {
		return data("se")
	}
	of := parameters[name]
	for _, p := range m.predictors[1:] {
		if p.param == name {
			return inverse(of.link, g.each(p.eta(p.sites(g, m, torch.Tensor{}), data)))
		}
	}
	return m.scalar(g, isParameter, name, of.says(m.scale), func() dist.Distribution { return of.prior(m.scale) })
}

// thresholds are the cutpoints of ordered categories where each column has its mean: numbers from N(0, 2.5²), which are
// put in order where the family has them in order. Kept are those where all columns are 0.
func (m *Model) thresholds(g getter, b torch.Tensor) torch.Tensor {
	n, p := m.categories-1, m.predictors[0]
	var labels []string
	for i := range n {
		labels = append(labels, fmt.Sprint(i+1))
	}
	site := "thresholds"
	if len(p.means) > 0 {
		site = "thresholds_centred"
	}
	m.note(isThresholds, "thresholds", labels)
	m.note(isNeeded, site, labels)
	loc, scale := 0.0, 2.5
	if d, ok := m.find("thresholds"); ok {
		if loc, scale, ok = normalNumbers(d); !ok {
			panic(&ppl.SiteError{Site: "thresholds", Message: "their prior must be a dist.Normal of numbers: each is drawn " +
				"from it"})
		}
	}
	says := fmt.Sprintf("Normal(%.3g, %.3g)", loc, scale)
	of := func() dist.Distribution { return dist.Normal(loc, scale).Expand(n) }
	if !m.family.free {
		says += ", in order"
		of = func() dist.Distribution { return models.OrderedNormal(loc, scale, n) }
	}
	m.describe(site, says)
	at := g.sample(site, of)
	if len(p.means) > 0 {
		g.keep("thresholds", at.Add(b.Dot(torch.New(p.means))))
	}
	return at
}

// truncated is a law within the bounds of the outcome.
func (m *Model) truncated(d dist.Distribution, data dataOf) dist.Distribution {
	if !m.bounds {
		return d
	}
	return dist.Truncated(d, data("lower"), data("above"))
}

// inModel declares sites.
type inModel struct{ c *ppl.Ctx }

func (g inModel) sample(site string, d func() dist.Distribution) torch.Tensor {
	return g.c.Sample(site, d())
}
func (g inModel) ctx() *ppl.Ctx                             { return g.c }
func (g inModel) keep(site string, value torch.Tensor)      { g.c.Deterministic(site, value) }
func (inModel) grown(_ string, e groupEffects) torch.Tensor { return e.r }
func (inModel) each(eta torch.Tensor) torch.Tensor          { return eta }
func (g inModel) impute(i imputation, d dist.Distribution, x torch.Tensor) (full torch.Tensor) {
	g.c.Plate("rows", 0, func(c *ppl.Ctx) { full = c.Impute(i.column, d, x, i.missing) })
	return full
}
func (inModel) known(string) (torch.Tensor, bool) { return torch.Tensor{}, false }

// ScaledNormals names none of the effects of groups: the data have chosen their forms.
func (m *Model) ScaledNormals() ([]string, error) { return nil, nil }

// Draws maps draws on unconstrained space to named values, with labels.
func (m *Model) Draws(unconstrained *draws.Draws, batch infer.Batch) (*draws.Draws, error) {
	d, err := m.Program.Draws(unconstrained, m.fewRows(batch))
	if err != nil {
		return nil, err
	}
	for _, s := range d.Sites() {
		if of := m.site(s.Name); of.labels != nil {
			if err := d.Label(s.Name, of.labels...); err != nil {
				return nil, err
			}
		}
	}
	return d, nil
}

// fewRows is a batch of the first row where no value that is named depends on rows: a draw of many rows takes their
// memory.
func (m *Model) fewRows(batch infer.Batch) infer.Batch {
	if len(m.imputed) > 0 || m.family.partial {
		return batch
	}
	out := infer.Batch{}
	for key, t := range batch {
		if m.cells != nil && m.cells.has(key) {
			continue
		}
		if len(t.Shape()) == 0 || t.Shape()[0] != m.rows.N {
			return batch
		}
		out[key] = t.Slice(0, 0, 1)
	}
	return out
}

// String is the model in words: formulas, family and priors.
func (m *Model) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nfamily %s, link %s\n%d rows", m.formula.Mean, m.family.name, m.family.linked(), m.rows.N)
	if m.dropped > 0 {
		fmt.Fprintf(&b, ", %d with missing values left out", m.dropped)
	}
	if m.cells != nil {
		fmt.Fprintf(&b, ", merged to %d with different columns", m.cells.count)
	}
	if slices.ContainsFunc(m.predictors, func(p *predictor) bool { return p.turn != nil }) {
		b.WriteString("\ncolumns depend on each other: coefficients are sampled in an orthogonal basis")
	}
	if m.family.ordinal && m.levels != nil {
		b.WriteString("\ncategories " + strings.Join(m.levels, " < "))
	}
	b.WriteString("\npriors\n")
	width := 0
	for _, p := range m.priors {
		width = max(width, len([]rune(p.Name)))
	}
	for _, p := range m.priors {
		fmt.Fprintf(&b, "  %-*s  %s", width, p.Name, p.Law)
		if p.Own {
			b.WriteString(" (given)")
		}
		b.WriteString("\n")
	}
	return b.String()
}
