package layers

import (
	"fmt"
	"math"
	"sort"
	"sync"

	"github.com/sugarme/gotch"
	"gonum.org/v1/gonum/integrate/quad"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// GroupLaplace is the law of rows of d elements with the density
//
//	p(θ) = exp(−‖θ‖/scale) / (scale^d Γ(d) S_d),   S_d = 2 π^(d/2) / Γ(d/2)
//
// a Laplace law of the length of each feature: a row of a weight is small as a whole or not at all (Heek and
// Kalchbrenner 2019, with scale 5). The length is Gamma(d, scale). At θ = 0 its gradient is taken as 0.
func GroupLaplace(scale float64) (nn.Law, error) {
	if !(scale > 0) || math.IsInf(scale, 1) {
		return nn.Law{}, fmt.Errorf("layers.GroupLaplace: the scale is %v: it must be greater than 0 and finite: %w",
			scale,
			infer.ErrConfig)
	}
	return nn.Law{Rows: groupLaplace{scale}}, nil
}

type groupLaplace struct{ scale float64 }

func (l groupLaplace) String() string { return fmt.Sprintf("GroupLaplace(%v)", l.scale) }

// LogDensity is that of each row.
func (l groupLaplace) LogDensity(rows torch.Tensor) torch.Tensor {
	d := float64(rows.Shape()[1])
	gamma, _ := math.Lgamma(d)
	// The tiny number makes the gradient at 0 finite; it changes no length that counts.
	return rows.Square().Sum(1).Add(1e-30).Sqrt().Div(-l.scale).Sub(d*math.Log(l.scale) + gamma + logSphere(d))
}

// Draw makes lengths as sums of d exponential numbers.
func (l groupLaplace) Draw(streams *torch.Streams, n, d int) (torch.Tensor, error) {
	return drawRows(streams, n, d, d, func(u torch.Tensor) torch.Tensor { return u.Log().Sum(-1).Mul(-l.scale) })
}

// Direction is the law of rows of d elements with the density
//
//	p(φ) ∝ exp(−d/2 (‖φ‖² − 1)²)
//
// of the directions of [WeightNorm], whose length the outputs do not depend on: it keeps them off 0 and infinity (Heek
// and Kalchbrenner 2019). Its normaliser and its draws of the length are by quadrature.
func Direction() nn.Law { return nn.Law{Rows: direction{}} }

type direction struct{}

func (direction) String() string { return "Direction()" }

// LogDensity is that of each row.
func (direction) LogDensity(rows torch.Tensor) torch.Tensor {
	d := float64(rows.Shape()[1])
	return rows.Square().Sum(1).Sub(1).Square().Mul(-d / 2).Sub(lengthsOf(d).logNormaliser + logSphere(d))
}

// Draw looks lengths up in the table of their distribution.
func (direction) Draw(streams *torch.Streams, n, d int) (torch.Tensor, error) {
	table := lengthsOf(float64(d))
	return drawRows(streams, n, d, 1, func(u torch.Tensor) torch.Tensor {
		v := u.Values()
		for i := range v {
			v[i] = table.quantile(v[i])
		}
		return torch.New(v, u.Shape()[0], n)
	})
}

// lengths is the law of r = ‖φ‖, with the density r^(d−1) exp(−d/2 (r² − 1)²) up to its normaliser.
type lengths struct {
	logNormaliser float64
	low, step     float64
	cumulated     []float64 // of the distribution, at low, low + step, ...; the last is 1
}

var tables sync.Map // of float64 to lengths

func lengthsOf(d float64) lengths {
	if t, ok := tables.Load(d); ok {
		return t.(lengths)
	}
	log := func(r float64) float64 { s := r*r - 1; return (d-1)*math.Log(r) - d/2*s*s }
	// At the mode (d−1)/r = 2 d r (r² − 1). The width is ten standard deviations of the normal law with the curvature
	// there.
	mode := math.Sqrt((1 + math.Sqrt(1+2*(d-1)/d)) / 2)
	width := 10 / math.Sqrt((d-1)/(mode*mode)+d*(6*mode*mode-2))
	low, high := max(0, mode-width), mode+width
	density := func(r float64) float64 { return math.Exp(log(r) - log(mode)) }
	const cells = 2048
	t := lengths{low: low, step: (high - low) / cells, cumulated: make([]float64, cells+1)}
	for i := range cells {
		from := low + float64(i)*t.step
		t.cumulated[i+1] = t.cumulated[i] + quad.Fixed(density, from, from+t.step, 4, quad.Legendre{}, 0)
	}
	total := t.cumulated[cells]
	for i := range t.cumulated {
		t.cumulated[i] /= total
	}
	t.logNormaliser = math.Log(total) + log(mode)
	tables.Store(d, t)
	return t
}

// quantile is linear within a cell, which is a hundredth of a standard deviation wide.
func (t lengths) quantile(u float64) float64 {
	i := min(max(sort.SearchFloat64s(t.cumulated, u), 1), len(t.cumulated)-1)
	below, above := t.cumulated[i-1], t.cumulated[i]
	part := 0.5
	if above > below {
		part = (u - below) / (above - below)
	}
	return t.low + (float64(i-1)+part)*t.step
}

// logSphere is the logarithm of the surface of the unit sphere in d dimensions, 2 π^(d/2)/Γ(d/2).
func logSphere(d float64) float64 {
	gamma, _ := math.Lgamma(d / 2)
	return math.Log(2) + d/2*math.Log(math.Pi) - gamma
}

// drawRows makes n rows of d elements for each chain, in directions that are all alike likely; length makes
// their lengths, [K, n], of uniform numbers [K, n, each].
func drawRows(streams *torch.Streams, n, d, each int, length func(u torch.Tensor) torch.Tensor) (torch.Tensor,
	error) {
	z, err := streams.Normal([]int{n, d}, gotch.Double, gotch.CPU)
	if err != nil {
		return torch.Tensor{}, err
	}
	u, err := streams.Uniform([]int{n, each}, gotch.Double, gotch.CPU)
	if err != nil {
		return torch.Tensor{}, err
	}
	rows := z
	factor := length(u).Div(rows.Square().Sum(-1).Sqrt())
	return rows.Mul(factor.Unsqueeze(-1)), nil
}

// WeightNormPrior is the prior of Heek and Kalchbrenner 2019 for networks with [WeightNorm]: directions have the law
// [Direction], and every other site, the lengths of the features among them, is Laplace with the scale.
func WeightNormPrior(scale float64) nn.Scheme {
	return nn.EachSite(func(s nn.Site) nn.Law {
		if isDirection(s) {
			return Direction()
		}
		return nn.Laplace(scale)
	})
}

func isDirection(s nn.Site) bool { return s.Kind == "WeightNorm" && len(s.Shape) > 1 }
