package laplace

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// LinearizedNetwork is Linearized from the Kronecker factors: no matrix in all parameters is made. With the inputs a of
// a layer and S = ∂z/∂s the covariance is the sum over layers of T Σ_oi (S U_G)_co (S U_G)_eo (U_Aᵀa)_i² / value_oi for
// outputs c and e.
func (s KFACState) LinearizedNetwork(f Network, b infer.Batch, o curvature.LinearizedOptions) (mean, cov torch.Tensor,
	err error) {
	const name = "laplace.LinearizedNetwork"
	if f == nil {
		return torch.Tensor{}, torch.Tensor{}, fmt.Errorf("%s: the network is nil: %w", name, infer.ErrConfig)
	}
	if err := s.single("LinearizedNetwork"); err != nil {
		return torch.Tensor{}, torch.Tensor{}, err
	}
	if err := method.CheckValue(name, "NoiseSD", o.NoiseSD, 0, false); err != nil {
		return torch.Tensor{}, torch.Tensor{}, err
	}
	if err := method.CheckValue(name, "Memory", float64(o.Memory), 0, false); err != nil {
		return torch.Tensor{}, torch.Tensor{}, err
	}
	err = torch.Do(func(scope *torch.Scope) error {
		spectra := kronecker{s.Layers}.positive(s.Gaussian)
		gradients(func() { mean, cov = s.linearizedBlocks(f, spectra, b, o.Memory) })
		cov.T().MustMulScalar_(ts.FloatScalar(s.Temperature))
		cov.T().MustDiagonal(0, 1, 2, false).MustAddScalar_(ts.FloatScalar(o.NoiseSD * o.NoiseSD))
		scope.Keep(mean, cov)
		return nil
	})
	if err != nil {
		return torch.Tensor{}, torch.Tensor{}, fmt.Errorf("%s: %w", name, err)
	}
	return mean, cov, nil
}

// linearizedBlocks is the law of the outputs at T = 1, of as many data at a time as fit into the
// memory beside the result.
func (s KFACState) linearizedBlocks(f Network, spectra []spectrum, b infer.Batch, memory int) (mean,
	cov torch.Tensor) {
	n := torch.Must(b.Size())
	if memory == 0 {
		memory = method.DefaultMemory
	}
	first := record(f, s.Layers, s.Params, part(b, 0, 1))
	c, bytes := first.c, float64(s.Params.Flat.T().DType().Size())
	numbers, result, row := float64(memory)/bytes, float64(n)*float64(c)*float64(1+c), 2*float64(c)*float64(c)
	for _, sp := range spectra {
		// Jacobians, turned and weighted; inputs
		row += 3*float64(c)*float64(sp.out) + float64(sp.out) + 3*float64(sp.in)
	}
	approx.Try(method.CheckMemory(fmt.Sprintf("covariances of shape [%d, %d, %d] with the Jacobians of a datum", n, c, c),
		(result+row)*bytes, memory, "curvature.LinearizedOptions.Memory", "take fewer data at a time"))
	device := torch.Must(torch.DeviceOf(first.z))
	mean, cov = torch.Of(ts.MustZeros([]int64{int64(n), int64(c)}, first.z.T().DType(),
		device)), torch.Of(ts.MustZeros([]int64{int64(n), int64(c), int64(c)}, first.z.T().DType(),
		device))
	for from, rows := 0, max(1, int((numbers-result)/row)); from < n; from += rows {
		rows := min(rows, n-from)
		approx.Try(torch.Do(func(*torch.Scope) error {
			r := record(f, s.Layers, s.Params, part(b, from, rows))
			mean.T().MustNarrow(0, int64(from), int64(rows), false).Copy_(r.z.T().MustDetach(false))
			r.addCovariance(torch.Of(cov.T().MustNarrow(0, int64(from), int64(rows), false)), spectra)
			return nil
		}))
	}
	return mean, cov
}

// addCovariance adds J P⁻¹ Jᵀ of each datum to cov, [n, C, C].
func (r *recorded) addCovariance(cov torch.Tensor, spectra []spectrum) {
	jacobians := r.jacobians()
	for i, sp := range spectra {
		along := r.inputs[i].MatMul(sp.a.At(0).T()).Square().T()
		// [n, out]
		weight := along.MustMatmul(approx.T(sp.values.At(0).Reciprocal()).T(), false)
		j := jacobians[i].MatMul(sp.g.At(0).T()).T()
		cov.T().MustAdd_(j.MustMul(weight.MustUnsqueeze(1, false), false).MustBmm(approx.T(torch.Of(j)).T(), false))
	}
}

// part is rows data of a batch.
func part(b infer.Batch, from, rows int) infer.Batch {
	out := infer.Batch{}
	for name, x := range b {
		out[name] = torch.Of(x.T().MustNarrow(0, int64(from), int64(rows), false))
	}
	return out
}

// Restrict makes a function of the whole params one of a subspace, for the Forward and LogLikelihood of last-layer
// approximations: embed is the third result of [infer.Subspace].
func Restrict[F ~func(p infer.Params, b infer.Batch) torch.Tensor](f F,
	embed func(infer.Params) (infer.Params, error)) F {
	return func(p infer.Params, b infer.Batch) torch.Tensor {
		if f == nil || embed == nil {
			torch.Must(p.Flat, fmt.Errorf("laplace.Restrict: the function or the embedding is nil: %w",
				infer.ErrConfig))
		}
		return f(torch.Must(embed(p)), b)
	}
}
