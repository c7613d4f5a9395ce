package posteriors

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// gpPoisRegr is counts whose log rate is an unknown smooth function (posteriordb, gp_pois_regr):
//
//	rho ~ Gamma(25, 4), alpha ~ HalfN(2), f ~ N(0, K), k_i ~ Poisson(exp f_i)
//	K = alpha² exp(−(x_i − x_j)²/(2 rho²)) + 1e-10 I
//
// The Stan program writes f = L f_tilde with K = L Lᵀ and f_tilde ~ N(0, 1). The counts tell f, so that f_tilde has to
// follow 1/alpha on a narrow, bent ridge, which takes trajectories of hundreds of steps. Here
//
//	f = L (u/s), u_i ~ N(0, s_i), s_i = L_ii for some i and 1 for the others
//
// which is the same law of f, centred for some of its elements (Papaspiliopoulos, Roberts and Sköld 2007). Points are
// taken from far to near, so that L_ii, the spread of f_i when those before are known, falls; centred are those where
// it is greater than the standard error of log k_i, 1/√k_i, at alpha = 2 and at rho's prior mean.
func gpPoisRegr(d *Data) Posterior {
	n := d.count("N", 1)
	x, k := d.vector("x", n), d.vector("k", n)
	order := farFirst(x)
	squares, jitter, counts := make([]float64, n*n), make([]float64, n*n), make([]float64, n)
	back := make([]int, n)
	for i, a := range order {
		jitter[i*n+i], counts[i], back[a] = 1e-10, k[a], i
		for j, b := range order {
			squares[i*n+j] = -0.5 * (x[a] - x[b]) * (x[a] - x[b])
		}
	}
	free := make([]bool, n) // where the element is not centred
	for i, spread := range spreads(squares, n, 25.0/4) {
		if 2*spread*math.Sqrt(math.Max(counts[i], 1)) < 1 {
			free[i] = true
		}
	}
	m := n
	apart, diagonal := d.tensor(squares, m, m), d.tensor(jitter, m, m)
	uncentred, inOrder := keep(d, free, m), d.indices(back)
	return Posterior{
		Model: func(c *ppl.Ctx) {
			rho := c.Sample("rho", dist.Gamma(25, 4))
			alpha := c.Sample("alpha", dist.HalfNormal(2))
			covariance := apart.Div(rho.Square()).Exp()
			l := torch.Of(diagonal.T().MustAddcmul(covariance.T(), alpha.Square().T(), false)).Cholesky()
			s := torch.Where(uncentred, 1, l.Diag())
			u := c.Sample("u", dist.Normal(0, s))
			f := l.MatMul(u.Div(s))
			c.Deterministic("f", f.IndexSelect(0, inOrder))
			c.Plate("data", m, func(c *ppl.Ctx) {
				c.Observe("k", dist.PoissonLog(f), c.Data("k"))
			})
		},
		Batch: infer.Batch{"k": d.tensor(counts, m)},
		// That of the reference's own run: at 0.98 four runs of twenty have a divergence, here three.
		Method: hmc.NUTS{TargetAccept: 0.99},
	}
}

// farFirst is an order of points: the first, and then always the one farthest from those before.
func farFirst(x []float64) []int {
	order, near := []int{}, each(len(x), func(int) float64 { return math.Inf(1) })
	for next := 0; len(order) < len(x); {
		order = append(order, next)
		last := x[next]
		near[next] = -1
		for i := range near {
			near[i] = math.Min(near[i], math.Abs(x[i]-last))
			if near[i] > near[next] {
				next = i
			}
		}
	}
	return order
}

// spreads is the diagonal of the Cholesky factor of exp(squares/rho²): the spread of each point given those before.
func spreads(squares []float64, n int, rho float64) []float64 {
	l, out := make([]float64, n*n), make([]float64, n)
	for i := range n {
		for j := range i + 1 {
			v := math.Exp(squares[i*n+j] / (rho * rho))
			for k := range j {
				v -= l[i*n+k] * l[j*n+k]
			}
			if i == j {
				out[i] = math.Sqrt(math.Max(v, 1e-10)) // what rounding leaves
				l[i*n+i] = out[i]
			} else {
				l[i*n+j] = v / l[j*n+j]
			}
		}
	}
	return out
}
