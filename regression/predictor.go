package regression

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/internal/formula"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// predictor is the linear predictor of a parameter of the family:
//
//	η = offset + intercept + X b + Σ_g X_g r_g[level] + Σ_s Z_s w_s + Σ_f Φ_f √S_f z_f + Σ_m b_m D_m Σ_(i ≤ level) ζ_i
//
// Columns of X are less their mean over the training data; the intercept is that at the means. For each group
//
//	r = z Lᵀ diag(sd),  z ~ N(0, 1),  L ~ LKJCholesky(eta)
//
// with a row of r for each level, and w_s = sd_s z_s for each smooth. A Gaussian process has the functions Φ, less
// their means over the training data, and the spectral density S of gp.Hilbert. A monotonic effect of D + 1 levels has
// shares ζ ~ Dirichlet(1) of its D steps, the mean of which is b. Where data say much about each level r is a site with
// that law itself (Betancourt and Girolami 2015, Hamiltonian Monte Carlo for hierarchical models).
type predictor struct {
	param  string // "" for the mean
	design *formula.Design
	rows   *formula.Rows // of the training data
	means  []float64     // of the columns of X
	sds    []float64     // of them
	group  [][]float64   // standard deviations of the columns of each group
	spans  []span        // of each smooth
	// centred are the groups whose effects are sites themselves, by name; others are made of standard normal numbers.
	centred map[string]bool
	process []process // of each smooth that is a Gaussian process
	turn    *turn     // of coefficients that depend on each other; nil for others
	scale   float64   // s of the default priors
	centre  float64   // of the prior of the intercept
	shared  bool      // its data are those of other predictors too
	plain   bool      // it has no intercept: thresholds stand for it
}

// getter gives a predictor its sites: a model samples them, a prediction takes them from draws.
type getter interface {
	sample(site string, d func() dist.Distribution) torch.Tensor
	keep(site string, value torch.Tensor)
	// known is a value that a draw has, which spares what it is made of.
	known(site string) (torch.Tensor, bool)
	// grown are the effects of the levels of a group, with those that only a prediction has.
	grown(name string, e groupEffects) torch.Tensor
	// impute has the values of a column with those that are missing, of the law d.
	impute(i imputation, d dist.Distribution, x torch.Tensor) torch.Tensor
	// each is a predictor for each row, where it may be one for all.
	each(eta torch.Tensor) torch.Tensor
}

// effects are the coefficients of a predictor.
type effects struct {
	intercept torch.Tensor     // at the means of the columns
	b         torch.Tensor     // [K]
	groups    []groupEffects   // as Design.Groups
	smooths   []torch.Tensor   // of the columns of s, t2 and gp, or the coefficient of a product
	steps     [][]torch.Tensor // of a product, for each mo() what its levels have; none for mi()
}

// groupEffects are the coefficients of a group's levels, r, [levels, columns], and what new levels are drawn from.
type groupEffects struct {
	r, sd, chol torch.Tensor
	correlated  bool
}

// suffix is that of the sites of a predictor.
func (p *predictor) suffix() string {
	if p.param == "" {
		return ""
	}
	return "_" + p.param
}

