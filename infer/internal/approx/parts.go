package approx

import (
	"errors"
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Prior is the log prior of a target with parts, and its log Jacobian where that is asked for.
func Prior(target infer.Target, jacobian float64) infer.LogPosterior {
	return func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return target.Parts(p, b, infer.Weights{Prior: 1, Jacobian: jacobian})
	}
}

// Curvature is −∇²f at each chain of a point: of shape [d, d], or its diagonal [d]. The functions that it is for, a
// log prior or a log Jacobian, mostly have a diagonal Hessian, which two products with a vector show and give. It is
// called inside torch.Do, and panics with an error that this returns, as [Data] does.
func Curvature(f infer.LogPosterior, p infer.Params, b infer.Batch, dense bool, memory int,
	name string) torch.Tensor {
	o := curvature.Options{Memory: memory, MemoryField: name + ".Memory"}
	parts := make([]torch.Tensor, p.Chains())
	for k := range parts {
		at := Point(p, k)
		diagonal, ok := diagonalOf(f, at, b)
		switch {
		case ok && dense:
			diagonal = torch.Of(diagonal.T().MustDiagEmbed(0, -2, -1, false))
		case !ok && dense:
			h := torch.Must(curvature.Hessian(f, at, b, o))
			diagonal = torch.Of(h.Add(T(h)).T().MustMulScalar(ts.FloatScalar(0.5), false))
		case !ok:
			diagonal = torch.Must(curvature.HessianDiag(f, at, b, o))
		}
		parts[k] = diagonal
	}
	return Stack(p, parts)
}

// diagonalOf is the diagonal of −∇²f where it has no other elements. With H diagonal H1 is its diagonal and (Hv)_i that
// times v_i; for numbers v that all differ a matrix with other elements has another Hv.
func diagonalOf(f infer.LogPosterior, p infer.Params, b infer.Batch) (diagonal torch.Tensor, ok bool) {
	numbers := make([]float64, p.Layout.Dim())
	for i := range numbers {
		_, fraction := math.Modf(float64(i+1) * math.Phi)
		numbers[i] = 1 + fraction
	}
	v := torch.Must(torch.FromSliceOn(torch.Must(torch.DeviceOf(p.Flat)), p.Flat.T().DType(), numbers))
	_, one, err := curvature.HVP(f, p, b, torch.Of(v.T().MustOnesLike(false)))
	if errors.Is(err, torch.ErrNoGradient) {
		return torch.Of(p.Flat.T().MustZerosLike(false)), true // a constant
	}
	Try(err)
	_, two, err := curvature.HVP(f, p, b, v)
	Try(err)
	if len(numbers) == 1 {
		return one.Neg(), true
	}
	largest := Item(torch.Of(one.Abs().T().MustMax(false)))
	apart := Item(torch.Of(two.Div(v).Sub(one).Abs().T().MustMax(false)))
	if math.IsNaN(apart + largest) {
		Try(infer.ErrNonFinite)
	}
	return one.Neg(), apart <= 64*method.Epsilon(one)*largest
}

// Rows is how many data a batch has, for a method that needs each by itself. The error of a batch that does not count
// its data, such as that of a model with two plates, names the method that does without.
func Rows(b infer.Batch) (int, error) {
	n, err := b.Size()
	if err != nil {
		err = fmt.Errorf("the batch cannot be cut into data (%w): laplace.DenseHessian takes it as it is", err)
	}
	return n, err
}

// Data is the log likelihood of each datum of a batch, as the target tells it: that of a batch of one, of whose
// N-fold a plate makes the likelihood of all. The batch's own likelihood must be what its data make of it: their mean
// times N for data in a plate, or their sum for data in none. data is how many they count for in a pass.
func Data(target infer.Target, p infer.Params, b infer.Batch) (each curvature.PerDatum, data float64) {
	b = b.Alone()
	n := torch.Must(Rows(b))
	likelihood := func(weight float64) infer.LogPosterior {
		return func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
			return target.Parts(p, b.Alone(), infer.Weights{Likelihood: weight})
		}
	}
	var sum, all float64
	double := 1.0
	if err := torch.Do(func(*torch.Scope) error {
		whole := b
		if n == 1 && target.N() > 1 { // one of many data is both the mean and the sum: look at it twice
			whole, double = infer.Batch{}, 2
			for name, x := range b {
				whole[name] = torch.Of(ts.MustCat([]*ts.Tensor{x.T(), x.T()}, 0))
			}
		}
		value, _ := likelihood(1)(p, whole)
		parts := curvature.PerSample(likelihood(1))(p, b).T()
		sum, all = Item(torch.Of(parts.MustSum(parts.DType(), false)))*double, Item(value)
		return nil
	}); err != nil {
		Fail("the model cannot be evaluated at one datum at a time, which laplace.DenseHessian does without: %w", err)
	}
	within := func(x float64) bool { return math.Abs(all-x) <= 1e-4*(math.Abs(all)+math.Abs(x)) }
	switch {
	case within(sum / (float64(n) * double)): // their mean
		return curvature.PerSample(likelihood(1 / target.N())), float64(n)
	case !within(sum):
		Fail("the log likelihood of the batch, %g, is not made of those of its data, whose sum is %g: the data depend on "+
			"each other, and laplace.DenseHessian takes them together", all, sum)
	}
	return curvature.PerSample(likelihood(1)), target.N()
}
