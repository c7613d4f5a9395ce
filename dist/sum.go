package dist

import (
	"math"
	"slices"

	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Summer is a distribution that has a shorter way to the sum of its log density than to sum what LogProb gives: one
// that keeps constants out of the tensors, and factors out of the sum. A log posterior is made of such sums.
type Summer interface {
	// SumLogProb is the sum of LogProb(value) over all of its elements: terms of shape [] to be added up, and a number to
	// be added to them. Ok is false where these parameters have no shorter way.
	SumLogProb(value torch.Tensor, known Known) (terms []torch.Term, constant float64, ok bool)
}

// Known is what the caller of SumLogProb knows.
type Known struct {
	// Inside says that the value is in the support.
	Inside bool
	// Alone says that the value is of one point, in no vmap: there an inner product is the shortest way to a sum of
	// squares.
	Alone bool
	// Keep returns what f computes from t, now or earlier from the same unchanged t. Nil computes it now. The name tells
	// apart what different f compute from one t.
	Keep func(t torch.Tensor, name string, f func() []torch.Tensor) []torch.Tensor
}

func (k Known) keep(t torch.Tensor, name string, f func() []torch.Tensor) []torch.Tensor {
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
func (p *partial) plus(c float64, v torch.Tensor, all float64) {
	if operand.IsNumber(v) {
		p.constant += c * operand.Number(v) * all
		return
	}
	if shape := v.Shape(); len(shape) > 0 {
		c *= all / count64(shape)
		v = v.Sum()
	} else {
		c *= all
	}
	p.terms = append(p.terms, torch.Term{Coeff: c, Tensor: v})
}

// plusProduct adds c Σ v w.
func (p *partial) plusProduct(c float64, v, w torch.Tensor, all float64) {
	if a, b := v.Shape(), w.Shape(); len(a) == 1 && slices.Equal(a, b) && float64(a[0]) == all {
		p.terms = append(p.terms, torch.Term{Coeff: c, Tensor: v.Dot(w)})
		return
	}
	p.plus(c, v.Mul(w), all)
}

// minusLog subtracts Σ log s.
func (p *partial) minusLog(s torch.Tensor, all float64, k Known) {
	if operand.IsNumber(s) {
		p.constant -= all * math.Log(operand.Number(s))
		return
	}
	shape := s.Shape()
	log := k.keep(s, "log", func() []torch.Tensor {
		log := s.Log()
		if len(shape) > 0 {
			log = log.Sum()
		}
		return []torch.Tensor{log}
	})
	p.terms = append(p.terms, torch.Term{Coeff: -all / count64(shape), Tensor: log[0]})
}

func (p *partial) result() ([]torch.Term, float64, bool) { return p.terms, p.constant, true }

// elements is the number of elements of LogProb, for families with scalar events.
func (b base) elements(value []int) float64 {
	if len(b.batch) == 0 {
		return count64(value)
	}
	return count64(broadcast(b.family, value, b.batch))
}

func count64(shape []int) float64 {
	n := 1.0
	for _, s := range shape {
		n *= float64(s)
	}
	return n
}

// sumSquares is −½ Σ ((x − loc)/scale)² − Σ log scale + Σ perElement.
func (b base) sumSquares(
	value torch.Tensor,
	loc, scale torch.Tensor,
	k Known,
	perElement float64,
) ([]torch.Term, float64, bool) {
	all := b.elements(value.Shape())
	p := partial{constant: perElement * all}
	z, factor := floated(value).Sub(loc), -0.5
	if s := operand.Number(scale); operand.IsNumber(scale) && s > 1e-100 && s < 1e100 {
		factor /= s * s // without overflow: one operation less
	} else {
		z = z.Div(scale)
	}
	if k.Alone {
		p.plusProduct(factor, z, z, all)
	} else {
		p.plus(factor, z.Square(), all)
	}
	p.minusLog(scale, all, k)
	return p.result()
}

// SumLogProb is the sum of LogProb.
func (d normalDist) SumLogProb(value torch.Tensor, known Known) ([]torch.Term, float64, bool) {
	return d.sumSquares(value, d.loc, d.scale, known, -halfLog2Pi)
}

// SumLogProb is the sum of LogProb.
func (d halfNormalDist) SumLogProb(value torch.Tensor, known Known) ([]torch.Term, float64, bool) {
	if !known.Inside {
		return nil, 0, false
	}
	return d.sumSquares(value, torch.Of(0), d.scale, known, 0.5*math.Log(2/math.Pi))
}

// sumCauchy is −power Σ log(1 + ((x − loc)/scale)²) − Σ log scale + Σ perElement.
func (b base) sumCauchy(
	value torch.Tensor,
	loc, scale torch.Tensor,
	power float64,
	k Known,
	perElement float64,
) ([]torch.Term, float64, bool) {
	all := b.elements(value.Shape())
	p := partial{constant: perElement * all}
	w := floated(value).Sub(loc).Div(scale)
	// The hypotenuse does not overflow. What it loses of the square of a small number is below the rounding of the sum.
	h := torch.Of(w.T().MustHypot(w.T().MustOnesLike(false), false))
	p.plus(-2*power, h.Log(), all)
	p.minusLog(scale, all, k)
	return p.result()
}

// SumLogProb is the sum of LogProb.
func (d cauchyDist) SumLogProb(value torch.Tensor, known Known) ([]torch.Term, float64, bool) {
	return d.sumCauchy(value, d.loc, d.scale, 1, known, -math.Log(math.Pi))
}

// SumLogProb is the sum of LogProb.
func (d halfCauchyDist) SumLogProb(value torch.Tensor, known Known) ([]torch.Term, float64, bool) {
	if !known.Inside {
		return nil, 0, false
	}
	return d.sumCauchy(value, torch.Of(0), d.scale, 1, known, math.Log(2/math.Pi))
}

// SumLogProb is the sum of LogProb, for df a number.
func (d studentTDist) SumLogProb(value torch.Tensor, known Known) ([]torch.Term, float64, bool) {
	if !operand.IsNumber(d.df) || operand.Number(d.df) > 1e4 { // beyond, the logarithm of the hypotenuse would lose digits
		return nil, 0, false
	}
	n := operand.Number(d.df)
	return d.sumCauchy(
		value,
		d.loc,
		d.scale.Mul(math.Sqrt(n)),
		(n+1)/2,
		known,
		-operand.Number(logBeta(torch.Of(n/2), torch.Of(0.5))),
	)
}

// SumLogProb is the sum of LogProb.
func (d exponentialDist) SumLogProb(value torch.Tensor, known Known) ([]torch.Term, float64, bool) {
	if !known.Inside {
		return nil, 0, false
	}
	x := floated(value)
	all := d.elements(x.Shape())
	var p partial
	if operand.IsNumber(d.rate) {
		p.plus(-operand.Number(d.rate), x, all)
		p.constant += all * math.Log(operand.Number(d.rate))
		return p.result()
	}
	p.plusProduct(-1, d.rate, x, all)
	p.plus(1, d.rate.Log(), all)
	return p.result()
}

// SumLogProb is the sum of LogProb, for parameters that are numbers.
func (d gammaDist) SumLogProb(value torch.Tensor, known Known) ([]torch.Term, float64, bool) {
	a, rate := operand.Number(d.concentration), operand.Number(d.rate)
	if !known.Inside || !operand.IsNumber(d.concentration) || !operand.IsNumber(d.rate) || a > stirlingFrom {
		return nil, 0, false
	}
	x := floated(value)
	all := d.elements(x.Shape())
	p := partial{constant: all * (a*math.Log(rate) - operand.Number(torch.Of(a).Lgamma()))}
	p.plus(-rate, x, all)
	if a != 1 {
		p.plus(a-1, x.Log(), all)
	}
	return p.result()
}

// SumLogProb is the sum of LogProb, for parameters that are numbers.
func (d betaDist) SumLogProb(value torch.Tensor, known Known) ([]torch.Term, float64, bool) {
	a, b, x := operand.Number(d.concentration1), operand.Number(d.concentration0), floated(value)
	if !known.Inside || !operand.IsNumber(d.concentration1) || !operand.IsNumber(d.concentration0) ||
		min(a, b) >= stirlingFrom { // where large terms cancel
		return nil, 0, false
	}
	all := d.elements(x.Shape())
	p := partial{constant: -all * operand.Number(logBeta(torch.Of(a), torch.Of(b)))}
	if a != 1 {
		p.plus(a-1, x.Log(), all)
	}
	if b != 1 {
		p.plus(b-1, x.Neg().Log1p(), all)
	}
	return p.result()
}

// SumLogProb is 0.
func (d improperUniformDist) SumLogProb(torch.Tensor, Known) ([]torch.Term, float64, bool) {
	return nil, 0, true
}

// SumLogProb is the sum of LogProb, from log-odds. With a value other than 0 and 1 it is NaN.
func (d bernoulliDist) SumLogProb(value torch.Tensor, known Known) ([]torch.Term, float64, bool) {
	if !d.fromLogits || operand.IsNumber(d.logits) {
		return nil, 0, false
	}
	sign := known.keep(value, "sign", func() []torch.Tensor {
		x := floating(value, d.logits)
		outside := torch.Of(x.Mul(torch.Of(1).Sub(x)).T().MustNe(ts.FloatScalar(0), false))
		return []torch.Tensor{fill(x.Mul(2).Sub(1), outside, math.NaN())}
	})
	var p partial
	p.plus(1, sign[0].Mul(d.logits).LogSigmoid(), d.elements(value.Shape()))
	return p.result()
}

// plainCounts is up to where the sum x log m − m − log Γ(x + 1) of large numbers is right to 1e-12.
const plainCounts = 1000

// SumLogProb is the sum of LogProb, from log rates. For small counts it is Σ x logRate − Σ exp(logRate) − Σ log Γ(x +
// 1). Else it is, with t = logRate − log x, Σ peak(x) − Σ [x(eᵗ − 1) − x t], where peak is a function of the data; for
// x = 0 the bracket is made right by log x = −350, and x = e⁻³⁵⁰ in its first term.
func (d poissonDist) SumLogProb(value torch.Tensor, known Known) ([]torch.Term, float64, bool) {
	if !d.fromLog || operand.IsNumber(d.logRate) || d.logRate.T().DType() != gotch.Double { // float32 has no exp(−350)
		return nil, 0, false
	}
	shape := value.Shape()
	all := d.elements(shape)
	kept := known.keep(value, "poisson", func() []torch.Tensor {
		x := floating(value, d.logRate)
		outside := torch.Of(x.Lt(0).T().MustLogicalOr(x.T().MustFrac(false).MustNe(ts.FloatScalar(0), false), false))
		peak := fill(peakTensor(x), outside, math.Inf(-1))
		if !ts.KelvinRecorded() {
			if greatest, err := torch.Item(torch.Of(x.T().MustMax(false))); err == nil && greatest <= plainCounts {
				return []torch.Tensor{x, fill(x.Add(1).Lgamma(), outside, math.Inf(1)).Sum()}
			}
		}
		c := count(x)
		return []torch.Tensor{x, peak.Sum(), fill(x, c.zero, math.Exp(-350)), fill(c.safe.Log(), c.zero, -350)}
	})
	var p partial
	x, perValue := kept[0], all/count64(shape)
	if len(kept) == 2 {
		p.plusProduct(1, x, d.logRate, all)
		p.plus(-1, d.logRate.Exp(), all)
		p.plus(-perValue, kept[1], 1)
		return p.result()
	}
	t := d.logRate.Sub(kept[3])
	p.plusProduct(1, x, t, all)
	p.plusProduct(-1, kept[2], t.Expm1(), all)
	p.plus(perValue, kept[1], 1)
	return p.result()
}

// SumLogProb is the sum of LogProb.
func (d independentDist) SumLogProb(value torch.Tensor, known Known) ([]torch.Term, float64, bool) {
	if of, ok := d.of.(Summer); ok {
		return of.SumLogProb(value, known)
	}
	return nil, 0, false
}
