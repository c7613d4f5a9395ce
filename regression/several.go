package regression

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/formula"
	"github.com/kelvin-ppl/kelvin/internal/sample"
	"github.com/kelvin-ppl/kelvin/torch"
)

// join makes the family of several outcomes, mvbind(y, z): normal with a linear predictor for the mean of each, and
//
//	y ~ N(η, diag(sigma) R diag(sigma)),  R = L Lᵀ,  L ~ LKJCholesky(eta)
//
// Its params are the outcomes, which may have formulas of their own.
func (m *Model) join(o formula.Outcome) error {
	if !o.Several() || o.Value.Name != "mvbind" {
		return nil
	}
	if m.family.name != "gaussian" || !m.family.canonical() {
		return &infer.FieldError{Type: typeName, Field: "Family", Value: m.family.name,
			Allowed: "several outcomes, " + o.Value.String() + ", are Gaussian{} with the link identity"}
	}
	s := &spec{name: "gaussian", links: []string{"identity"}, scaled: true, joint: true, allowed: number,
		dist: func(a args) dist.Distribution {
			return dist.MultivariateNormalCholesky(a.stacked(), a.of["sigma"].Unsqueeze(1).Mul(a.of["L"]))
		},
		mean: args.stacked}
	for _, a := range o.Value.Args {
		s.params = append(s.params, a.Name)
	}
	m.family = s
	return nil
}

// forEachOutcome puts a predictor for each outcome in the place of the one for all and of those with formulas.
func (m *Model) forEachOutcome() {
	common, own := m.predictors[0], m.predictors[1:]
	m.predictors = nil
	for k, name := range m.levels {
		p := *common
		p.param, p.shared = name, true
		for _, other := range own {
			if other.param == name {
				p = *other
			}
		}
		y := formula.Every(m.rows.Y, k, len(m.levels))
		mean, sd := sample.Moments(y)
		if p.centre, p.scale = mean, 1; sd > 0 {
			p.scale = sd
		}
		p.centred = p.informed(y, nil)
		m.predictors = append(m.predictors, &p)
	}
}

// jointly are the parameters of the law of several outcomes.
func (m *Model) jointly(g getter, data dataOf) (a args) {
	var scales []float64
	for _, p := range m.predictors {
		a.logits = append(a.logits, g.each(p.eta(p.sites(g, m, torch.Tensor{}), data)))
		scales = append(scales, p.scale)
	}
	sigma := m.vector(g, isParameter, "sigma", m.levels, []string{"sigma"}, scales, func(s any) dist.Distribution {
		return dist.Exponential(torch.Of(s).Reciprocal())
	}, "Exponential(mean %.3g)")
	m.note(isNeeded, "L_rescor")
	chol := g.sample("L_rescor", func() dist.Distribution { return dist.LKJCholesky(len(m.levels), m.eta()) })
	m.describe("rescor", fmt.Sprintf("LKJ(%g)", m.eta()))
	g.keep("rescor", m.correlations(chol, "rescor", m.levels))
	a.of = map[string]torch.Tensor{"sigma": sigma, "L": chol}
	return a
}

// wide says whether what is expected is a column for each category or outcome.
func (m *Model) wide() bool { return m.family.logits != nil || m.family.joint }
