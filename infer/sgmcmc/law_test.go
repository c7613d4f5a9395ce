package sgmcmc_test

import (
	"math"
	"math/cmplx"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
)

// law is the recursion of a method on a Gaussian target exp(−½(θ − μ)ᵀΛ(θ − μ)) as an affine map of x = θ − μ, or of
// x = (θ − μ, m):
//
//	x' = Ax + w,   w of covariance Q, independent of x
//
// Its stationary law is N(0, Σ) with Σ = AΣAᵀ + Q: the law of the chain at this step size, not that of the target.
type law struct {
	a, q *mat.Dense
}

// setting are the numbers of a method's update on a Gaussian target.
type setting struct {
	precision        *mat.SymDense // Λ
	eps, temperature float64
	beta, noise      float64 // β, and the variance V of the gradient noise in every coordinate
	alpha, sigma     float64 // of SGHMC
}

func (s setting) dim() int { return s.precision.SymmetricDim() }

// sgld is θ' − μ = (I − εΛ)(θ − μ) + ε·(gradient noise) + √(Tε(2 − Tεβ)) z.
func (s setting) sgld() law {
	d := s.dim()
	l := law{mat.NewDense(d, d, nil), mat.NewDense(d, d, nil)}
	for i := range d {
		for j := range d {
			l.a.Set(i, j, one(i == j)-s.eps*s.precision.At(i, j))
		}
		l.q.Set(i, i, s.temperature*s.eps*(2-s.temperature*s.eps*s.beta)+s.eps*s.eps*s.noise)
	}
	return l
}

// sghmc is θ' − μ = (θ − μ) + ερm and m' = m − εΛ(θ − μ) − ερα m + ε·(gradient noise) + √(Tε(2α − Tεβ)) z,
// with ρ = σ⁻².
func (s setting) sghmc() law {
	d, rho := s.dim(), 1/(s.sigma*s.sigma)
	l := law{mat.NewDense(2*d, 2*d, nil), mat.NewDense(2*d, 2*d, nil)}
	for i := range d {
		for j := range d {
			l.a.Set(i, j, one(i == j))
			l.a.Set(i, d+j, one(i == j)*s.eps*rho)
			l.a.Set(d+i, j, -s.eps*s.precision.At(i, j))
			l.a.Set(d+i, d+j, one(i == j)*(1-s.eps*rho*s.alpha))
		}
		l.q.Set(d+i, d+i, s.temperature*s.eps*(2*s.alpha-s.temperature*s.eps*s.beta)+s.eps*s.eps*s.noise)
	}
	return l
}

