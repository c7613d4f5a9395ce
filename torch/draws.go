package torch

import "github.com/sugarme/gotch/ts"

// Gamma draws gamma numbers of shape alpha > 0 and rate 1, one for each element of alpha, in its type and on its
// device. Gradients flow to alpha (implicit reparameterisation, Figurnov et al. 2018, with libtorch's derivative).
// Numbers too small for the type are 0: see [Source.LogGamma].
func (s *Source) Gamma(alpha *ts.Tensor) (*ts.Tensor, error) {
	logs, err := s.LogGamma(alpha)
	if err != nil {
		return nil, err
	}
	return logs.Exp(false)
}

// LogGamma draws the logarithms of what [Source.Gamma] draws. They do not underflow, however small alpha is.
func (s *Source) LogGamma(alpha *ts.Tensor) (*ts.Tensor, error) { return s.sample(0, alpha, nil) }

// Dirichlet draws probability vectors with the given concentrations, along the last dimension. Gradients flow.
func (s *Source) Dirichlet(concentration *ts.Tensor) (*ts.Tensor, error) {
	logs, err := s.LogGamma(concentration)
	if err != nil {
		return nil, err
	}
	return logs.Softmax(-1, logs.DType(), false)
}

// Poisson draws Poisson numbers, one for each element of rate, in its type.
func (s *Source) Poisson(rate *ts.Tensor) (*ts.Tensor, error) { return s.sample(1, rate, nil) }

// Binomial draws how many of count trials succeed, each with probability prob. The two broadcast.
func (s *Source) Binomial(count, prob *ts.Tensor) (*ts.Tensor, error) {
	return s.sample(2, count, prob)
}

// Multinomial draws how often each category of the last dimension of weights comes up in count trials. The weights need
// not have sum 1. count broadcasts against weights without its last dimension.
func (s *Source) Multinomial(count, weights *ts.Tensor) (*ts.Tensor, error) {
	return s.sample(3, count, weights)
}

// sample draws numbers whose parameters are tensors. Each element has a generator of its own, so a draw is the same
// whatever is drawn beside it.
func (s *Source) sample(op int, a, b *ts.Tensor) (*ts.Tensor, error) {
	return ts.KelvinSample(op, a, b, s.level, s.seeds())
}

// VonMises draws angles from -π to π around 0, one for each element of concentration >= 0, in its type.
func (s *Source) VonMises(concentration *ts.Tensor) (*ts.Tensor, error) {
	return s.sample(4, concentration, nil)
}
