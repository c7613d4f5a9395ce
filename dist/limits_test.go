package dist_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

type maker = func(p func(v ...float64) torch.Tensor) dist.Distribution

// limited are distributions of each constructor, with the parameters that may be at ends.
func limited() map[string]maker {
	all := maps.Clone(examples)
	type P = func(v ...float64) torch.Tensor
	maps.Copy(all, map[string]maker{
		"Mixture": func(p P) dist.Distribution {
			return dist.Mixture(p(0.3, 0.3, 0.4), dist.Normal(-1, 1), dist.Normal(1, 1), dist.Normal(0, 2))
		},
		"Mixture, by logits": func(p P) dist.Distribution {
			return dist.Mixture(dist.CategoricalLogits(p(0.3, 0.3, 0.4)), dist.Normal(-1, 1), dist.Normal(1, 1),
				dist.Normal(0, 2))
		},
		"MixtureSameFamily": func(p P) dist.Distribution {
			return dist.MixtureSameFamily(p(0.3, 0.7), dist.Gamma(torch.New([]float64{1, 3}), 1))
		},
		"ZeroInflated": func(p P) dist.Distribution { return dist.ZeroInflated(p(0.3), dist.Poisson(p(2))) },
		"TruncatedNormal, ends": func(p P) dist.Distribution {
			return dist.TruncatedNormal(0, 1, p(-1), p(2))
		},
		"Truncated StudentT": func(p P) dist.Distribution {
			return dist.Truncated(dist.StudentT(3, 0, 1), p(-1), p(2))
		},
		"Truncated Gamma":   func(p P) dist.Distribution { return dist.Truncated(dist.Gamma(2, 1), p(1), p(2)) },
		"Truncated Laplace": func(p P) dist.Distribution { return dist.Truncated(dist.Laplace(0, 1), p(-1), p(2)) },
		"Truncated Poisson": func(p P) dist.Distribution { return dist.Truncated(dist.Poisson(p(2)), 0, 9) },
		"Truncated Binomial": func(p P) dist.Distribution {
			return dist.Truncated(dist.Binomial(9, p(0.4)), 0, 5)
		},
		"Multinomial of three": func(p P) dist.Distribution { return dist.Multinomial(3, p(0.3, 0.2, 0.5)) },
		"OrderedLogistic of four": func(p P) dist.Distribution {
			return dist.OrderedLogistic(p(0.5), p(-1, 0.3, 2))
		},
	})
	return all
}

// atEnd is a distribution with an element of a parameter moved, and that parameter.
func atEnd(make maker, k, e int, to float64) (d dist.Distribution, moved torch.Tensor, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	at := -1
	d = make(func(v ...float64) torch.Tensor {
		at++
		v = slices.Clone(v)
		if at == k {
			v[e] = to
		}
		p := torch.New(v)
		if len(v) == 1 {
			p = torch.Scalar(v[0])
		}
		p = torch.Must(torch.Leaf(p))
		if at == k {
			moved = p
		}
		return p
	})
	return d, moved, d.Validate()
}

// At each end of what each parameter may be, the log density and its gradient are the limits: those a step away, to
// what another ten steps change, or infinite where these go on.
func TestEndsAreLimits(t *testing.T) {
	all := limited()
	delete(all, "Delta") // has no density beside its value
	seen := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var shape []int // elements of each parameter
		scoped(t, func() {
			all[name](func(v ...float64) torch.Tensor {
				shape = append(shape, len(v))
				if len(v) == 1 {
					return torch.Scalar(v[0])
				}
				return torch.New(v)
			})
		})
		for k, elements := range shape {
			for e := range elements {
				for _, end := range []struct{ at, beyond, near, far float64 }{
					{0, -1e-6, 1e-9, 1e-8}, {1, 1 + 1e-6, 1 - 1e-9, 1 - 1e-8},
					{math.Inf(1), math.NaN(), 400, 200}, {math.Inf(-1), math.NaN(), -400, -200},
				} {
					scoped(t, func() {
						_, _, inside := atEnd(all[name], k, e, end.at)
						_, _, outside := atEnd(all[name], k, e, end.beyond)
						if inside != nil || outside == nil {
							return
						}
						seen++
						t.Logf("%s, element %d of parameter %d at %v", name, e, k, end.at)
						isLimit(t, all[name], k, e, end.at, end.near, end.far,
							fmt.Sprintf("%s, element %d of parameter %d at %v", name, e, k, end.at))
					})
				}
			}
		}
	}
	t.Logf("%d ends", seen)
	assert.Greater(t, seen, 40)
}

func isLimit(t *testing.T, make maker, k, e int, at, near, far float64, about string) {
	middle := make(func(v ...float64) torch.Tensor {
		if len(v) == 1 {
			return torch.Scalar(v[0])
		}
		return torch.New(v)
	})
	limit, _, _ := atEnd(make, k, e, at)
	var points []torch.Tensor
	for _, d := range []dist.Distribution{middle, limit} {
		x := d.Sample(torch.NewSource(3, 0), 6)
		for i := range 6 {
			points = append(points, torch.Of(x.At(i).T().MustDetach(false)))
		}
	}
	for _, x := range points {
		figure := func(p float64) (logp, grad float64) {
			d, moved, err := atEnd(make, k, e, p)
			if err != nil {
				return math.NaN(), math.NaN()
			}
			sum := d.LogProb(x).Sum()
			if !sum.T().MustRequiresGrad() {
				return sum.Item(), 0
			}
			return sum.Item(), scalarGrad(sum.T(), []torch.Tensor{moved})[0][e]
		}
		logp, grad := figure(at)
		logp1, grad1 := figure(near)
		logp2, grad2 := figure(far)
		what := fmt.Sprintf("%s, x = %v", about, x.Values())
		if tends(t, logp, logp1, logp2, what+": log density") && !math.IsInf(logp, 0) {
			tends(t, grad, grad1, grad2, what+": gradient")
		}
		assert.False(t, math.IsNaN(grad), what+": gradient")
	}
}

// tends says whether a figure is the limit of two that are near, the first ten times as near.
func tends(t *testing.T, limit, near, far float64, about string) bool {
	if far == near || math.Abs(near-far) <= 1e-3*(1+math.Abs(near)) && !math.IsInf(near, 0) {
		if math.IsInf(near, 0) {
			return assert.Equal(t, near, limit, about)
		}
		return assert.InDelta(t, near, limit, math.Abs(near-far)+1e-11*(1+math.Abs(near)), about)
	}
	return assert.True(t, math.IsInf(limit, int(math.Copysign(1, near-far))) || math.IsNaN(near),
		"%s: %v, after %v and %v", about, limit, far, near)
}
