package laplace

import (
	"errors"
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// DenseHessian is the Laplace approximation in its original form, with the Hessian of the log density of the target:
//
//	P = −N ∇² log posterior(θ̂) − T ∇² log |Jacobian| + Damping I
//
// (MacKay 1992.) The log posterior is a mean over N data. Of minibatches it is the mean of their Hessians, weighted by
// their data, so that a pass over the data in any batches gives the Hessian of all of them, with the prior once. A full
// batch is one update. P is positive definite at a maximum only: elsewhere [DenseGGN] is the safer choice.
type DenseHessian struct {
	// PriorPrecision is added once, for a target that is a log likelihood without a prior. Leave it out where the
	// target has a prior: it would count twice.
	PriorPrecision Precision
	// T of the covariance T P⁻¹, at the number of updates made; nil means 1, the posterior
	Temperature    infer.Schedule
	Damping        float64        // added once to the diagonal of P; default 0
	Memory         int64          // bytes for the matrix; 0 is the default of curvature.Options
	Optimizer      infer.Method   // finds the mode in a run; nil means optim.Adam with a falling learning rate
}

// Build checks the configuration and binds it to a target.
func (c DenseHessian) Build(target infer.Target) (infer.Transform, error) {
	o, err := options{name: "laplace.DenseHessian", prior: c.PriorPrecision, temperature: c.Temperature,
		damping: c.Damping, memory: c.Memory, optimizer: c.Optimizer}.checked(target, nil)
	if err != nil {
		return nil, err
	}
	return &accumulator{options: o, dense: true, mean: true,
		curvature: func(p infer.Params, b infer.Batch) (*ts.Tensor, float64, error) {
			h, err := curvature.Hessian(target.LogPosterior, p, b, o.limits())
			if err != nil {
				return nil, 0, err
			}
			return symmetric(target.N(), h), dataIn(b), nil
		}}, nil
}

// Defaults are 2000 updates that find the mode, one pass over the data, and then 1000 draws.
func (DenseHessian) Defaults() infer.Options { return defaults() }

// symmetric is c·h with the rounding between its two triangles taken out.
func symmetric(c float64, h *ts.Tensor) *ts.Tensor {
	return scaled(c/2, h.MustAdd(transposed(h), false))
}

// dataIn is how many data a batch counts for: 1 where it does not count data.
func dataIn(b infer.Batch) float64 {
	n, err := b.Size()
	if err != nil {
		return 1
	}
	return float64(n)
}

// priorOf is the log prior of a target with parts.
func priorOf(target infer.Target) infer.LogPosterior {
	return func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return target.Parts(p, b, infer.Weights{Prior: 1})
	}
}

// curvatureOf is −∇²f at each chain of a point: of shape [d, d], or its diagonal [d]. The functions that it is for, a
// log prior or a log Jacobian, mostly have a diagonal Hessian, which two products with a vector show and give.
func curvatureOf(f infer.LogPosterior, p infer.Params, b infer.Batch, dense bool, memory int64,
	name string) (*ts.Tensor, error) {
	parts := make([]*ts.Tensor, p.Chains())
	for k := range parts {
		at := point(p, k)
		diagonal, ok, err := diagonalOf(f, at, b)
		switch {
		case err != nil:
			return nil, err
		case ok && dense:
			parts[k] = diagonal.MustDiagEmbed(0, -2, -1, false)
		case ok:
			parts[k] = diagonal
		case dense:
			h, err := curvature.Hessian(f, at, b, curvature.Options{Memory: memory, MemoryField: name + ".Memory"})
			if err != nil {
				return nil, err
			}
			parts[k] = symmetric(1, h)
		default:
			o := curvature.Options{Memory: memory, MemoryField: name + ".Memory"}
			if parts[k], err = curvature.HessianDiag(f, at, b, o); err != nil {
				return nil, err
			}
		}
	}
	return stack(p, parts), nil
}

// diagonalOf is the diagonal of −∇²f where it has no other elements. With H diagonal H1 is its diagonal and Hv that
// times v; for signs v that look random a matrix with other elements has another Hv.
func diagonalOf(f infer.LogPosterior, p infer.Params, b infer.Batch) (diagonal *ts.Tensor, ok bool, err error) {
	signs := make([]float64, p.Layout.Dim())
	for i := range signs {
		signs[i] = math.Copysign(1, math.Sin(float64(i*i)+12.9898*float64(i)))
	}
	v, err := torch.FromSliceOn(torch.Must(torch.DeviceOf(p.Flat)), p.Flat.DType(), signs)
	if err != nil {
		return nil, false, err
	}
	_, one, err := curvature.HVP(f, p, b, v.MustOnesLike(false))
	if errors.Is(err, torch.ErrNoGradient) {
		return p.Flat.MustZerosLike(false), true, nil // a constant
	}
	if err != nil {
		return nil, false, err
	}
	_, two, err := curvature.HVP(f, p, b, v)
	if err != nil {
		return nil, false, err
	}
	if v.MustSize()[0] == 1 {
		return one.MustNeg(false), true, nil
	}
	largest := item(one.MustAbs(false).MustMax(false))
	apart := item(two.MustMul(v, false).MustSub(one, false).MustAbs(false).MustMax(false))
	if math.IsNaN(apart + largest) {
		return nil, false, infer.ErrNonFinite
	}
	return one.MustNeg(false), apart <= 64*curvature.Epsilon(one)*largest, nil
}

// dataOf is the log likelihood of each datum of a batch, as the target tells it: that of a batch of one, of whose
// N-fold a plate makes the likelihood of all. The batch's own likelihood must be what its data make of it: their mean
// times N for data in a plate, or their sum for data in none. data is how many they count for in a pass.
func dataOf(target infer.Target, p infer.Params, b infer.Batch) (each curvature.PerDatum, data float64, err error) {
	n, err := b.Size()
	if curvature.Unsized(b) || err != nil {
		if err == nil {
			err = errors.New("it has a tensor of shape []")
		}
		return nil, 0, fmt.Errorf("the batch cannot be cut into data (%w): laplace.DenseHessian takes it as it is", err)
	}
	likelihood := func(weight float64) infer.LogPosterior {
		return func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
			return target.Parts(p, b, infer.Weights{Likelihood: weight})
		}
	}
	whole, double := b, 1.0
	if n == 1 { // one datum is both the mean and the sum: look at it twice
		whole, double = infer.Batch{}, 2
		for name, x := range b {
			whole[name] = ts.MustCat([]*ts.Tensor{x, x}, 0)
		}
	}
	value, _ := likelihood(1)(p, whole)
	parts := curvature.PerSample(likelihood(1))(p, b)
	sum, all := total(parts)*double, item(value.T())
	mean := sum / (float64(n) * double)
	within := func(x float64) bool { return math.Abs(all-x) <= 1e-4*(math.Abs(all)+math.Abs(x)) }
	weight := 1.0
	switch {
	case within(mean):
		weight, data = 1/target.N(), float64(n)
	case within(sum):
		data = target.N()
	default:
		return nil, 0, fmt.Errorf("the log likelihood of the batch, %g, is not made of those of its data, whose sum " +
			"is %g: "+
			"the data depend on each other, and laplace.DenseHessian takes them together", all, sum)
	}
	return curvature.PerSample(likelihood(weight)), data, nil
}
