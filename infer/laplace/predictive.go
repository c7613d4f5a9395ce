package laplace

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Linearized is the law of a model's outputs when the model is linearised at θ̂:
//
//	z_i ~ N(f(θ̂, x_i), T J_i P⁻¹ J_iᵀ + NoiseSD² I)
//
// with the mean of shape [n, C] and the covariance [n, C, C]. (Immer et al. 2021.) For a regression with Gaussian noise and NoiseSD its
// standard deviation it is the predictive distribution, exact where f is linear in θ; for a classifier see [Softmax] and [Probit].
// Gauss-Newton and Fisher precisions belong to this predictive: plugging draws of θ into the network itself, which they do not
// describe away from θ̂, often underfits.
func Linearized(s infer.State, f curvature.Forward, b infer.Batch, o curvature.LinearizedOptions) (mean, cov *ts.Tensor, err error) {
	p, err := single("Linearized", s)
	if err != nil {
		return nil, nil, err
	}
	if err := infer.CheckValue("laplace.Linearized", "NoiseSD", o.NoiseSD, 0, false); err != nil {
		return nil, nil, err
	}
	noise := o.NoiseSD
	o.NoiseSD = 0
	err = torch.Do(func(scope *torch.Scope) error {
		if mean, cov, err = p.linearized(f, b, o); err != nil {
			return err
		}
		cov = scaled(p.tempering(), cov)
		cov.MustDiagonal(0, 1, 2, false).MustAddScalar_(ts.FloatScalar(noise * noise))
		scope.Keep(mean, cov)
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("laplace.Linearized: %w", err)
	}
	return mean, cov, nil
}

// LinearizedNetwork is [Linearized] for [KFAC], from the Kronecker factors: no matrix in all parameters is made. With the layer's inputs a and
// S = ∂z/∂s the covariance is the sum over layers of T Σ_oi (S U_G)_co (S U_G)_eo (U_Aᵀa)_i² / value_oi for outputs c and e.
func LinearizedNetwork(s infer.State, f Network, b infer.Batch, o curvature.LinearizedOptions) (mean, cov *ts.Tensor, err error) {
	const name = "laplace.LinearizedNetwork"
	k, ok := s.(KFACState)
	if !ok {
		return nil, nil, fmt.Errorf("%s: a state of type %T: expected a laplace.KFACState; laplace.Linearized takes any: %w", name, s, infer.ErrConfig)
	}
	if f == nil {
		return nil, nil, fmt.Errorf("%s: the network is nil: %w", name, infer.ErrConfig)
	}
	if _, err := single("LinearizedNetwork", s); err != nil {
		return nil, nil, err
	}
	if err := infer.CheckValue(name, "NoiseSD", o.NoiseSD, 0, false); err != nil {
		return nil, nil, err
	}
	err = torch.Do(func(scope *torch.Scope) error {
		spectra, err := k.spectra(true)
		if err != nil {
			return err
		}
		return gradients(func() error {
			r, err := record(f, k.Layers, k.Params, b)
			if err != nil {
				return err
			}
			jacobians, err := r.jacobians()
			if err != nil {
				return err
			}
			mean = r.z.MustDetach(false)
			cov = ts.MustZeros([]int64{r.n, r.c, r.c}, mean.DType(), torch.Must(torch.DeviceOf(mean)))
			for i, sp := range spectra {
				along := r.inputs[i].MustMatmul(sp.a.MustSelect(0, 0, false), false).MustSquare(false)
				weight := along.MustMatmul(transposed(sp.values.MustSelect(0, 0, false).MustReciprocal(false)), false) // [n, out]
				j := jacobians[i].MustMatmul(sp.g.MustSelect(0, 0, false), false)
				cov = cov.MustAdd(j.MustMul(weight.MustUnsqueeze(1, false), false).MustBmm(transposed(j), false), false)
			}
			cov = scaled(k.Temperature, cov).MustDetach(false)
			cov.MustDiagonal(0, 1, 2, false).MustAddScalar_(ts.FloatScalar(math.Pow(o.NoiseSD, 2)))
			scope.Keep(mean, cov)
			return nil
		})
	})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return mean, cov, nil
}

// SampleOutputs draws outputs from N(mean, cov) for each datum: a tensor of shape [samples, n, C]. Covariances may be singular.
func SampleOutputs(mean, cov *ts.Tensor, samples int, streams *torch.Streams) (z *ts.Tensor, err error) {
	if samples < 1 || streams == nil || len(streams.Chains) != 1 {
		return nil, fmt.Errorf("laplace.SampleOutputs: it needs a number of samples of at least 1, which is %d, and a random stream, "+
			"for example of torch.NewStreams(seed, 1): %w", samples, infer.ErrConfig)
	}
	if err := checkOutputs("SampleOutputs", mean, cov); err != nil {
		return nil, err
	}
	err = torch.Do(func(scope *torch.Scope) error {
		shape := mean.MustSize()
		eps, err := streams.Normal(append([]int64{int64(samples)}, shape...), mean.DType(), torch.Must(torch.DeviceOf(mean)))
		if err != nil {
			return err
		}
		// The symmetric eigendecomposition serves singular covariances too: those of a softmax with shared weights, for example.
		values, vectors := cov.MustLinalgEigh("L", false)
		root := vectors.MustMul(values.MustClampMin(ts.FloatScalar(0), false).MustSqrt(false).MustUnsqueeze(1, false), false)
		eps = eps.MustReshape(append([]int64{int64(samples)}, shape...), false).MustPermute([]int64{1, 2, 0}, false)
		z = root.MustBmm(eps, false).MustPermute([]int64{2, 0, 1}, false).MustAdd(mean, false)
		scope.Keep(z)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("laplace.SampleOutputs: %w", err)
	}
	return z, nil
}

// Softmax is the predictive distribution of a classifier with Gaussian logits, by averaging the softmax of draws: class
// probabilities of shape [n, C]. Its error falls as 1/√samples.
func Softmax(mean, cov *ts.Tensor, samples int, streams *torch.Streams) (p *ts.Tensor, err error) {
	err = torch.Do(func(scope *torch.Scope) error {
		z, err := SampleOutputs(mean, cov, samples, streams)
		if err != nil {
			return err
		}
		p = z.MustSoftmax(-1, z.DType(), false).MustMeanDim([]int64{0}, false, z.DType(), false)
		scope.Keep(p)
		return nil
	})
	return p, err
}

// Probit is the probit approximation of the predictive of a classifier with Gaussian logits of mean m and variance v:
//
//	binary, C = 1      σ(m/√(1 + πv/8)), shape [n]                            (Spiegelhalter and Lauritzen 1990; MacKay 1992)
//	C classes          softmax of m_c/√(1 + πv_cc/8), shape [n, C]            (Gibbs 1997)
//
// The second ignores covariances between logits.
func Probit(mean, cov *ts.Tensor) (p *ts.Tensor, err error) {
	if err := checkOutputs("Probit", mean, cov); err != nil {
		return nil, err
	}
	err = torch.Do(func(scope *torch.Scope) error {
		v := cov.MustDiagonal(0, 1, 2, false)
		scale := scaled(math.Pi/8, v).MustAddScalar(ts.FloatScalar(1), false).MustSqrt(false)
		z := mean.MustDiv(scale, false)
		if mean.MustSize()[1] == 1 {
			p = z.MustSqueezeDim(1, false).MustSigmoid(false)
		} else {
			p = z.MustSoftmax(-1, z.DType(), false)
		}
		scope.Keep(p)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("laplace.Probit: %w", err)
	}
	return p, nil
}

// checkOutputs checks the shapes of means [n, C] and covariances [n, C, C].
func checkOutputs(function string, mean, cov *ts.Tensor) error {
	if mean == nil || cov == nil {
		return fmt.Errorf("laplace.%s: the mean or the covariance is nil: laplace.Linearized gives both", function)
	}
	m, err := torch.Shape(mean)
	if err != nil {
		return fmt.Errorf("laplace.%s: the mean: %w", function, err)
	}
	c, err := torch.Shape(cov)
	if err != nil {
		return fmt.Errorf("laplace.%s: the covariance: %w", function, err)
	}
	if len(m) != 2 || !slices.Equal(c, []int64{m[0], m[1], m[1]}) {
		return fmt.Errorf("laplace.%s: a mean of shape %v and a covariance of shape %v: expected [n, C] and [n, C, C]", function, m, c)
	}
	return nil
}

// Restrict makes a function of the whole params one of a subspace, for the Forward and LogLikelihood of last-layer approximations: embed
// is the third result of [infer.Subspace].
func Restrict[F ~func(p infer.Params, b infer.Batch) *ts.Tensor](f F, embed func(infer.Params) (infer.Params, error)) F {
	return func(p infer.Params, b infer.Batch) *ts.Tensor {
		if f == nil || embed == nil {
			torch.Must(p.Flat, fmt.Errorf("laplace.Restrict: the function or the embedding is nil: %w", infer.ErrConfig))
		}
		return f(torch.Must(embed(p)), b)
	}
}
