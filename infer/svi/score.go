package svi

import (
	"math"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// scoreFunction is a tensor, [K], whose gradient is what the variables without a gradient through their draws add to
// that of the bound. parts are log q and the cost of each, [K·S, ...].
func (o *objective) scoreFunction(l *ts.Tensor, parts []*ts.Tensor, k, s int64) *ts.Tensor {
	var sum *ts.Tensor
	means := make([][]float64, len(parts)/2)
	for i := range means {
		logq, cost := split(parts[2*i], k, s), split(parts[2*i+1], k, s)
		var gain *ts.Tensor // what log q counts
		if o.elbo.linear() {
			gain, means[i] = o.advantage(cost, i, k, s)
		} else {
			gain = o.weightGain(l, cost.Dim(), k, s)
		}
		value := logq.MustMul(gain.MustDetach(false), false)
		value = value.MustReshape([]int64{k, -1}, false).MustSumDimIntlist([]int64{1}, false, value.DType(), false)
		if sum == nil {
			sum = value
		} else {
			sum = sum.MustAdd(value, false)
		}
	}
	if o.next == nil && o.elbo.linear() && s == 1 {
		o.next = o.average.with(means)
	}
	return sum
}

// split gives a tensor of rows the dimensions of the chains and of their samples.
func split(x *ts.Tensor, k, s int64) *ts.Tensor {
	return x.MustReshape(append([]int64{k, s}, x.MustSize()[1:]...), false)
}

// advantage is (cost − baseline)/S. The baseline is the mean of the other samples, or of the updates before.
func (o *objective) advantage(cost *ts.Tensor, site int, k, s int64) (gain *ts.Tensor, means []float64) {
	if s > 1 { // c − (Σ − c)/(S − 1) = (S c − Σ)/(S − 1)
		sum := cost.MustSumDimIntlist([]int64{1}, true, cost.DType(), false)
		c := 1 / float64(s-1)
		return torch.Must(torch.Combine(torch.Term{Coeff: c, Tensor: cost},
			torch.Term{Coeff: -c / float64(s), Tensor: sum.MustExpandAs(cost, false)})), nil
	}
	flat := cost.MustReshape([]int64{k, -1}, false)
	means = torch.Must(torch.ToSlice[float64](flat.MustMeanDim([]int64{1}, false, flat.DType(), false)))
	shape := []int64{k, 1}
	for range cost.Dim() - 2 {
		shape = append(shape, 1)
	}
	baseline := torch.Must(torch.FromSlice(o.average.of(site, int(k)), shape...))
	return cost.MustSub(baseline.MustTotype(cost.DType(), false), false), means
}

// weightGain is L − L_s for a bound L of weights, where L_s is the bound with the mean of the other samples' ℓ in the
// place of ℓ_s (Mnih and Rezende 2016).
func (o *objective) weightGain(l *ts.Tensor, dims uint64, k, s int64) *ts.Tensor {
	l = l.MustDetach(false)
	whole := o.elbo.bound(l, o.temperature)
	gains := make([]*ts.Tensor, s)
	sum := l.MustSumDimIntlist([]int64{1}, true, l.DType(), false)
	for i := range s {
		own := l.MustNarrow(1, i, 1, false)
		others := sum.MustSub(own, false).MustMulScalar(ts.FloatScalar(1/float64(s-1)), false)
		without := ts.MustCat([]*ts.Tensor{l.MustNarrow(1, 0, i, false), others,
			l.MustNarrow(1, i+1, s-i-1, false)}, 1)
		gains[i] = whole.MustSub(o.elbo.bound(without, o.temperature), false)
	}
	shape := []int64{k, s}
	for range dims - 2 {
		shape = append(shape, 1)
	}
	return ts.MustStack(gains, 1).MustReshape(shape, false)
}

// average is the costs of each variable and chain in the updates before, of which newer ones count more. It is not
// changed once made.
type average struct {
	Updates int64
	Means   [][]float64 // of each variable, of each chain; with the weight of the start, which is 0, in it
}

// decay is what an average keeps in an update.
const decay = 0.9

// of is the baseline of a variable: the average without the weight of its start.
func (a *average) of(site, k int) []float64 {
	out := make([]float64, k)
	if a == nil || a.Updates == 0 || site >= len(a.Means) || len(a.Means[site]) != k {
		return out
	}
	for i, v := range a.Means[site] {
		out[i] = v / (1 - math.Pow(decay, float64(a.Updates)))
	}
	return out
}

// with is the average after one more update. Costs that are not finite leave it as it was.
func (a *average) with(means [][]float64) *average {
	next := &average{Updates: 1, Means: make([][]float64, len(means))}
	if a != nil {
		next.Updates += a.Updates
	}
	for i, row := range means {
		before := a.of(i, len(row))
		next.Means[i] = make([]float64, len(row))
		for k, v := range row {
			old := before[k] * (1 - math.Pow(decay, float64(next.Updates-1)))
			if math.IsNaN(v) || math.IsInf(v, 0) {
				v = before[k]
			}
			next.Means[i][k] = decay*old + (1-decay)*v
		}
	}
	return next
}
