package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// agreement is a calculation that gives the same numbers on every device, up to a difference relative to the larger of
// one and the number.
type agreement struct {
	name      string
	tolerance float64
	numbers   func(device gotch.Device) ([]float64, error)
}

// found is what came of an agreement.
type found struct {
	Name       string  `json:"name"`
	Numbers    int     `json:"numbers"`
	Difference float64 `json:"difference"`
	Tolerance  float64 `json:"tolerance"`
	Error      string  `json:"error,omitempty"`
}

// compare calculates in main memory and on a device.
func (a agreement) compare(device gotch.Device) found {
	f := found{Name: a.name, Tolerance: a.tolerance}
	want, err := a.numbers(torch.CPU)
	if err != nil {
		f.Error = "in main memory: " + err.Error()
		return f
	}
	have, err := a.numbers(device)
	if err != nil {
		f.Error = "on the device: " + err.Error()
		return f
	}
	f.Numbers = len(want)
	if len(have) != len(want) || len(want) == 0 {
		f.Error = fmt.Sprintf("%d numbers in main memory, %d on the device", len(want), len(have))
		return f
	}
	for i, w := range want {
		d := math.Abs(have[i]-w) / max(1, math.Abs(w))
		if have[i] == w {
			d = 0 // infinities too
		}
		if !(d <= a.tolerance) && f.Error == "" {
			f.Error = fmt.Sprintf("number %d is %.17g in main memory and %.17g on the device", i, w, have[i])
		}
		f.Difference = max(f.Difference, d)
	}
	return f
}

// The tolerances: bits, roundings of a normal number of each precision (a few units in the last place of numbers up to
// 8.6), of densities, of sums over data and factors of matrices, and of some updates that build on one another.
const (
	same      = 0
	normal64  = 64 * 0x1p-52
	normal32  = 0x1p-22
	densities = 1e-12
	sums      = 1e-10
	updates   = 1e-8
	updates32 = 1e-4
)

// agreements are those of all rooms.
func agreements() ([]agreement, error) {
	list := append(streams(), algebra()...)
	list = append(list, families()...)
	more, err := programs()
	if err != nil {
		return nil, err
	}
	return slices.Concat(list, more, residual()), nil
}

// inScope runs f in a scope, and reads what it returns.
func inScope(f func() []torch.Tensor) (numbers []float64, err error) {
	err = torch.Do(func(*torch.Scope) error {
		for _, t := range f() {
			numbers = append(numbers, torch.Must(torch.ToSlice[float64](t))...)
		}
		return nil
	})
	return numbers, err
}

// streams are random numbers, with chains one after another and in no order.
func streams() (list []agreement) {
	for _, c := range []struct {
		name      string
		normal    bool
		dtype     gotch.DType
		tolerance float64
	}{
		{"uniform, float64", false, gotch.Double, same}, {"uniform, float32", false, gotch.Float, same},
		{"normal, float64", true, gotch.Double, normal64}, {"normal, float32", true, gotch.Float, normal32},
	} {
		list = append(list, agreement{"torch: " + c.name, c.tolerance, func(device gotch.Device) ([]float64, error) {
			return inScope(func() (out []torch.Tensor) {
				for _, chains := range [][]uint64{{0, 1, 2}, {7, 1, 3}} {
					s := torch.Streams{Seed: 11, Chains: chains, Offset: math.MaxUint32 - 2}
					draw := s.Uniform
					if c.normal {
						draw = s.Normal
					}
					for _, n := range []int{5001, 2} {
						out = append(out, torch.Must(draw([]int{n}, c.dtype, device)))
					}
				}
				return out
			})
		}})
	}
	return list
}

