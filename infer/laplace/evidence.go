package laplace

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// PriorOptions are the options of [OptimizePriorPrecision]; the zero value is fine.
type PriorOptions struct {
	// PerSite finds a precision for each site, in place of one for all: for each layer with KFAC, whose weights and
	// bias share theirs.
	PerSite bool
	Mean    *infer.Params // the mean m of the prior; nil means 0
}

// OptimizePriorPrecision finds the prior precision λ that maximises Laplace's approximation of the
// evidence with the point and the curvature of the state held fixed (MacKay 1992; Immer et al. 2021,
// "Scalable marginal likelihood estimation"):
//
//	½ Σ_g (d_g log λ_g − λ_g |θ̂_g − m_g|²) − ½ log |curvature + damping + Λ|
//
// over the groups g of parameters that share a precision. It returns the state with the new prior precision, and that
// precision for the field PriorPrecision and for finding the mode anew. At a maximum of the evidence itself the mode
// for λ gives λ back: repeat the two steps, mode and precision, until λ stays. The curvature must be that of the
// likelihood alone, so a [DenseHessian] must be of a log likelihood.
//
// A group that has its maximum at 0 or infinity, because the data say nothing about it or θ̂ = m, is an error.
func OptimizePriorPrecision(s infer.State, o PriorOptions) (next infer.State, found Precision, err error) {
	const name = "OptimizePriorPrecision"
	p, err := posteriorOf(name, s)
	if err != nil {
		return nil, found, err
	}
	if err := p.single(name); err != nil {
		return nil, found, err
	}
	at := s.Position()
	delta, err := at.Values()
	if err != nil {
		return nil, found, err
	}
	if o.Mean != nil {
		mean, err := o.Mean.Values()
		if err != nil {
			return nil, found, err
		}
		if !o.Mean.Layout.Equal(at.Layout) || len(mean) != len(delta) {
			return nil, found, fmt.Errorf("laplace.%s: Mean has layout %v, expected %v: %w", name, o.Mean.Layout,
				at.Layout, infer.ErrLayout)
		}
		for i, m := range mean {
			delta[i] -= m
		}
	}
	var sites map[string]float64
	err = torch.Do(func(*torch.Scope) error {
		p := p
		p.Temperature = 1
		sites = p.structure().search(p, delta, o.PerSite)
		return nil
	})
	if err != nil {
		return nil, found, fmt.Errorf("laplace.%s: %w", name, err)
	}
	if found = PerSite(sites); !o.PerSite {
		found = Isotropic(sites[at.Layout.Sites[0].Name])
	}
	err = torch.Do(func(scope *torch.Scope) (err error) {
		p.Prior = p.structure().prior(nameOf(p.structure()), at, found)
		p.kept(scope)
		return nil
	})
	return p.structure().state(p), found, err
}

// block is a group of parameters with one precision λ, whose part of the evidence is ½ (d log λ − λ square −
// Σ log(e + λ)).
type block struct {
	sites  []string
	eigen  []float64 // eigenvalues e of the curvature, one for each parameter
	square float64   // |θ̂ − m|²
	eps    float64   // of the type of the curvature
}

func (b *block) add(eigen, delta float64) {
	b.eigen = append(b.eigen, eigen)
	b.square += delta * delta
}

// clean puts eigenvalues that are below 0 by rounding, up to d·ε times the largest, at 0, and returns the largest.
func (b *block) clean() (largest float64) {
	largest = slices.Max(b.eigen)
	for i, e := range b.eigen {
		if math.IsNaN(e) || e < -float64(len(b.eigen))*b.eps*math.Abs(largest) || largest < 0 {
			approx.Fail("the curvature of %q has the eigenvalue %g: there is no best precision for one that is not "+
				"positive: use a Gauss-Newton or Fisher method, or find a better optimum with more updates "+
				"(infer.Options.Warmup): %w", b.sites, e, curvature.ErrIndefinite)
		}
		b.eigen[i] = max(e, 0)
	}
	return largest
}

