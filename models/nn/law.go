package nn

import (
	"fmt"
	"math"
	"reflect"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// Law is the distribution of the elements of a site, all independent and alike, or of its rows.
type Law struct {
	family family
	scale  float64
	// Rows makes a law of whole rows, independent and alike, in the place of elements: the features of a weight
	// [features, ...]. Its type must be comparable.
	Rows interface {
		// LogDensity is the log density of each of n rows [n, d], with its constants: [n]. It is part of a model.
		LogDensity(rows torch.Tensor) torch.Tensor
		// Draw is n rows of d elements for each of K chains, float64 in main memory: [K, n, d].
		Draw(streams *torch.Streams, n, d int) (torch.Tensor, error)
		String() string
	}
}

type family int

const (
	none family = iota
	normal
	uniform
	doubleExponential
	constant
)

// Normal is N(0, sd²).
func Normal(sd float64) Law { return Law{family: normal, scale: sd} }

// Uniform is the uniform law from −half to half.
func Uniform(half float64) Law { return Law{family: uniform, scale: half} }

// Laplace has the density exp(−|x|/scale) / (2 scale), whose standard deviation is √2 scale.
func Laplace(scale float64) Law { return Law{family: doubleExponential, scale: scale} }

// Constant is the number v. It is for starts; it has no density.
func Constant(v float64) Law { return Law{family: constant, scale: v} }

// String is as the law is written: "Normal(0.5)".
func (l Law) String() string {
	if l.Rows != nil {
		return l.Rows.String()
	}
	return fmt.Sprintf("%s(%v)", [...]string{"no law", "Normal", "Uniform", "Laplace", "Constant"}[l.family], l.scale)
}

// SD is the standard deviation, and 0 for a law of rows.
func (l Law) SD() float64 {
	switch l.family {
	case normal:
		return l.scale
	case uniform:
		return l.scale / math.Sqrt(3)
	case doubleExponential:
		return l.scale * math.Sqrt2
	}
	return 0
}

// LogDensity is the log density at x, and NaN for a constant and a law of rows.
func (l Law) LogDensity(x float64) float64 {
	z := x / l.scale
	switch l.family {
	case normal:
		return -z*z/2 + l.logNormaliser()
	case doubleExponential:
		return -math.Abs(z) + l.logNormaliser()
	case uniform:
		if math.Abs(z) <= 1 {
			return l.logNormaliser()
		}
		return math.Inf(-1)
	}
	return math.NaN()
}

// logNormaliser is the log density at 0.
func (l Law) logNormaliser() float64 {
	if l.family == normal {
		return -math.Log(l.scale) - math.Log(2*math.Pi)/2
	}
	return -math.Log(2 * l.scale)
}

// check refuses laws without a scale.
func (l Law) check(site string) error {
	if l.Rows != nil && !reflect.TypeOf(l.Rows).Comparable() {
		return fmt.Errorf("nn: site %q has a law of rows of type %T: expected one that == compares: %w", site, l.Rows,
			infer.ErrConfig)
	}
	if l.Rows != nil && l.family == none {
		return nil
	}
	ok, allowed := l.scale > 0 && !math.IsInf(l.scale, 1), "its scale must be greater than 0 and finite"
	switch l.family {
	case none:
		return fmt.Errorf("nn: site %q has no law: %w", site, infer.ErrConfig)
	case constant:
		ok, allowed = !math.IsNaN(l.scale) && !math.IsInf(l.scale, 0), "it must be finite"
	}
	if !ok {
		return fmt.Errorf("nn: site %q has the law %v: %s: %w", site, l, allowed, infer.ErrConfig)
	}
	return nil
}

// draw is size elements of a site with so many rows for each of K chains, [K, size].
func (l Law) draw(streams *torch.Streams, size, rows int) torch.Tensor {
	if l.Rows != nil {
		return torch.Must(l.Rows.Draw(streams, rows, size/rows)).Reshape(-1, size)
	}
	shape, scale := []int{size}, ts.FloatScalar(l.scale)
	if l.family == normal {
		return torch.Of(torch.Must(streams.Normal(shape, gotch.Double, gotch.CPU)).T().MustMulScalar(scale, false))
	}
	if l.family == constant {
		return torch.Of(ts.MustFull([]int64{int64(len(streams.Chains)), int64(size)}, scale, gotch.Double, gotch.CPU))
	}
	// Uniform on (−1, 1).
	u := torch.Must(streams.Uniform(shape, gotch.Double, gotch.CPU)).T().
		MustMulScalar(ts.FloatScalar(2), false).
		MustSubScalar(ts.FloatScalar(1), false)
	if l.family == doubleExponential {
		// The inverse of the distribution function: |x| = −scale log(1 − |u|).
		u = u.MustSign(false).MustMul(u.MustAbs(false).MustNeg(false).MustLog1p(false).MustNeg(false), false)
	}
	return torch.Of(u.MustMulScalar(scale, false))
}
