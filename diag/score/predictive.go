package score

import (
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// logSoftmax are the log probabilities of classes with the logits z, z(k) - log Σ exp(z). It is exact also where
// probabilities underflow, or are so near 1 that only the logarithm differs from 0. A logit of -Inf is a probability of
// 0; a NaN, a +Inf, or nothing but -Inf make all of them NaN.
func logSoftmax(z []float64) []float64 {
	p := make([]float64, len(z))
	if len(z) == 0 {
		return p
	}
	class, highest := top(z)
	rest := 0.0 // Σ exp(z - highest) over the other classes
	for k, v := range z {
		if k != class {
			rest += math.Exp(v - highest)
		}
	}
	norm := math.Log1p(rest)
	for k, v := range z {
		p[k] = (v - highest) - norm
	}
	return p
}

// BinaryLogProbabilities are the log probabilities of the classes 0 and 1, log σ(-z) and log σ(z), of the logit z of
// class 1. It is logSoftmax of 0 and z.
func BinaryLogProbabilities(z float64) [2]float64 {
	// log σ(z) = min(z, 0) - log(1 + exp(-|z|))
	rest := math.Log1p(math.Exp(-math.Abs(z)))
	return [2]float64{min(-z, 0) - rest, min(z, 0) - rest}
}

// Predictive averages the predicted class probabilities of draws of the parameters,
//
//	p̄(y | x) = (1/S) Σ p(y | x, θ(s))
//
// one draw at a time and in logarithms, so that probabilities as small as exp(-1e5) keep their digits. Each average is
// held as its largest term and the sum of the terms over that. Make it with [NewPredictive].
type Predictive struct {
	draws          int
	cases, classes int
	highest, sum   []float64 // [case x class]: Σ exp(log p) = exp(highest) sum
	entropy        []float64 // [case]: Σ over draws of the entropy
}

// mostProbabilities bounds what a [Predictive] keeps: 2^31 probabilities are 32 GiB.
const mostProbabilities = 1 << 31

// NewPredictive expects predictions of so many cases and classes. [draws.ErrRange] says that one is below 1, or that
// there are more than 2^31 in all.
func NewPredictive(cases, classes int) (*Predictive, error) {
	if cases < 1 || classes < 1 {
		return nil, failf(draws.ErrRange, "predictive: %d cases of %d classes, want at least 1", cases, classes)
	}
	if cases > mostProbabilities/classes {
		return nil, failf(draws.ErrRange, "predictive: %d cases of %d classes, want at most %d probabilities", cases, classes,
			mostProbabilities)
	}
	p := &Predictive{cases: cases, classes: classes, sum: make([]float64, cases*classes),
		entropy: make([]float64, cases)}
	p.highest = slices.Repeat([]float64{math.Inf(-1)}, cases*classes)
	return p, nil
}

// Add takes the log probabilities of a draw, [case][class]. -Inf is a probability of 0. [draws.ErrSize], and
// [draws.ErrRange] for a NaN and for probabilities whose sum is not 1, are the errors; then nothing is taken.
func (p *Predictive) Add(logp [][]float64) error {
	if err := p.check("log probabilities", logp); err != nil {
		return err
	}
	if err := checkLogProbabilities("predictive", logp); err != nil {
		return err
	}
	p.add(func(i int) []float64 { return logp[i] })
	return nil
}

// AddLogits takes the logits of a draw, [case][class]. [draws.ErrSize] and [diag.ErrNotFinite] are
// the errors; then nothing is taken.
func (p *Predictive) AddLogits(logits [][]float64) error {
	if err := p.check("logits", logits); err != nil {
		return err
	}
	if err := checkLogits("predictive", logits); err != nil {
		return err
	}
	p.add(func(i int) []float64 { return logSoftmax(logits[i]) })
	return nil
}

// AddBinaryLogits takes the logits of class 1 of a draw, one per case, for two classes. [draws.ErrSize] and
// [diag.ErrNotFinite] are the errors; then nothing is taken.
func (p *Predictive) AddBinaryLogits(logits []float64) error {
	if p.classes != 2 || len(logits) != p.cases {
		return failf(draws.ErrSize, "predictive: %d binary logits, want %d cases of 2 classes and there are %d classes",
			len(logits), p.cases, p.classes)
	}
	for i, z := range logits {
		if math.IsNaN(z) || math.IsInf(z, 0) {
			return failf(diag.ErrNotFinite, "predictive: logit %d is %v", i, z)
		}
	}
	p.add(func(i int) []float64 { q := BinaryLogProbabilities(logits[i]); return q[:] })
	return nil
}

func (p *Predictive) check(what string, rows [][]float64) error {
	if len(rows) != p.cases {
		return failf(draws.ErrSize, "predictive: %s of %d cases, want %d", what, len(rows), p.cases)
	}
	for i, row := range rows {
		if len(row) != p.classes {
			return failf(draws.ErrSize, "predictive: case %d has %s of %d classes, want %d", i, what, len(row),
				p.classes)
		}
	}
	return nil
}

func (p *Predictive) add(row func(i int) []float64) {
	p.draws++
	for i := range p.cases {
		for k, v := range row(i) {
			at := i*p.classes + k
			switch {
			case math.IsInf(v, -1): // a probability of 0
			case v <= p.highest[at]:
				p.sum[at] += math.Exp(v - p.highest[at])
			default:
				p.sum[at] = p.sum[at]*math.Exp(p.highest[at]-v) + 1
				p.highest[at] = v
			}
			if q := math.Exp(v); q > 0 {
				p.entropy[i] -= q * v
			}
		}
	}
}

// Draws is the number of draws so far.
func (p *Predictive) Draws() int { return p.draws }

// LogMean are the logarithms of the averaged probabilities, [case][class], -Inf for 0. NaN before the first draw.
func (p *Predictive) LogMean() [][]float64 {
	rows := make([][]float64, p.cases)
	for i := range rows {
		rows[i] = make([]float64, p.classes)
		for k := range rows[i] {
			at := i*p.classes + k
			rows[i][k] = p.highest[at] + math.Log(p.sum[at]/float64(p.draws))
		}
	}
	return rows
}

// Mean are the averaged probabilities, [case][class]. NaN before the first draw.
func (p *Predictive) Mean() [][]float64 {
	return sample.Mapped(p.LogMean(), math.Exp)
}

// Uncertainty is that of each case, as [EntropyOf] would have it of all draws. NaN before the first draw.
func (p *Predictive) Uncertainty() []Uncertainty {
	all := make([]Uncertainty, p.cases)
	for i, row := range p.LogMean() {
		u := &all[i]
		if p.draws == 0 {
			*u = Uncertainty{math.NaN(), math.NaN(), math.NaN()}
			continue
		}
		for _, v := range row {
			if q := math.Exp(v); q > 0 {
				u.Total -= q * v
			}
		}
		u.Aleatoric = p.entropy[i] / float64(p.draws)
		u.Epistemic = max(u.Total-u.Aleatoric, 0) // below 0 by rounding only
	}
	return all
}

// checkLogProbabilities checks that the probabilities of each case sum to 1.
func checkLogProbabilities(doing string, logp [][]float64) error {
	for i, row := range logp {
		for k, v := range row {
			if math.IsNaN(v) || v > 1e-6 {
				return failf(draws.ErrRange, "%s: the log probability of class %d of case %d is %v, want at most 0",
					doing, k, i, v)
			}
		}
		if sum := math.Exp(sample.LogSumExp(row)); math.Abs(sum-1) > 1e-6 {
			return failf(draws.ErrRange, "%s: the probabilities of case %d sum to %v, want 1", doing, i, sum)
		}
	}
	return nil
}

// checkLogits refuses logits that are not finite.
func checkLogits(doing string, logits [][]float64) error {
	for i, row := range logits {
		for k, v := range row {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return failf(diag.ErrNotFinite, "%s: logit %d of case %d is %v", doing, k, i, v)
			}
		}
	}
	return nil
}
