package regression

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
	"gonum.org/v1/gonum/mat"
)

// turn is a basis of coefficients in which the columns do not depend on each other. With D the standard deviations of
// the columns and C = Rᵀ R their correlations, the coefficients are b = T u, T = D⁻¹ R⁻¹, so that those of u have
// columns of variance 1 and no correlations. The prior of b is kept: N(0, (c D⁻¹)²) is
//
//	u ~ N(0, c² R Rᵀ),
//
// of which root is the Cholesky factor.
type turn struct{ basis, root torch.Tensor }

// dependent is the condition number of C above which coefficients are turned. Below it the metric that warm-up learns
// does as well. Beyond singular there are no digits left.
const dependent, singular = 100, 1e14

// turnable says whether the coefficients have their default priors, independent normal ones, and are not very many.
func (m *Model) turnable(p *predictor) bool {
	names := p.design.Names()
	given := func(name string) bool { _, ok := m.formula.Priors[element("b"+p.suffix(), name)]; return ok }
	_, class := m.formula.Priors["b"+p.suffix()]
	shrunk := p.param == "" && (m.formula.Horseshoe != nil || m.formula.R2D2 != nil)
	return !m.family.nominal && !m.family.joint && len(names) > 1 && len(names) <= 100 && !class && !shrunk &&
		!slices.ContainsFunc(names, given)
}

// correlations are those of the columns.
func (p *predictor) correlations() *mat.SymDense {
	k, n := len(p.means), p.rows.N
	c, row := mat.NewSymDense(k, nil), make([]float64, k)
	sums := c.RawSymmetric().Data
	for i := range n {
		for j := range k {
			row[j] = (p.rows.X[i*k+j] - p.means[j]) / p.sds[j]
			for l := range j + 1 {
				sums[l*k+j] += row[l] * row[j] / float64(n-1)
			}
		}
	}
	return c
}

// newTurn is the basis of a predictor whose columns depend on each other strongly, and nil for others.
func (m *Model) newTurn(p *predictor) *turn {
	if !m.turnable(p) || slices.Contains(p.sds, 0) {
		return nil
	}
	var chol, inner mat.Cholesky
	if !chol.Factorize(p.correlations()) || chol.Cond() < dependent || chol.Cond() > singular {
		return nil
	}
	var r, lower mat.TriDense
	var basis, square mat.Dense
	chol.UTo(&r)
	if basis.Inverse(&r) != nil {
		return nil
	}
	basis.Apply(func(i, _ int, v float64) float64 { return v / p.sds[i] }, &basis)
	square.Mul(&r, r.T())
	k := len(p.means)
	if !inner.Factorize(mat.NewSymDense(k, square.RawMatrix().Data)) {
		return nil
	}
	inner.LTo(&lower)
	root := mat.DenseCopyOf(&lower)
	root.Scale(2.5*p.scale, root)
	tensor := func(m *mat.Dense) torch.Tensor { return torch.New(m.RawMatrix().Data, k, k) }
	out := &turn{tensor(&basis), tensor(root)}
	torch.Detach(out.basis, out.root)
	return out
}

// turned declares the coefficients in the basis of their turn.
func (p *predictor) turned(g getter, m *Model) torch.Tensor {
	site, names := "b"+p.suffix(), p.design.Names()
	m.note(isCoefficient, site, names)
	for k, s := range over(2.5*p.scale, p.sds) {
		m.describe(element(site, names[k]), fmt.Sprintf("Normal(0, %.3g)", s))
	}
	if b, ok := g.known(site); ok {
		return b
	}
	k := len(names)
	u := g.sample("unit_"+site, func() dist.Distribution {
		return dist.MultivariateNormalCholesky(torch.Zeros(k), p.turn.root)
	})
	b := p.turn.basis.MatMul(u)
	g.keep(site, b)
	return b
}
