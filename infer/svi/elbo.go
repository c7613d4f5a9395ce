package svi

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// ELBO is a bound of the log evidence that the Params maximise: [Trace], [MeanField], [Renyi] or [IWAE]. With S samples
// z_s of the guide, ℓ_s = log p(y, z_s) − T log q(z_s).
type ELBO interface {
	// check refuses fields, and a temperature that the bound does not have.
	check(temperature float64) error
	// scores refuses what the score-function gradient cannot do.
	scores(samples int) error
	// bound is a function of ℓ, [K, S]: [K].
	bound(l torch.Tensor, temperature float64) torch.Tensor
	// closed says whether divergences of single variables are computed in closed form.
	closed() bool
	// linear says whether the bound is the mean of ℓ, so that a variable needs only the terms that depend on it.
	linear() bool
}

// Trace is the evidence lower bound, the mean of ℓ_s over samples.
type Trace struct{}

func (Trace) check(float64) error { return nil }
func (Trace) scores(int) error    { return nil }
func (Trace) closed() bool        { return false }
func (Trace) linear() bool        { return true }

func (Trace) bound(l torch.Tensor, _ float64) torch.Tensor {
	return torch.Of(l.T().MustMeanDim([]int64{1}, false, l.T().DType(), false))
}

// MeanField is the evidence lower bound with the divergence of each variable's guide from its prior in closed form,
// given the variables before: less noise (Kingma and Welling 2014, appendix B). Known are the divergences between two
// normal, log-normal, gamma, exponential, beta, Dirichlet, Bernoulli and categorical distributions. At T ≠ 1 the prior
// has its cross-entropy, and the guide T times its entropy, both in closed form. Other variables count as in [Trace],
// and so does one that the guide draws before a variable that is before it in the model.
type MeanField struct{}

func (MeanField) check(float64) error { return nil }
func (MeanField) scores(int) error    { return nil }
func (MeanField) closed() bool        { return true }
func (MeanField) linear() bool        { return true }

func (MeanField) bound(l torch.Tensor, t float64) torch.Tensor { return Trace{}.bound(l, t) }

// IWAE is the importance-weighted bound (Burda, Grosse and Salakhutdinov 2016)
//
//	T log (1/S) Σ_s exp(ℓ_s/T)
//
// It is between the ELBO, which it is for S = 1, and the log evidence, to which it goes with S. A weight is of all of
// the batch. Temperatures must be above 0.
type IWAE struct{}

func (IWAE) check(temperature float64) error { return Renyi{}.positive("svi.IWAE", temperature) }
func (IWAE) closed() bool                    { return false }
func (IWAE) linear() bool                    { return false }

func (IWAE) scores(samples int) error { return Renyi{}.scores(samples) }

func (IWAE) bound(l torch.Tensor, t float64) torch.Tensor { return Renyi{}.bound(l, t) }

// Renyi is the Rényi bound of order α (Li and Turner 2016)
//
//	T/(1 − α) log (1/S) Σ_s exp((1 − α) ℓ_s/T)
//
// with α any number but 1, where the limit is the ELBO. α = 0 is [IWAE]; above 0 the bound is lower, and the guide
// covers less of the posterior; below 0 it is an upper bound in the limit of many samples. Of a finite number of
// samples it is this function's mean that is climbed, and its gradient is without bias. Temperatures must be above 0.
type Renyi struct {
	Alpha float64 // α; default 0
}

func (b Renyi) check(temperature float64) error {
	if math.IsNaN(b.Alpha) || math.IsInf(b.Alpha, 0) || b.Alpha == 1 {
		return &infer.FieldError{Type: "svi.Renyi", Field: "Alpha", Value: b.Alpha,
			Allowed: "it must be finite and not 1, where the bound is svi.Trace"}
	}
	return b.positive("svi.Renyi", temperature)
}

func (Renyi) positive(bound string, temperature float64) error {
	if temperature > 0 {
		return nil
	}
	return &infer.FieldError{Type: name, Field: "Temperature", Value: temperature,
		Allowed: fmt.Sprintf("with %s it must be above 0", bound)}
}

func (Renyi) scores(samples int) error {
	if samples > 1 {
		return nil
	}
	return &infer.FieldError{Type: name, Field: "Samples", Value: samples,
		Allowed: "a bound of weights with score-function gradients needs at least 2 samples, for its baseline"}
}

func (Renyi) closed() bool { return false }
func (Renyi) linear() bool { return false }

func (b Renyi) bound(l torch.Tensor, t float64) torch.Tensor {
	c := (1 - b.Alpha) / t
	n := float64(l.T().MustSize()[1])
	sum := l.T().MustMulScalar(ts.FloatScalar(c), false).MustLogsumexp([]int64{1}, false, false)
	return torch.Of(sum.MustSubScalar(ts.FloatScalar(math.Log(n)), false).MustMulScalar(ts.FloatScalar(1/c), false))
}
