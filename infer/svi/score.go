package svi

import (
	"math"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// scoreFunction is a tensor, [K], whose gradient is what the variables without a gradient through their draws add to
// that of the bound. parts are log q and the cost of each, [K·S, ...].
func (o *objective) scoreFunction(l torch.Tensor, parts []torch.Tensor, k, s int) torch.Tensor {
	var sum torch.Tensor
	means := make([][]float64, len(parts)/2)
	for i := range means {
		logq, cost := split(parts[2*i], k, s), split(parts[2*i+1], k, s)
		var gain torch.Tensor // what log q counts
		if o.elbo.linear() {
			gain, means[i] = o.advantage(cost, i, k, s)
		} else {
			gain = o.weightGain(l, cost.T().Dim(), k, s)
		}
		value := logq.Mul(gain.T().MustDetach(false)).T()
		value = value.MustReshape([]int64{int64(k), -1}, false).MustSumDimIntlist([]int64{1}, false, value.DType(), false)
		if sum == (torch.Tensor{}) {
			sum = torch.Of(value)
		} else {
			sum = sum.Add(value)
		}
	}
	if o.next == nil && o.elbo.linear() && s == 1 {
		o.next = o.average.with(means)
	}
	return sum
}

// split gives a tensor of rows the dimensions of the chains and of their samples.
func split(x torch.Tensor, k, s int) torch.Tensor {
	return x.Reshape(append([]int{k, s}, torch.Ints(x.T().MustSize()[1:])...)...)
}

// advantage is (cost − baseline)/S. The baseline is the mean of the other samples, or of the updates before.
func (o *objective) advantage(cost torch.Tensor, site int, k, s int) (gain torch.Tensor, means []float64) {
	if s > 1 { // c − (Σ − c)/(S − 1) = (S c − Σ)/(S − 1)
		sum := cost.T().MustSumDimIntlist([]int64{1}, true, cost.T().DType(), false)
		c := 1 / float64(s-1)
		return torch.Must(torch.Combine(torch.Term{Coeff: c, Tensor: cost},
			torch.Term{Coeff: -c / float64(s), Tensor: torch.Of(sum.MustExpandAs(cost.T(), false))})), nil
	}
	flat := cost.Reshape(k, -1).T()
	means = torch.Must(torch.ToSlice[float64](torch.Of(flat.MustMeanDim([]int64{1}, false, flat.DType(), false))))
	shape := []int{k, 1}
	for range cost.T().Dim() - 2 {
		shape = append(shape, 1)
	}
	baseline := torch.New(o.average.of(site, k), shape...)
	return cost.Sub(baseline.T().MustTotype(cost.T().DType(), false)), means
}

// weightGain is L − L_s for a bound L of weights, where L_s is the bound with the mean of the other samples' ℓ in the
// place of ℓ_s (Mnih and Rezende 2016).
func (o *objective) weightGain(l torch.Tensor, dims uint64, k, s int) torch.Tensor {
	l = torch.Of(l.T().MustDetach(false))
	whole := o.elbo.bound(l, o.temperature)
	gains := make([]torch.Tensor, s)
	sum := l.T().MustSumDimIntlist([]int64{1}, true, l.T().DType(), false)
	for i := range s {
		own := l.T().MustNarrow(1, int64(i), 1, false)
		others := sum.MustSub(own, false).MustMulScalar(ts.FloatScalar(1/float64(s-1)), false)
		without := ts.MustCat([]*ts.Tensor{l.T().MustNarrow(1, 0, int64(i), false), others,
			l.T().MustNarrow(1, int64(i+1), int64(s-i-1), false)}, 1)
		gains[i] = whole.Sub(o.elbo.bound(torch.Of(without), o.temperature))
	}
	shape := []int{k, s}
	for range dims - 2 {
		shape = append(shape, 1)
	}
	return torch.Stack(1, gains).Reshape(shape...)
}

// average is the costs of each variable and chain in the updates before, of which newer ones count more. It is not
// changed once made.
type average struct {
	Updates int
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
