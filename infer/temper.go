package infer

import (
	"errors"
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// A posterior can be tempered in more than one way. The ways agree at T = 1:
//
//	full          (p(θ) p(y|θ))^(1/T)               the Temperature field of a method, or [TemperFull]
//	likelihood    p(θ) p(y|θ)^(1/T)                 [TemperLikelihood]
//	prior         p(θ)^(1/T) p(y|θ)                 [TemperPrior]
//	observation   p(θ) Π p(y_i|θ)^(1/T)/Z_i(θ)      [TemperObservation], with Z_i(θ) = ∫ p(y|x_i,θ)^(1/T) dy
//
// Only the last is the posterior of a model at every T (Wenzel et al. 2020, sections 2 and M). Each is a function of a
// target to a target; the Jacobian stays as it is.

// Normalizer is Σ log ∫ p(y|x_i,θ)^(1/T) dy over the data, a tensor of shape [], on the scale of the sum over data: of
// a batch of n it counts N/n times. [CategoricalNormalizer] and [NormalNormalizer] give the terms of the sum.
type Normalizer func(p Params, b Batch, temperature float64) torch.Tensor

// TemperFull is the posterior to the power 1/T, the target that a method with Temperature T has. The mode is that of
// the posterior, and a Gaussian has T times its covariance.
func TemperFull(t Target, temperature float64) (Target, error) {
	if err := Constant(temperature).Check("infer.TemperFull", "temperature", 0, 0, true); err != nil {
		return t, err
	}
	if t.Parts != nil {
		return t.Weighted(Weights{Prior: 1 / temperature, Likelihood: 1 / temperature, Jacobian: 1}), nil
	}
	if err := t.check(); err != nil {
		return t, fmt.Errorf("infer.TemperFull: %w", err)
	}
	if own := t.plain; own != nil {
		t.plain = func(x []float64) float64 { return own(x) / temperature }
	}
	f := t.LogPosterior
	t.LogPosterior = func(p Params, b Batch) (torch.Tensor, Aux) {
		value, aux := f(p, b)
		return scale(value, 1/temperature), aux
	}
	return t, nil
}

// AtTemperature is a target whose mode and curvature are those of t on unconstrained space at temperature T: T/N times
// the log Jacobian is part of its LogPosterior. An optimiser, which ignores Jacobians, then finds the mode that a
// Gaussian approximation at temperature T belongs to. At T = 0 it is t without its Jacobian. It has no parts.
func AtTemperature(t Target, temperature float64) Target {
	return Target{LogPosterior: t.Density(temperature / t.N()), Data: t.Data}
}

// TemperLikelihood leaves the prior as it is: log p(θ) + log p(y|θ)/T, as if the data had been seen 1/T times. It is
// the target of a variational objective whose KL divergence to the prior is multiplied by T.
func TemperLikelihood(t Target, temperature float64) (Target, error) {
	return temper("infer.TemperLikelihood", t, temperature, 1, 1/temperature)
}

// TemperPrior leaves the likelihood as it is: log p(θ)/T + log p(y|θ).
func TemperPrior(t Target, temperature float64) (Target, error) {
	return temper("infer.TemperPrior", t, temperature, 1/temperature, 1)
}

// TemperObservation tempers the density of each datum and normalizes it anew, which gives the posterior of another
// model: log p(θ) + log p(y|θ)/T − Σ log ∫ p(y|x_i,θ)^(1/T) dy. For a classifier that is the model with logits divided
// by T; for normal observations the one whose standard deviation is multiplied by √T.
func TemperObservation(t Target, normalizer Normalizer, temperature float64) (Target, error) {
	const name = "infer.TemperObservation"
	tempered, err := temper(name, t, temperature, 1, 1/temperature)
	if err != nil {
		return t, err
	}
	if normalizer == nil {
		return t, &FieldError{Type: name, Field: "normalizer", Value: "nil",
			Allowed: "it is needed, or use infer.TemperLikelihood"}
	}
	parts := tempered.Parts
	out := WithParts(func(p Params, b Batch, w Weights) (torch.Tensor, Aux) {
		value, aux := parts(p, b, w)
		if w.Likelihood == 0 {
			return value, aux
		}
		z := normalizer(p, b, temperature)
		if z == (torch.Tensor{}) {
			torch.Must(z, errors.New(name+": the normalizer returned nil, expected a tensor of shape []"))
		}
		return torch.Must(torch.Combine(torch.Term{Coeff: 1, Tensor: value},
			torch.Term{Coeff: -w.Likelihood, Tensor: z})), aux
	}, t.Data, t.joint)
	if !t.joint {
		out.LogJacobian = t.LogJacobian
	}
	return out, nil
}

func temper(name string, t Target, temperature, prior, likelihood float64) (Target, error) {
	if err := Constant(temperature).Check(name, "temperature", 0, 0, true); err != nil {
		return t, err
	}
	if t.Parts == nil {
		return t, fmt.Errorf("%s: %w: %w", name, errNoParts, ErrConfig)
	}
	return t.Weighted(Weights{Prior: prior, Likelihood: likelihood, Jacobian: 1}), nil
}

// CategoricalNormalizer is log Σ_k p_k^(1/T) over the last dimension of the logits z of p = softmax(z), for use inside
// a [Normalizer]:
//
//	logsumexp(z/T) − logsumexp(z)/T
func CategoricalNormalizer(logits torch.Tensor, temperature float64) torch.Tensor {
	inverse := ts.FloatScalar(1 / temperature)
	last := []int{-1}
	hot := torch.Must(torch.Must(logits.T().MulScalar(inverse, false)).Logsumexp(torch.Int64s(last), false, false))
	cold := torch.Must(logits.T().Logsumexp(torch.Int64s(last), false, false))
	return torch.Must(torch.Combine(torch.Term{Coeff: 1, Tensor: torch.Of(hot)},
		torch.Term{Coeff: -1 / temperature, Tensor: torch.Of(cold)}))
}

// NormalNormalizer is log ∫ N(y; μ, σ²)^(1/T) dy for each element of log σ, for use inside a [Normalizer]:
//
//	(1 − 1/T)(log σ + ½ log 2π) + ½ log T
func NormalNormalizer(logSD torch.Tensor, temperature float64) torch.Tensor {
	c := 1 - 1/temperature
	scaled := torch.Must(logSD.T().MulScalar(ts.FloatScalar(c), false))
	return torch.Of(torch.Must(scaled.AddScalar(ts.FloatScalar(c*0.5*math.Log(2*math.Pi)+0.5*math.Log(temperature)),
		false)))
}
