package infer

import (
	"errors"
	"math"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Parts is a log posterior in its two parts, each a tensor of shape []: what tempering needs, because there is more than
// one way to temper a posterior. Both parts are on the same scale, that of the sum over data or that of the mean.
//
// There are three ways, which agree at T = 1:
//
//	full          (p(θ) p(y|θ))^(1/T)               [TemperFull]
//	likelihood    p(θ) p(y|θ)^(1/T)                 [TemperLikelihood]
//	observation   p(θ) Π p(y_i|θ)^(1/T)/Z_i(θ)      [TemperObservation], with Z_i(θ) = ∫ p(y|x_i,θ)^(1/T) dy
//
// Only the last is the posterior of a model at every T. (Wenzel et al. 2020, sections 2 and M.) The Temperature field of a
// method is full tempering, and needs none of these; at T = 0 it is optimisation, of which there is no density.
type Parts func(p Params, b Batch) (logPrior, logLikelihood *ts.Tensor)

// Normalizer is Σ log ∫ p(y|x_i,θ)^(1/T) dy over the data of a batch, a tensor of shape [], on the scale of the log
// likelihood that it belongs to. [CategoricalNormalizer] and [NormalNormalizer] give the terms of the sum.
type Normalizer func(p Params, b Batch, temperature float64) *ts.Tensor

// Join is the log posterior of the parts: log p(θ) + log p(y|θ). Its aux, and that of the tempered ones, are the parts
// before tempering, "log_prior" and "log_likelihood".
func Join(parts Parts) (LogPosterior, error) { return temper("infer.Join", parts, 1, 1, 1) }

// TemperFull is the posterior to the power 1/T: (log p(θ) + log p(y|θ))/T, the target that a method with Temperature T has.
// The mode is that of the posterior, and a Gaussian has T times its covariance.
func TemperFull(parts Parts, temperature float64) (LogPosterior, error) {
	return temper("infer.TemperFull", parts, temperature, 1/temperature, 1/temperature)
}

// TemperLikelihood leaves the prior as it is: log p(θ) + log p(y|θ)/T, as if the data had been seen 1/T times. It is the
// target of a variational objective whose KL divergence to the prior is multiplied by T.
func TemperLikelihood(parts Parts, temperature float64) (LogPosterior, error) {
	return temper("infer.TemperLikelihood", parts, temperature, 1, 1/temperature)
}

// TemperObservation tempers the density of each datum and normalizes it anew, which gives the posterior of another model:
// log p(θ) + log p(y|θ)/T − Σ log ∫ p(y|x_i,θ)^(1/T) dy. For a classifier that is the model with logits divided by T; for
// normal observations the one whose standard deviation is multiplied by √T.
func TemperObservation(parts Parts, normalizer Normalizer, temperature float64) (LogPosterior, error) {
	f, err := temper("infer.TemperObservation", parts, temperature, 1, 1/temperature)
	if err != nil {
		return nil, err
	}
	if normalizer == nil {
		return nil, &FieldError{Type: "infer.TemperObservation", Field: "normalizer", Value: "nil", Allowed: "it is needed, or use infer.TemperLikelihood"}
	}
	return func(p Params, b Batch) (*ts.Tensor, Aux) {
		value, aux := f(p, b)
		z := normalizer(p, b, temperature)
		if z == nil {
			torch.Must(z, errors.New("infer.TemperObservation: the normalizer returned nil, expected a tensor of shape []"))
		}
		return torch.Must(value.Sub(z, false)), aux
	}, nil
}

func temper(name string, parts Parts, temperature, prior, likelihood float64) (LogPosterior, error) {
	if parts == nil {
		return nil, &FieldError{Type: name, Field: "parts", Value: "nil", Allowed: "it is needed"}
	}
	if err := CheckValue(name, "temperature", temperature, 0, true); err != nil {
		return nil, err
	}
	return func(p Params, b Batch) (*ts.Tensor, Aux) {
		logPrior, logLikelihood := parts(p, b)
		if logPrior == nil {
			torch.Must(logPrior, errors.New(name+": the log prior is nil, expected a tensor of shape []"))
		}
		if logLikelihood == nil {
			torch.Must(logLikelihood, errors.New(name+": the log likelihood is nil, expected a tensor of shape []"))
		}
		value := torch.Must(torch.Combine(torch.Term{Coeff: prior, Tensor: logPrior}, torch.Term{Coeff: likelihood, Tensor: logLikelihood}))
		return value, Aux{"log_prior": logPrior, "log_likelihood": logLikelihood}
	}, nil
}

// CategoricalNormalizer is log Σ_k p_k^(1/T) over the last dimension of the logits z of p = softmax(z), for use inside a
// [Normalizer]:
//
//	logsumexp(z/T) − logsumexp(z)/T
func CategoricalNormalizer(logits *ts.Tensor, temperature float64) *ts.Tensor {
	inverse := ts.FloatScalar(1 / temperature)
	last := []int64{-1}
	hot := torch.Must(torch.Must(logits.MulScalar(inverse, false)).Logsumexp(last, false, false))
	cold := torch.Must(logits.Logsumexp(last, false, false))
	return torch.Must(torch.Combine(torch.Term{Coeff: 1, Tensor: hot}, torch.Term{Coeff: -1 / temperature, Tensor: cold}))
}

// NormalNormalizer is log ∫ N(y; μ, σ²)^(1/T) dy for each element of log σ, for use inside a [Normalizer]:
//
//	(1 − 1/T)(log σ + ½ log 2π) + ½ log T
func NormalNormalizer(logSD *ts.Tensor, temperature float64) *ts.Tensor {
	c := 1 - 1/temperature
	scaled := torch.Must(logSD.MulScalar(ts.FloatScalar(c), false))
	return torch.Must(scaled.AddScalar(ts.FloatScalar(c*0.5*math.Log(2*math.Pi)+0.5*math.Log(temperature)), false))
}