// sites declares the coefficients. sigma is the standard deviation of the residuals, where a prior needs it.
func (p *predictor) sites(g getter, m *Model, sigma torch.Tensor) (e effects) {
	suffix := p.suffix()
	names := p.design.Names()
	e.intercept = torch.Of(0)
	switch {
	case len(names) == 0:
	case p.param == "" && m.formula.Horseshoe != nil:
		e.b = p.shrunk(g, m, "Horseshoe", p.scale, func(c *ppl.Ctx, n int) torch.Tensor {
			return m.formula.Horseshoe.Sample(c, "horseshoe", n)
		})
	case p.param == "" && m.formula.R2D2 != nil:
		scale := p.scale
		if sigma != (torch.Tensor{}) {
			scale = 1
		}
		e.b = p.shrunk(g, m, "R2D2", scale, func(c *ppl.Ctx, n int) torch.Tensor {
			r := *m.formula.R2D2
			if sigma != (torch.Tensor{}) {
				r.Noise = sigma
			}
			return r.Sample(c, "r2d2", n)
		})
	case p.turn != nil:
		e.b = p.turned(g, m)
	default:
		e.b = m.vector(g, isCoefficient, "b"+suffix, names, []string{"b" + suffix}, over(2.5*p.scale, p.sds),
			func(s any) dist.Distribution { return dist.Normal(0, s) }, "Normal(0, %.3g)")
	}
	if p.design.Intercept() && !p.plain {
		e.intercept = p.intercept(g, m)
	}
	for i, gd := range p.design.Groups() {
		e.groups = append(e.groups, p.levels(g, m, gd, p.group[i]))
	}
	for i, s := range p.design.Smooths() {
		w, steps := p.smooth(g, m, i, s)
		e.smooths, e.steps = append(e.smooths, w), append(e.steps, steps)
	}
	if p.design.Intercept() && !p.plain && p.centres() {
		at := e.intercept
		if len(p.means) > 0 {
			at = at.Sub(e.b.Dot(torch.New(p.means)))
		}
		for i, s := range p.spans {
			if s.mean != 0 {
				at = at.Sub(e.smooths[i].Mul(s.mean))
			}
		}
		g.keep("intercept"+suffix, at)
	}
	return e
}

// centres says whether columns are less their means.
func (p *predictor) centres() bool {
	return len(p.means) > 0 || slices.ContainsFunc(p.spans, func(s span) bool { return s.mean != 0 })
}

// shrunk are coefficients with a joint prior that shrinks them, of columns of unit variance, times a scale.
func (p *predictor) shrunk(g getter, m *Model, name string, scale float64,
	prior func(c *ppl.Ctx, n int) torch.Tensor) torch.Tensor {
	m.note(isCoefficient, "b", p.design.Names())
	m.describe("b", fmt.Sprintf("%s of columns of unit variance, times %.3g", name, scale))
	if b, ok := g.known("b"); ok {
		return b
	}
	b := prior(g.(interface{ ctx() *ppl.Ctx }).ctx(), len(p.means)).Mul(torch.New(over(scale, p.sds)))
	g.keep("b", b)
	return b
}

// intercept declares the intercept at the means.
func (p *predictor) intercept(g getter, m *Model) torch.Tensor {
	suffix := p.suffix()
	site, r := "intercept"+suffix, isIntercept
	if m.note(r, site); p.centres() {
		site, r = "intercept_centred"+suffix, isNeeded
	}
	return m.scalar(g, r, site, fmt.Sprintf("Normal(%.3g, %.3g)", p.centre, 2.5*p.scale),
		func() dist.Distribution { return dist.Normal(p.centre, 2.5*p.scale) }, "intercept"+suffix)
}

// levels declares the coefficients of a group.
func (p *predictor) levels(g getter, m *Model, d formula.GroupDesign, sds []float64) (e groupEffects) {
	suffix := p.suffix()
	name := m.groupName(d, p)
	n, k := len(d.Levels), len(d.Columns)
	e.sd = m.vector(g, isSD, "sd_"+name, d.Columns, []string{"sd_" + name, "sd" + suffix}, over(2.5*p.scale, sds),
		func(s any) dist.Distribution { return dist.HalfNormal(s) }, "HalfNormal(%.3g)")
	if e.correlated = d.Correlated && k > 1; e.correlated {
		m.note(isNeeded, "L_"+name)
		e.chol = g.sample("L_"+name, func() dist.Distribution { return dist.LKJCholesky(k, m.eta()) })
		m.describe("cor_"+name, fmt.Sprintf("LKJ(%g)", m.eta()))
		g.keep("cor_"+name, m.correlations(e.chol, "cor_"+name, d.Columns))
	}
	m.note(isEffect, "r_"+name, d.Levels, d.Columns)
	if r, ok := g.known("r_" + name); ok {
		e.r = r
		e.r = g.grown(name, e)
		return e
	}
	if p.centred[d.Name] {
		e.r = g.sample("r_"+name, func() dist.Distribution { return e.law(n, k) })
		return e
	}
	z := g.sample("z_"+name, func() dist.Distribution { return dist.Normal(0, 1).Expand(n, k) })
	e.r = e.spread(z)
	g.keep("r_"+name, e.r)
	return e
}