// algebra are functions with their gradients, for one point and mapped over many, and products and factors of matrices.
func algebra() []agreement {
	points := func(device gotch.Device, shape ...int) torch.Tensor {
		n := 1
		for _, size := range shape {
			n *= size
		}
		x := make([]float64, n)
		for i := range x {
			x[i] = 2 * math.Sin(1.7*float64(i)+0.3)
		}
		return torch.Must(torch.FromSliceOn(device, gotch.Double, x, shape...))
	}
	f := func(x torch.Tensor) torch.Tensor {
		t := x
		return t.Exp().Add(t.Square().Add(1).Log()).Add(t.Tanh()).Add(t.Sigmoid()).Add(t.Abs().Sqrt()).Mul(t).Sum()
	}
	return []agreement{
		{"torch: functions and gradient", densities, func(device gotch.Device) ([]float64, error) {
			return inScope(func() []torch.Tensor {
				value, grad, err := torch.ValueAndGrad(f, points(device, 1000))
				return []torch.Tensor{torch.Must(value, err), grad}
			})
		}},
		{"torch: mapped over 64 points", densities, func(device gotch.Device) ([]float64, error) {
			return inScope(func() []torch.Tensor {
				values, grads, err := torch.VmapValueAndGrad(f, points(device, 64, 10))
				return []torch.Tensor{torch.Must(values, err), grads}
			})
		}},
		{"torch: matrices", sums, func(device gotch.Device) ([]float64, error) {
			return inScope(func() []torch.Tensor {
				x := points(device, 60, 40)
				m := x.T().MustTranspose(0, 1, false).MustMatmul(x.T(), false).
					MustAdd(ts.MustEye(40, gotch.Double, device), false)
				return []torch.Tensor{torch.Of(m), torch.Of(m.MustLinalgCholesky(false, false))}
			})
		}},
	}
}

// family is a distribution at parameters on a device, and values to evaluate it at.
type family struct {
	make   law
	values []float64
}

// place makes a parameter of numbers: one alone is a scalar.
type (
	place func(...float64) torch.Tensor
	law   func(p place) dist.Distribution
)

// laws are families of every kind: location and scale, positive, on intervals, of counts, of vectors.
var laws = []family{
	{func(p place) dist.Distribution { return dist.Normal(p(0.3), p(1.2)) }, []float64{-1, 2}},
	{func(p place) dist.Distribution { return dist.StudentT(p(4), p(1), p(2)) },
		[]float64{-1, 9}},
	{func(p place) dist.Distribution { return dist.Laplace(p(0.3), p(1.2)) }, []float64{-1, 2}},
	{func(p place) dist.Distribution { return dist.Cauchy(p(0.3), p(1.2)) }, []float64{-1, 2}},
	{func(p place) dist.Distribution { return dist.Logistic(p(0.3), p(1.2)) }, []float64{-1, 2}},
	{func(p place) dist.Distribution { return dist.Gumbel(p(0.3), p(1.2)) }, []float64{-1, 2}},
	{func(p place) dist.Distribution { return dist.SkewNormal(p(0.3), p(1.2), p(2)) },
		[]float64{-1, 2}},
	{func(p place) dist.Distribution { return dist.HalfNormal(p(1.2)) }, []float64{0.1, 2}},
	{func(p place) dist.Distribution { return dist.HalfCauchy(p(1.2)) }, []float64{0.1, 2}},
	{func(p place) dist.Distribution { return dist.Exponential(p(1.2)) }, []float64{0.1, 2}},
	{func(p place) dist.Distribution { return dist.LogNormal(p(0.3), p(1.2)) },
		[]float64{0.1, 2}},
	{func(p place) dist.Distribution { return dist.Weibull(p(0.8), p(1.2)) }, []float64{0.1, 2}},
	{func(p place) dist.Distribution { return dist.Gamma(p(2.5), p(1.2)) }, []float64{0.1, 2}},
	{func(p place) dist.Distribution { return dist.InverseGamma(p(2.5), p(1.2)) },
		[]float64{0.1, 2}},
	{func(p place) dist.Distribution { return dist.Beta(p(2.5), p(1.2)) }, []float64{0.1, 0.9}},
	{func(p place) dist.Distribution { return dist.Uniform(p(-1), p(1.5)) }, []float64{-0.5, 1}},
	{func(p place) dist.Distribution { return dist.VonMises(p(0.5), p(2)) }, []float64{-1, 2}},
	{func(p place) dist.Distribution {
		return dist.TruncatedNormal(p(0.5), p(2), p(0), p(3))
	},
		[]float64{0.5, 2}},
	{func(p place) dist.Distribution { return dist.Bernoulli(p(0.3)) }, []float64{0, 1}},
	{func(p place) dist.Distribution { return dist.Geometric(p(0.3)) }, []float64{0, 4}},
	{func(p place) dist.Distribution { return dist.Poisson(p(3)) }, []float64{0, 4}},
	{func(p place) dist.Distribution { return dist.Binomial(p(9), p(0.3)) }, []float64{0, 4}},
	{func(p place) dist.Distribution { return dist.NegativeBinomial(p(3), p(2)) },
		[]float64{0, 4}},
	{func(p place) dist.Distribution { return dist.CategoricalLogits(p(0.3, 1, -1)) },
		[]float64{0, 2}},
	{func(p place) dist.Distribution { return dist.Dirichlet(p(2, 0.5, 3)) },
		[]float64{0.2, 0.3, 0.5}},
	{func(p place) dist.Distribution {
		return dist.MultivariateNormalCholesky(p(0.3, -1), p(1, 0, 0.5, 2).Reshape(2, 2))
	}, []float64{0.2, 0.3}},
}

