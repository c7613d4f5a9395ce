package vi

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Diag is variational inference with independent elements, q = N(μ, diag e^{2s}) (Kingma and Welling 2014; "mean
// field"). With θ = μ + e^s⊙ε, g the gradient of the log density at θ and r = g + Tε/e^s, it climbs along the means
// over samples of
//
//	∇μ = r
//	∇s = r⊙ε⊙e^s
//
// and, without sticking the landing, of ∇μ = g and ∇s = g⊙ε⊙e^s + T.
//
// The variational parameters are "mean", μ, and "log_sd", s, of d numbers each.
type Diag struct {
	// Optimizer climbs: an infer.GradientMethod without weight decay. nil means optim.Adam, with a learning rate that
	// falls from 0.05 to 0.001 over the first 4000 updates.
	Optimizer   infer.Method
	Samples     int            // S, samples in an update; 0 means 8
	Temperature infer.Schedule // T; nil means 1, the Bayes posterior
	// KLWeight is λ: the objective is λ(T E_q[log q − log|J|] − E_q[log prior]) − E_q[log likelihood]. nil means 1.
	KLWeight infer.Schedule
	// StickTheLanding leaves the score out of the gradient; nil means true.
	StickTheLanding *bool
	Antithetic      bool    // samples in pairs with noise ε and −ε; Samples must be even
	InitScale       float64 // the standard deviation of each element at the start; 0 means 0.1
	Memory          int     // bytes that State.Covariance and State.ScaleFactor may take, [K, d, d]; 0 means 1 GiB
}

// Build checks the configuration and binds it to a target.
func (c Diag) Build(target infer.Target) (infer.Transform, error) {
	return config{name: "vi.Diag", optimizer: c.Optimizer, samples: c.Samples, temperature: c.Temperature,
		klWeight: c.KLWeight, stickTheLanding: c.StickTheLanding, antithetic: c.Antithetic, memory: c.Memory,
		scale: c.InitScale, family: diag{}}.build(target)
}

// Defaults are 4000 updates in the warm-up, which fit the distribution, and then 1000 draws from it.
func (Diag) Defaults() infer.Options { return approx.Defaults() }

type diag struct{}

func (diag) name() string { return "diag" }

func (diag) sites(d int) (infer.Shapes, error) {
	return infer.Shapes{"log_sd": {d}, "mean": {d}}, nil
}

func (diag) noise(d int) int { return d }

func (diag) matrix(int) (what string, columns int, instead string) { return "", 0, "" }

func (diag) start(mean torch.Tensor, scale float64, _ *torch.Streams) torch.Tensor {
	return torch.Of(ts.MustCat([]*ts.Tensor{filled(mean, math.Log(scale)).T(), mean.T()}, 1))
}

func (diag) at(phi infer.Params) gaussian {
	logSD := phi.Get("log_sd").Unsqueeze(1).T()
	return diagGaussian{logSD: torch.Of(logSD), sd: torch.Of(logSD.MustExp(false))}
}

// diagGaussian is s and e^s, both [K, 1, d].
type diagGaussian struct{ logSD, sd torch.Tensor }

func (q diagGaussian) apply(eps torch.Tensor) torch.Tensor {
	return eps.Mul(q.sd)
}

// density is log q = −½|ε|² − Σs − (d/2) log 2π, and u = ε/e^s.
func (q diagGaussian) density(eps, _ torch.Tensor) (logq, u torch.Tensor) {
	return standard(eps, last(q.logSD)), eps.Div(q.sd)
}

func (q diagGaussian) path(a, eps torch.Tensor) torch.Tensor {
	logSD := average(a.Mul(eps)).Mul(q.sd.T().MustSelect(1, 0, false)).T()
	return torch.Of(ts.MustCat([]*ts.Tensor{logSD, average(a).T()}, 1))
}

// score is u for μ and ε² − 1 for s.
func (q diagGaussian) score(u, eps torch.Tensor) torch.Tensor {
	logSD := average(eps.Square()).T().MustSubScalar(ts.FloatScalar(1), false)
	return torch.Of(ts.MustCat([]*ts.Tensor{logSD, average(u).T()}, 1))
}

func (q diagGaussian) factor() torch.Tensor {
	return torch.Of(q.sd.T().MustSelect(1, 0, false).MustDiagEmbed(0, -2, -1, false))
}

func (q diagGaussian) variance() torch.Tensor {
	return torch.Of(q.sd.T().MustSelect(1, 0, false).MustSquare(false))
}

// standard is the log density of μ + Fε for a square F, [K, S]: −½|ε|² − log|det F| − (d/2) log 2π, with log|det F| of
// shape [K, 1].
func standard(eps, logDet torch.Tensor) torch.Tensor {
	d := eps.T().MustSize()[2]
	value := sum(-0.5, last(eps.Square()), -1, logDet)
	return torch.Of(value.T().MustSubScalar(ts.FloatScalar(0.5*float64(d)*math.Log(2*math.Pi)), false))
}