// best is the λ where the derivative, ½ (Σ e/(λ(e + λ)) − square), is zero. For e ≥ 0 it falls with λ, from infinity to
// below 0, so there is one such λ and it is a maximum; it is found by bisection of log λ. (It is also MacKay's fixed
// point λ = γ/square with γ = Σ e/(e + λ).)
func (b *block) best() float64 {
	if b.clean() <= 0 {
		approx.Fail("the data say nothing about %q, their curvature is 0: there is no best precision", b.sites)
	}
	if b.square == 0 {
		approx.Fail("all of %q is at the mean of the prior: the evidence grows with the precision without end",
			b.sites)
	}
	slope := func(logLambda float64) float64 {
		lambda, sum := math.Exp(logLambda), 0.0
		for _, e := range b.eigen {
			sum += e / (e + lambda)
		}
		return sum/lambda - b.square
	}
	// the precision that no data would give: above the best one, as γ < d
	low := math.Log(float64(len(b.eigen)) / b.square)
	high := low
	for step := 1.0; slope(low) < 0; step *= 2 {
		low -= step
	}
	if math.IsInf(math.Exp(high), 0) || math.Exp(low) == 0 {
		approx.Fail("the best precision of %q is out of the range of numbers", b.sites)
	}
	for range 200 {
		middle := low + (high-low)/2
		if middle == low || middle == high {
			break
		}
		if slope(middle) > 0 {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Exp(low + (high-low)/2)
}

// separate is the best precision of each site where each block can be maximised by itself; one precision for all makes
// one block of them.
func separate(blocks []block, perSite bool) map[string]float64 {
	if !perSite {
		var all block
		for _, b := range blocks {
			all.eps = b.eps
			all.sites, all.eigen = append(all.sites, b.sites...), append(all.eigen, b.eigen...)
			all.square += b.square
		}
		blocks = []block{all}
	}
	out := map[string]float64{}
	for _, b := range blocks {
		lambda := b.best()
		for _, site := range b.sites {
			out[site] = lambda
		}
	}
	return out
}

// coupled is the search for a precision for each site under a dense curvature: each site in turn, the others held
// fixed, until none changes. With r the rest, log |C + Λ| depends on λ_g through the Schur complement M + λ_g I, M =
// C_gg − C_gr (C_rr + Λ_r)⁻¹ C_rg, so each is a problem for block.best; the evidence grows with each.
type coupled struct {
	layout *infer.Layout
	fixed  torch.Tensor // C: the curvature with the damping, [d, d]
	prior  torch.Tensor // Λ to start with, [d, d]
	delta  []float64
}

func (c *coupled) maximize() map[string]float64 {
	start := torch.Must(torch.ToSlice[float64](torch.Of(c.prior.T().MustDiagonal(0, 0, 1, false))))
	lambda := map[string]float64{}
	for _, site := range c.layout.Sites {
		sum := 0.0
		for j := site.Offset; j < site.Offset+site.Size; j++ {
			sum += start[j]
		}
		if lambda[site.Name] = sum / float64(site.Size); sum == 0 {
			lambda[site.Name] = 1
		}
	}
	for range 2000 {
		change := 0.0
		for _, site := range c.layout.Sites {
			var own, rest, restPrior []float64
			for _, other := range c.layout.Sites {
				for j := other.Offset; j < other.Offset+other.Size; j++ {
					if other.Name == site.Name {
						own = append(own, float64(j))
					} else {
						rest, restPrior = append(rest, float64(j)), append(restPrior, lambda[other.Name])
					}
				}
			}
			b := block{sites: []string{site.Name}}
			approx.Try(torch.Do(func(*torch.Scope) error {
				b.eigen = c.schur(own, rest, restPrior)
				return nil
			}))
			for j := site.Offset; j < site.Offset+site.Size; j++ {
				b.square += c.delta[j] * c.delta[j]
			}
			best := b.best()
			change = max(change, math.Abs(math.Log(best/lambda[site.Name])))
			lambda[site.Name] = best
		}
		if change < 1e-9 || len(c.layout.Sites) == 1 { // the evidence is flat at its maximum: it is off by 1e-18 or so
			return lambda
		}
	}
	approx.Fail("the precisions of the sites did not settle in 2000 rounds: use one for all sites")
	return nil
}

// schur are the eigenvalues of M for the parameters own, given the precisions of the rest.
func (c *coupled) schur(own, rest, restPrior []float64) []float64 {
	device := torch.Must(torch.DeviceOf(c.fixed))
	index := func(i []float64) torch.Tensor {
		return torch.Must(torch.FromSliceOn(device, torch.DTypeOf[int](), i))
	}
	part := func(rows, columns []float64) torch.Tensor {
		return torch.Of(c.fixed.T().MustIndexSelect(0, index(rows).T(), false).MustIndexSelect(1, index(columns).T(), false))
	}
	m := part(own, own) // not negative, as C is not, but for rounding
	if len(rest) > 0 {
		inner := part(rest, rest)
		inner.T().MustDiagonal(0, 0, 1, false).MustAdd_(torch.Must(torch.FromSliceOn(device, inner.T().DType(),
			restPrior)).T())
		l, status := inner.T().MustLinalgCholeskyEx(false, false, false)
		if approx.Item(torch.Of(status)) != 0 {
			approx.Fail("the precision of the other sites is %w: give a larger PriorPrecision or Damping to start with",
				curvature.ErrIndefinite)
		}
		half := l.MustLinalgSolveTriangular(part(rest, own).T(), false, true, false, false)
		m = m.Sub(approx.T(torch.Of(half)).MatMul(half).T())
	}
	return torch.Must(torch.ToSlice[float64](torch.Of(m.T().MustLinalgEigvalsh("L", false).MustClampMin(ts.FloatScalar(0),
		false))))
}
