package regression

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Hurdle is 0 with probability hu and else an outcome of another family that is not 0: of Poisson, NegativeBinomial or
// Geometric, on condition of that, or of Gamma, LogNormal, Weibull, Exponential, InverseGaussian or Beta, which are
// never 0. μ is the mean of that family, without the condition.
type Hurdle struct {
	Of Family // of what is not 0
}

func (f Hurdle) spec() *spec {
	var counts bool
	switch f.Of.(type) {
	case Poisson, NegativeBinomial, Geometric:
		counts = true
	case Gamma, LogNormal, Weibull, Exponential, InverseGaussian, Beta:
	default:
		return &spec{name: "hurdle", wrong: "Hurdle is of Poisson, NegativeBinomial, Geometric, Gamma, LogNormal, Weibull, " +
			"Exponential, InverseGaussian or Beta"}
	}
	s := *f.Of.spec()
	base, mean, safe := s.dist, s.mean, 1.0
	s.name, s.hurdle, s.glm = "hurdle_"+s.name, true, nil
	s.params = append(append([]string{}, s.params...), "hu")
	if _, ok := f.Of.(Beta); ok {
		s.allowed, safe = outcome{func(y, _ float64) bool { return y >= 0 && y < 1 }, "it must be from 0, and below 1"}, 0.5
	} else if !counts {
		s.allowed = outcome{func(y, _ float64) bool { return y >= 0 }, "it must be at least 0"}
	}
	s.dist = func(a args) dist.Distribution {
		h := hurdle{gate: a.of["hu"], base: base(a), safe: safe, counts: counts, mu: a.mu, shape: torch.Of(1)}
		switch f.Of.(type) {
		case Poisson:
			h.poisson, h.none = true, a.mu.Neg()
		case NegativeBinomial, Geometric:
			if shape, ok := a.of["shape"]; ok {
				h.shape = shape
			}
			h.none = a.mu.Div(h.shape).Log1p().Mul(h.shape).Neg()
		}
		if h.batch = h.base.BatchShape(); len(h.batch) == 0 {
			h.batch = h.gate.Shape()
		}
		return h
	}
	s.mean = func(a args) torch.Tensor {
		m := a.mu
		if mean != nil {
			m = mean(a)
		}
		return s.dist(a).(hurdle).more(m)
	}
	return &s
}

// hurdle is the law of [Hurdle]. With p the base's density, and p(0) = 0 where that is of real numbers,
//
//	log p(0) = log gate,  log p(y) = log(1 - gate) + log p(y) - log(1 - p(0))
type hurdle struct {
	gate, mu torch.Tensor
	shape    torch.Tensor // of a negative binomial base
	none     torch.Tensor // log p(0) of a base of counts
	poisson  bool         // the base is Poisson
	base     dist.Distribution
	safe     float64 // a value of the base, which stands for 0
	counts   bool
	batch    []int
}

// Name says of what it is.
func (d hurdle) Name() string { return fmt.Sprintf("Hurdle(%s)", d.base.Name()) }

// BatchShape is that of the gate and the base.
func (d hurdle) BatchShape() []int { return d.batch }

// EventShape is that of a number.
func (hurdle) EventShape() []int { return nil }

// Support is that of the base, with 0.
func (d hurdle) Support() support.Support {
	if d.counts || d.safe < 1 {
		return d.base.Support()
	}
	return support.Nonnegative
}

// Validate is that of the base.
func (d hurdle) Validate() error { return d.base.Validate() }

// Expand broadcasts the batch shape.
func (d hurdle) Expand(batch ...int) dist.Distribution {
	d.batch, d.base = batch, d.base.Expand(batch...)
	return d
}

// LogProb is the log density or log mass.
func (d hurdle) LogProb(y torch.Tensor) torch.Tensor {
	zero := y.Eq(0)
	more := d.base.LogProb(torch.Where(zero, d.safe, y)).Add(d.gate.Neg().Log1p())
	if d.counts {
		more = more.Sub(d.some().Log())
	}
	return torch.Where(zero, d.gate.Log().Add(more.Mul(0)), more)
}

// some is the probability that a count of the base is not 0.
func (d hurdle) some() torch.Tensor { return d.none.Expm1().Neg() }

// more is an expectation of the base, of something that is 0 at 0.
func (d hurdle) more(of torch.Tensor) torch.Tensor {
	of = of.Mul(torch.Of(1).Sub(d.gate))
	if d.counts {
		of = of.Div(d.some())
	}
	return of
}

// Sample draws a count on condition that it is not 0 as that of a process in time that has a rate from a gamma law, or
// 1 for Poisson, and ends at 1: its first event is at t by inversion, and the others follow from then on.
func (d hurdle) Sample(src *dist.Source, sample ...int) torch.Tensor {
	zero := dist.Bernoulli(d.gate).Expand(d.batch...).Sample(src, sample...)
	if !d.counts {
		return d.base.Expand(d.batch...).Sample(src, sample...).Mul(torch.Of(1).Sub(zero))
	}
	u := dist.Uniform(0, 1).Expand(d.batch...).Sample(src, sample...)
	none := torch.Of(1).Sub(u.Mul(d.some())) // the probability that there is no event until t
	var others dist.Distribution
	if d.poisson {
		t := none.Log().Neg().Div(d.mu)
		others = dist.Poisson(torch.Of(1).Sub(t).Mul(d.mu).Max(0))
	} else {
		rate := d.shape.Div(d.mu)
		t := rate.Mul(none.Log().Div(d.shape).Neg().Expm1())
		k := d.shape.Add(1)
		others = dist.NegativeBinomial(torch.Of(1).Sub(t).Max(0).Mul(k).Div(rate.Add(t)), k)
	}
	return others.Sample(src).Add(1).Mul(torch.Of(1).Sub(zero))
}

// Mean is (1 - gate) E(y | y ≠ 0).
func (d hurdle) Mean() torch.Tensor { return d.more(d.base.Mean()) }

// Variance is E y² less the squared mean.
func (d hurdle) Variance() torch.Tensor {
	return d.more(d.base.Variance().Add(d.base.Mean().Square())).Sub(d.Mean().Square())
}
