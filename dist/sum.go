package dist

import (
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// Summer is a distribution that has a shorter way to the sum of its log density than to sum what LogProb gives: one that
// keeps constants out of the tensors, and factors out of the sum. A log posterior is made of such sums.
type Summer interface {
	// SumLogProb is the sum of LogProb(value) over all of its elements: terms of shape [] to be added up, and a number to be added to
	// them. Ok is false where these parameters have no shorter way.
	SumLogProb(value *ts.Tensor, known Known) (terms []torch.Term, constant float64, ok bool)
}

// Known is what the caller of SumLogProb knows.
type Known struct {
	// Inside says that the value is in the support.
	Inside bool
	// Keep returns what f computes from t, now or earlier from the same unchanged t. Nil computes it now. The name tells apart what
	// different f compute from one t.
	Keep func(t *ts.Tensor, name string, f func() []*ts.Tensor) []*ts.Tensor
}

func (k Known) keep(t *ts.Tensor, name string, f func() []*ts.Tensor) []*ts.Tensor {
	if k.Keep == nil {
		return f()
	}
	return k.Keep(t, name, f)
}

// partial is a sum that is being made: terms and a number.
type partial struct {
	terms    []torch.Term
	constant float64
}

// plus adds c Σ v, where v has some of all the elements: each counts as often as it is broadcast.
func (p *partial) plus(c float64, v val, all float64) {
	if v.isNum() {
		p.constant += c * v.c * all
		return
	}
	if shape := v.shape(); len(shape) > 0 {
		c *= all / count64(shape)
		v = ten(v.t.MustSum(v.t.DType(), false))
	} else {
		c *= all
	}
	p.terms = append(p.terms, torch.Term{Coeff: c, Tensor: v.t})
}

// plusProduct adds c Σ v w.
func (p *partial) plusProduct(c float64, v, w val, all float64) {
	if a, b := v.shape(), w.shape(); len(a) == 1 && slices.Equal(a, b) && float64(a[0]) == all {
		p.terms = append(p.terms, torch.Term{Coeff: c, Tensor: v.t.MustDot(w.t, false)})
		return
	}
	p.plus(c, v.mul(w), all)
}

// minusLog subtracts Σ log s.
func (p *partial) minusLog(s val, all float64, k Known) {
	if s.isNum() {
		p.constant -= all * math.Log(s.c)
		return
	}
	shape := s.shape()
	log := k.keep(s.t, "log", func() []*ts.Tensor {
		log := s.log().t
		if len(shape) > 0 {
			log = log.MustSum(log.DType(), false)
		}
		return []*ts.Tensor{log}
	})
	p.terms = append(p.terms, torch.Term{Coeff: -all / count64(shape), Tensor: log[0]})
}

func (p *partial) result() ([]torch.Term, float64, bool) { return p.terms, p.constant, true }

// elements is the number of elements of LogProb, for families with scalar events.
func (b base) elements(value []int64) float64 {
	if len(b.batch) == 0 {
		return count64(value)
	}
	return count64(broadcast(b.family, value, b.batch))
}

func count64(shape []int64) float64 {
	n := 1.0
	for _, s := range shape {
		n *= float64(s)
	}
	return n
}

// sumSquares is −½ Σ ((x − loc)/scale)² − Σ log scale + Σ perElement.
func (b base) sumSquares(value *ts.Tensor, loc, scale val, k Known, perElement float64) ([]torch.Term, float64, bool) {
	all := b.elements(ten(value).shape())
	p := partial{constant: perElement * all}
	z, factor := floated(value).sub(loc), -0.5
	if s := scale.c; scale.isNum() && s > 1e-100 && s < 1e100 {
		factor /= s * s // without overflow: one operation less
	} else {
		z = z.div(scale)
	}
	p.plus(factor, z.square(), all)
	p.minusLog(scale, all, k)
	return p.result()
}

// SumLogProb is the sum of LogProb.
func (d NormalDist) SumLogProb(value *ts.Tensor, known Known) ([]torch.Term, float64, bool) {
	return d.sumSquares(value, d.loc, d.scale, known, -halfLog2Pi)
}

// SumLogProb is the sum of LogProb.
func (d HalfNormalDist) SumLogProb(value *ts.Tensor, known Known) ([]torch.Term, float64, bool) {
	if !known.Inside {
		return nil, 0, false
	}
	return d.sumSquares(value, num(0), d.scale, known, 0.5*math.Log(2/math.Pi))
}

// sumCauchy is −power Σ log(1 + ((x − loc)/scale)²) − Σ log scale + Σ perElement.
func (b base) sumCauchy(value *ts.Tensor, loc, scale val, power float64, k Known, perElement float64) ([]torch.Term, float64, bool) {
	all := b.elements(ten(value).shape())
	p := partial{constant: perElement * all}
	w := floated(value).sub(loc).div(scale).t
	// The hypotenuse does not overflow. What it loses of the square of a small number is below the rounding of the sum.
	h := w.MustHypot(w.MustOnesLike(false), false)
	p.plus(-2*power, ten(h).log(), all)
	p.minusLog(scale, all, k)
	return p.result()
}

// SumLogProb is the sum of LogProb.
func (d CauchyDist) SumLogProb(value *ts.Tensor, known Known) ([]torch.Term, float64, bool) {
	return d.sumCauchy(value, d.loc, d.scale, 1, known, -math.Log(math.Pi))
}

// SumLogProb is the sum of LogProb.
func (d HalfCauchyDist) SumLogProb(value *ts.Tensor, known Known) ([]torch.Term, float64, bool) {
	if !known.Inside {
		return nil, 0, false
	}
	return d.sumCauchy(value, num(0), d.scale, 1, known, math.Log(2/math.Pi))
}

// SumLogProb is the sum of LogProb, for df a number.
func (d StudentTDist) SumLogProb(value *ts.Tensor, known Known) ([]torch.Term, float64, bool) {
	if !d.df.isNum() || d.df.c > 1e4 { // beyond, the logarithm of the hypotenuse would lose digits
		return nil, 0, false
	}
	n := d.df.c
	return d.sumCauchy(value, d.loc, d.scale.mul(num(math.Sqrt(n))), (n+1)/2, known, -logBeta(num(n/2), num(0.5)).c)
}

// SumLogProb is the sum of LogProb.
func (d ExponentialDist) SumLogProb(value *ts.Tensor, known Known) ([]torch.Term, float64, bool) {
	if !known.Inside {
		return nil, 0, false
	}
	x := floated(value)
	all := d.elements(x.shape())
	var p partial
	if d.rate.isNum() {
		p.plus(-d.rate.c, x, all)
		p.constant += all * math.Log(d.rate.c)
		return p.result()
	}
	p.plusProduct(-1, d.rate, x, all)
	p.plus(1, d.rate.log(), all)
	return p.result()
}

// SumLogProb is the sum of LogProb, for parameters that are numbers.
func (d GammaDist) SumLogProb(value *ts.Tensor, known Known) ([]torch.Term, float64, bool) {
	if !known.Inside || !d.concentration.isNum() || !d.rate.isNum() || d.concentration.c > stirlingFrom {
		return nil, 0, false
	}
	a, rate, x := d.concentration.c, d.rate.c, floated(value)
	all := d.elements(x.shape())
	p := partial{constant: all * (a*math.Log(rate) - num(a).lgamma().c)}
	p.plus(-rate, x, all)
	if a != 1 {
		p.plus(a-1, x.log(), all)
	}
	return p.result()
}

// SumLogProb is the sum of LogProb, for parameters that are numbers.
func (d BetaDist) SumLogProb(value *ts.Tensor, known Known) ([]torch.Term, float64, bool) {
	if !known.Inside || !d.concentration1.isNum() || !d.concentration0.isNum() {
		return nil, 0, false
	}
	a, b, x := d.concentration1.c, d.concentration0.c, floated(value)
	all := d.elements(x.shape())
	p := partial{constant: -all * logBeta(num(a), num(b)).c}
	if a != 1 {
		p.plus(a-1, x.log(), all)
	}
	if b != 1 {
		p.plus(b-1, x.neg().log1p(), all)
	}
	return p.result()
}

// SumLogProb is 0.
func (d ImproperUniformDist) SumLogProb(*ts.Tensor, Known) ([]torch.Term, float64, bool) {
	return nil, 0, true
}

// SumLogProb is the sum of LogProb, from log-odds. With a value other than 0 and 1 it is NaN.
func (d BernoulliDist) SumLogProb(value *ts.Tensor, known Known) ([]torch.Term, float64, bool) {
	if !d.fromLogits || d.logits.isNum() {
		return nil, 0, false
	}
	sign := known.keep(value, "sign", func() []*ts.Tensor {
		x := ten(floating(value, d.logits))
		outside := x.mul(num(1).sub(x)).t.MustNe(ts.FloatScalar(0), false)
		return []*ts.Tensor{x.mul(num(2)).sub(num(1)).fill(outside, math.NaN()).t}
	})
	var p partial
	p.plus(1, ten(sign[0]).mul(d.logits).logSigmoid(), d.elements(ten(value).shape()))
	return p.result()
}

// plainCounts is up to where the sum x log m − m − log Γ(x + 1) of large numbers is right to 1e-12.
const plainCounts = 1000

// SumLogProb is the sum of LogProb, from log rates. For small counts it is Σ x logRate − Σ exp(logRate) − Σ log Γ(x + 1). Else
// it is, with t = logRate − log x, Σ peak(x) − Σ [x(eᵗ − 1) − x t], where peak is a function of the data; for x = 0 the bracket is
// made right by log x = −350, and x = e⁻³⁵⁰ in its first term.
func (d PoissonDist) SumLogProb(value *ts.Tensor, known Known) ([]torch.Term, float64, bool) {
	if !d.fromLog || d.logRate.isNum() || d.logRate.t.DType() != gotch.Double { // float32 has no exp(−350)
		return nil, 0, false
	}
	shape := ten(value).shape()
	all := d.elements(shape)
	kept := known.keep(value, "poisson", func() []*ts.Tensor {
		x := floating(value, d.logRate)
		outside := x.MustLt(ts.FloatScalar(0), false).MustLogicalOr(x.MustFrac(false).MustNe(ts.FloatScalar(0), false), false)
		peak := ten(peakTensor(x)).fill(outside, math.Inf(-1))
		if greatest, err := torch.Item(x.MustMax(false)); err == nil && greatest <= plainCounts {
			return []*ts.Tensor{x, ten(x).add(num(1)).lgamma().fill(outside, math.Inf(1)).t.MustSum(gotch.Double, false)}
		}
		c := count(x)
		return []*ts.Tensor{x, peak.t.MustSum(gotch.Double, false), ten(x).fill(c.zero, math.Exp(-350)).t, c.safe.log().fill(c.zero, -350).t}
	})
	var p partial
	x, perValue := ten(kept[0]), all/count64(shape)
	if len(kept) == 2 {
		p.plusProduct(1, x, d.logRate, all)
		p.plus(-1, d.logRate.exp(), all)
		p.plus(-perValue, ten(kept[1]), 1)
		return p.result()
	}
	t := d.logRate.sub(ten(kept[3]))
	p.plusProduct(1, x, t, all)
	p.plusProduct(-1, ten(kept[2]), ten(t.t.MustExpm1(false)), all)
	p.plus(perValue, ten(kept[1]), 1)
	return p.result()
}

// SumLogProb is the sum of LogProb.
func (d IndependentDist) SumLogProb(value *ts.Tensor, known Known) ([]torch.Term, float64, bool) {
	if of, ok := d.of.(Summer); ok {
		return of.SumLogProb(value, known)
	}
	return nil, 0, false
}