// ideal is the covariance of the target itself, which the methods have only at vanishing step size: TΛ⁻¹ for θ, and
// Tσ²I for the momenta when there are any.
func (s setting) ideal(momenta bool) *mat.Dense {
	d := s.dim()
	n := d
	if momenta {
		n = 2 * d
	}
	out, inverse := mat.NewDense(n, n, nil), mat.NewDense(d, d, nil)
	if err := inverse.Inverse(s.precision); err != nil {
		panic(err)
	}
	for i := range d {
		for j := range d {
			out.Set(i, j, s.temperature*inverse.At(i, j))
		}
		if momenta {
			out.Set(d+i, d+i, s.temperature*s.sigma*s.sigma)
		}
	}
	return out
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// covariance solves Σ = AΣAᵀ + Q by doubling: the sum Σ AᵏQ(Aᵏ)ᵀ over the first 2ⁿ terms gives that over 2ⁿ⁺¹. The
// spectral radius must be below 1.
func (l law) covariance() *mat.Dense {
	sigma, power := mat.DenseCopyOf(l.q), mat.DenseCopyOf(l.a)
	for range 64 {
		var next, half, square mat.Dense
		half.Mul(power, sigma)
		next.Mul(&half, power.T())
		next.Add(&next, sigma)
		square.Mul(power, power)
		if mat.Norm(&square, 2) == 0 || mat.Equal(&next, sigma) {
			return &next
		}
		sigma, power = &next, &square
	}
	return sigma
}

// radius is the spectral radius of A: the recursion is stable when it is below 1.
func (l law) radius() float64 {
	var eigen mat.Eigen
	if !eigen.Factorize(l.a, mat.EigenNone) {
		panic("the eigenvalues were not found")
	}
	radius := 0.0
	for _, v := range eigen.Values(nil) {
		radius = max(radius, cmplx.Abs(v))
	}
	return radius
}

// settle is a number of updates after which the start is forgotten: moments are within 1e-8 of the stationary ones,
// relative to where they started.
func (l law) settle() int { return int(math.Ceil(math.Log(1e-8) / math.Log(l.radius()))) }

// correlated is a precision with correlations and eigenvalues between about 0.5 and 2.4.
func correlated() *mat.SymDense {
	return mat.NewSymDense(3, []float64{
		1.5, 0.6, -0.3,
		0.6, 1.2, 0.4,
		-0.3, 0.4, 1.3,
	})
}

// scalar is the precision of a target of one dimension.
func scalar(lambda float64) *mat.SymDense { return mat.NewSymDense(1, []float64{lambda}) }

func TestSolverSolvesTheLyapunovEquation(t *testing.T) {
	s := setting{precision: correlated(), eps: 0.2, temperature: 0.7, beta: 0.3, noise: 0.4, alpha: 1.5, sigma: 1.3}
	for what, l := range map[string]law{"SGLD": s.sgld(), "SGHMC": s.sghmc()} {
		sigma := l.covariance()
		var half, right mat.Dense
		half.Mul(l.a, sigma)
		right.Mul(&half, l.a.T())
		right.Add(&right, l.q)
		// Doubling rounds at the size of Σ, which is about 1.
		assert.Truef(t, mat.EqualApprox(sigma, &right, 1e-13), "%s: the residual is not zero", what)

		// The same by a linear solve of (I − A⊗A) vec Σ = vec Q, an independent way.
		n, _ := l.a.Dims()
		var kron mat.Dense
		kron.Kronecker(l.a, l.a)
		system, q := mat.NewDense(n*n, n*n, nil), mat.NewVecDense(n*n, nil)
		for i := range n * n {
			for j := range n * n {
				system.Set(i, j, one(i == j)-kron.At(i, j))
			}
			q.SetVec(i, l.q.At(i/n, i%n))
		}
		var vec mat.VecDense
		require.NoError(t, vec.SolveVec(system, q))
		for i := range n * n {
			assert.InDelta(t, vec.AtVec(i), sigma.At(i/n, i%n), 1e-12, "%s: element %d", what, i)
		}
	}
}

// The reference values of the stationary variances of explicit Euler-Maruyama SGHMC for λ = α = σ = T = 1, to all their
// printed digits.
func TestReferenceConstantsOfSGHMC(t *testing.T) {
	for _, c := range []struct{ eps, theta, m float64 }{
		{0.5, 2.15385, 2.46154},
		{0.1, 1.11403, 1.16652},
		{0.01, 1.01013, 1.01515},
	} {
		s := setting{precision: scalar(1), eps: c.eps, temperature: 1, alpha: 1, sigma: 1}
		sigma := s.sghmc().covariance()
		assert.Equal(t, c.theta, math.Round(sigma.At(0, 0)*1e5)/1e5, "variance of theta at step %g", c.eps)
		assert.Equal(t, c.m, math.Round(sigma.At(1, 1)*1e5)/1e5, "variance of the momenta at step %g", c.eps)
	}
}

// In one dimension the equations Σ = AΣAᵀ + Q are three in three unknowns. With c = Var m, a = Var θ, b = Cov(θ, m):
//
//	b = −½ερc,  a = (ρc/λ)(1 − ½ερ(α − ελ)),
//	c = Tα·2/(ρ(2α − ερα² − ελ(2 − ερα − ½ερ(α − ελ))))
func TestClosedFormOfSGHMC(t *testing.T) {
	for _, lambda := range []float64{0.3, 1, 2.5} {
		for _, alpha := range []float64{0.7, 1, 3} {
			for _, sigma := range []float64{0.8, 1, 2} {
				for _, temperature := range []float64{0.25, 1, 4} {
					for _, eps := range []float64{0.01, 0.1, 0.2} {
						s := setting{precision: scalar(lambda), eps: eps, temperature: temperature, alpha: alpha,
							sigma: sigma}
						rho := 1 / (sigma * sigma)
						c := 2 * temperature * alpha / (rho * (2*alpha - eps*rho*alpha*alpha -
							eps*lambda*(2-eps*rho*alpha-eps*rho*(alpha-eps*lambda)/2)))
						b := -eps * rho * c / 2
						a := rho * c / lambda * (1 - eps*rho*(alpha-eps*lambda)/2)
						got := s.sghmc().covariance()
						for i, want := range []float64{a, b, b, c} {
							// The solver's conditioning is 1/(1 − radius²), at most about 1e3 here: 1e-11 is rounding.
							assert.InDelta(t, want, got.At(i/2, i%2), 1e-11*c/rho*max(1, 1/lambda), "%+v, element %d",
								s, i)
						}
						// The statement of the doc comment, to first order: (T/λ)(1 + ελ/α).
						if eps == 0.01 {
							assert.InDelta(t, 1+eps*lambda/alpha, a*lambda/temperature, 3*math.Pow(eps*max(lambda,
								rho)/min(alpha, 1), 2))
						}
					}
				}
			}
		}
	}
}

// SGLD in one dimension: Σ(1 − (1 − ελ)²) = Tε(2 − Tεβ) gives T(1 − εTβ/2)/(λ(1 − ελ/2)).
func TestClosedFormOfSGLD(t *testing.T) {
	for _, lambda := range []float64{0.3, 1, 2.5} {
		for _, temperature := range []float64{0.25, 1, 4} {
			for _, beta := range []float64{0, 0.3} {
				for _, eps := range []float64{0.01, 0.1, 0.5} {
					s := setting{precision: scalar(lambda), eps: eps, temperature: temperature, beta: beta}
					want := temperature * (1 - eps*temperature*beta/2) / (lambda * (1 - eps*lambda/2))
					assert.InEpsilon(t, want, s.sgld().covariance().At(0, 0), 1e-12)
				}
			}
		}
	}
}
