package infertest

import (
	"math"

	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Evidence is a program with a log evidence in closed form.
type Evidence struct {
	Name  string
	Dim   int
	Prior []float64 // standard deviations of the normal prior, with mean 0
	// Likelihood is the log likelihood of a point of shape [d].
	Likelihood func(x torch.Tensor) torch.Tensor
	LogZ       float64
	// logPrior and draw, which makes a prior draw of unit normal numbers, are of a prior that is not normal.
	logPrior func(x torch.Tensor) torch.Tensor
	draw     func(z []float64)
}

func logNormal(x, variance float64) float64 {
	return -0.5*x*x/variance - 0.5*math.Log(2*math.Pi*variance)
}

func vector(x []float64) torch.Tensor { return torch.New(x) }

func repeat(v float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// EvidenceGaussian has a unit normal prior and one observation y = 1 of each coordinate with noise s_i from 0.1 to 1:
// log Z = Σ log N(1; 0, 1 + s_i²).
func EvidenceGaussian(d int) Evidence {
	k := Evidence{Name: "gaussian", Dim: d, Prior: repeat(1, d)}
	precision := make([]float64, d)
	constant := 0.0
	for i := range d {
		s := 0.1 + 0.9*float64(i)/float64(d-1)
		precision[i] = 1 / (s * s)
		constant -= 0.5 * math.Log(2*math.Pi*s*s)
		k.LogZ += logNormal(1, 1+s*s)
	}
	weights := vector(precision)
	k.Likelihood = func(x torch.Tensor) torch.Tensor {
		return x.Sub(1).Square().Mul(weights).Sum().Mul(-0.5).Add(constant)
	}
	return k
}

// EvidenceMixture has the likelihood 0.3 N(x; (−12, 0), I) + 0.7 N(x; (8, 0), I), whose modes are 20 standard
// deviations apart, and the prior N(0, 10² I).
func EvidenceMixture() Evidence {
	left, right := vector([]float64{-12, 0}), vector([]float64{8, 0})
	k := Evidence{Name: "mixture", Dim: 2, Prior: repeat(10, 2)}
	k.Likelihood = func(x torch.Tensor) torch.Tensor {
		l := x.Sub(left).Square().Sum().Mul(-0.5).Add(math.Log(0.3) - math.Log(2*math.Pi))
		r := x.Sub(right).Square().Sum().Mul(-0.5).Add(math.Log(0.7) - math.Log(2*math.Pi))
		top := l.Max(r)
		return l.Sub(top).Exp().Add(r.Sub(top).Exp()).Log().Add(top)
	}
	z := func(m float64) float64 { return math.Exp(logNormal(m, 101) + logNormal(0, 101)) }
	k.LogZ = math.Log(0.3*z(-12) + 0.7*z(8))
	return k
}

// EvidenceFunnel is Neal's (2003) as the prior of a hierarchical model, v ~ N(0, s²) and x_i ~ N(0, e^v), with n
// observations y_i ~ N(x_i, 2²): Z = ∫ N(v; 0, s²) Π N(y_i; 0, e^v + 4) dv, by the midpoint rule over ±12 s.
func EvidenceFunnel(s float64, n int) Evidence {
	y := make([]float64, n)
	for i := range y {
		y[i] = math.Sin(float64(i + 1))
	}
	data := vector(y)
	k := Evidence{Name: "funnel", Dim: n + 1}
	k.logPrior = func(x torch.Tensor) torch.Tensor {
		v, rest := x.Slice(0, 0, 1).Sum(), x.Slice(0, 1, n+1).Square().Sum()
		own := rest.Mul(v.Neg().Exp()).Add(v.Mul(float64(n))).Add(v.Square().Div(s * s))
		return own.Mul(-0.5).Sub(0.5*float64(n+1)*math.Log(2*math.Pi) + math.Log(s))
	}
	k.draw = func(z []float64) {
		z[0] *= s
		for i := 1; i <= n; i++ {
			z[i] *= math.Exp(z[0] / 2)
		}
	}
	k.Likelihood = func(x torch.Tensor) torch.Tensor {
		return x.Slice(0, 1, n+1).Sub(data).Square().Sum().Div(-8).Sub(0.5 * float64(n) * math.Log(8*math.Pi))
	}
	const steps = 24000
	z, h := 0.0, s/1000
	for i := range steps {
		v := -12*s + (float64(i)+0.5)*h
		log := logNormal(v, s*s)
		for _, e := range y {
			log += logNormal(e, math.Exp(v)+4)
		}
		z += h * math.Exp(log)
	}
	k.LogZ = math.Log(z)
	return k
}

// Program is the target, with draws of its prior.
func (k Evidence) Program() (infer.Program, error) {
	if k.logPrior == nil {
		precision, constant := make([]float64, k.Dim), 0.0
		for i, s := range k.Prior {
			precision[i] = 1 / (s * s)
			constant -= 0.5 * math.Log(2*math.Pi*s*s)
		}
		weights := vector(precision)
		k.logPrior = func(x torch.Tensor) torch.Tensor {
			return x.Square().Mul(weights).Sum().Mul(-0.5).Add(constant)
		}
		k.draw = func(z []float64) {
			for i, s := range k.Prior {
				z[i] *= s
			}
		}
	}
	target := infer.FromParts(func(p infer.Params, b infer.Batch) (prior, likelihood torch.Tensor) {
		x := p.Get("x")
		return k.logPrior(x), k.Likelihood(x)
	}, 1)
	l, err := infer.NewLayout(infer.Shapes{"x": {k.Dim}})
	if err != nil {
		return nil, err
	}
	target.Prior = func(b infer.Batch, s torch.Streams) (infer.Params, error) {
		z, err := s.Normal([]int{k.Dim}, gotch.Double, torch.CPU)
		if err != nil {
			return infer.Params{}, err
		}
		x, err := torch.ToSlice[float64](z)
		if err != nil {
			return infer.Params{}, err
		}
		for i := 0; i < len(x); i += k.Dim {
			k.draw(x[i : i+k.Dim])
		}
		flat, err := torch.FromSlice(x, len(s.Chains), k.Dim)
		return infer.Params{Layout: l, Flat: flat}, err
	}
	start, err := infer.Zeros(l)
	return infer.Handwritten(target, start, nil), err
}