// law is that of the effects of n levels.
func (e groupEffects) law(n, k int) dist.Distribution {
	if e.correlated {
		scale := e.sd.Unsqueeze(1).Mul(e.chol)
		return dist.MultivariateNormalCholesky(torch.Zeros(k), scale).Expand(n)
	}
	return dist.Normal(0, e.sd).Expand(n, k)
}

// spread makes effects of standard normal numbers, [n, k].
func (e groupEffects) spread(z torch.Tensor) torch.Tensor {
	if e.correlated {
		z = z.MatMul(e.chol.Transpose())
	}
	return z.Mul(e.sd)
}

// correlations are those of pairs of columns, by a Cholesky factor.
func (m *Model) correlations(chol torch.Tensor, site string, columns []string) torch.Tensor {
	var at []int
	var labels []string
	k := len(columns)
	for i := range k {
		for j := range i {
			at = append(at, i*k+j)
			labels = append(labels, columns[j]+","+columns[i])
		}
	}
	m.note(isCorrelation, site, labels)
	return chol.MatMul(chol.Transpose()).Reshape(k*k).IndexSelect(0, torch.New(at))
}

// over is a scale over standard deviations; a column that is the same in each row has the scale.
func over(scale float64, sds []float64) []float64 {
	out := make([]float64, len(sds))
	for i, sd := range sds {
		if out[i] = scale; sd > 0 {
			out[i] = scale / sd
		}
	}
	return out
}

// data names a tensor of the predictor in a batch.
func (p *predictor) data(format string, args ...any) string {
	name := fmt.Sprintf(format, args...)
	if p.shared {
		return name
	}
	return name + p.suffix()
}

// rest is the predictor without X b: [N], or [] for an intercept alone.
func (p *predictor) rest(e effects, data dataOf) torch.Tensor {
	out := e.intercept
	if len(p.design.Formula().Offsets) > 0 {
		out = data(p.data("offset")).Add(out)
	}
	for i, d := range p.design.Groups() {
		for j, name := range d.Columns {
			r := e.groups[i].r.Slice(1, j, j+1).Squeeze(1)
			sum := r.IndexSelect(0, data(p.data("g%d_index0", i)))
			for k := range d.Members {
				switch weight := p.data("g%d_weight%d", i, k); {
				case d.Members == 1:
				case k == 0:
					sum = sum.Mul(data(weight))
				default:
					sum = sum.Add(r.IndexSelect(0, data(p.data("g%d_index%d", i, k))).Mul(data(weight)))
				}
			}
			if name != "Intercept" {
				sum = sum.Mul(data(p.data("g%d_x%d", i, j)))
			}
			out = out.Add(sum)
		}
	}
	for i, s := range p.design.Smooths() {
		if s.Kind == "product" {
			out = out.Add(p.product(i, s, e.smooths[i], e.steps[i], data))
		} else {
			out = out.Add(data(p.data("z%d", i)).MatMul(e.smooths[i]))
		}
	}
	return out
}

// product is that of mo() and mi(), of their coefficient b, and of what else is in it.
func (p *predictor) product(i int, s formula.SmoothDesign, b torch.Tensor, steps []torch.Tensor,
	data dataOf) torch.Tensor {
	var values torch.Tensor
	for k, f := range s.Factors {
		x := data(p.data("z%d_%d", i, k))
		if f.Levels != nil {
			x = steps[k].IndexSelect(0, x)
		}
		if k > 0 {
			x = values.Mul(x)
		}
		values = x
	}
	if s.Columns > len(s.Factors) {
		values = values.Mul(data(p.data("z%d_rest", i)))
	}
	if mean := p.spans[i].mean; mean != 0 {
		values = values.Sub(mean)
	}
	return values.Mul(b)
}

// eta is the predictor of each row.
func (p *predictor) eta(e effects, data dataOf) torch.Tensor {
	out := p.rest(e, data)
	if len(p.means) > 0 {
		out = data(p.data("x")).MatMul(e.b).Add(out)
	}
	return out
}