// families are log densities, and draws where a step of the method of drawing cannot turn at a rounding.
func families() (list []agreement) {
	for _, l := range laws {
		of := func(device gotch.Device) dist.Distribution {
			return l.make(func(x ...float64) torch.Tensor {
				if len(x) == 1 {
					return torch.Of(torch.Must(torch.FromSliceOn(device, gotch.Double, x)).T().MustSqueeze(false))
				}
				return torch.Must(torch.FromSliceOn(device, gotch.Double, x, len(x)))
			})
		}
		var name string
		if err := torch.Do(func(*torch.Scope) error {
			name = of(torch.CPU).Name()
			return nil
		}); err != nil {
			name = err.Error()
		}
		list = append(list, agreement{"dist: " + name, sums, func(device gotch.Device) ([]float64, error) {
			return inScope(func() []torch.Tensor {
				d := of(device)
				x := torch.Must(torch.FromSliceOn(device, gotch.Double, l.values, len(l.values)))
				return []torch.Tensor{d.LogProb(x), d.Sample(torch.NewSource(5, 0), 50)}
			})
		}})
	}
	return list
}

// programs are gradients of the models, mapped over three chains, and updates of every method on one of them.
func programs() (list []agreement, err error) {
	all, err := models.All()
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		p, err := m.Compile()
		if err != nil {
			return nil, err
		}
		list = append(list, agreement{"models: " + m.Name, sums, func(device gotch.Device) ([]float64, error) {
			g, start, batch, err := placed(p, 3, device, gotch.Double)
			if err != nil {
				return nil, err
			}
			return inScope(func() []torch.Tensor {
				e := torch.Must(g.ValueAndGrad(start, batch, 1))
				values := torch.New(e.Values, len(e.Values))
				return []torch.Tensor{values, e.Grad}
			})
		}})
		if m.Name != "beetles" {
			continue
		}
		list = append(list, methods(p)...)
	}
	return list, nil
}

// placed is a program's gradient, with a start of some chains and the data on a device.
func placed(p infer.Program, chains int, device gotch.Device, precision gotch.DType) (infer.Gradient, infer.Params,
	infer.Batch, error) {
	none := infer.Params{}
	g, err := infer.NewGradient(p.Target())
	if err != nil {
		return nil, none, nil, err
	}
	start, err := p.Start(p.Batch(), chains, 3)
	if err != nil {
		return nil, none, nil, err
	}
	if start, err = start.To(device, precision); err != nil {
		return nil, none, nil, err
	}
	batch := infer.Batch{}
	for name, t := range p.Batch() {
		dtype, err := torch.DTypeOfTensor(t)
		if err != nil {
			return nil, none, nil, err
		}
		if dtype == gotch.Double {
			dtype = precision
		}
		if batch[name], err = torch.To(t, device, dtype); err != nil {
			return nil, none, nil, err
		}
	}
	return g, start, batch, nil
}
