package vi

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/torch"
)

// State is the state of [Diag], [Dense] and [LowRank]: a normal distribution N(μ, FFᵀ) on its way, or K of them.
type State struct {
	Mean      infer.Params  // μ, of shape [d] or [K, d]
	Optimizer infer.State   // the optimiser's; its position is the variational parameters
	Streams   torch.Streams // of the K chains

	family family
	limit  limit
	trend  *approx.Trend // of the NELBO
}

// Position is the mean.
func (s State) Position() infer.Params { return s.Mean }

// Steps is the number of updates so far.
func (s State) Steps() int {
	if s.Optimizer == nil {
		return 0
	}
	return s.Optimizer.Steps()
}

// Save names the parts of the state: "params" is the mean, and the optimiser's parts have the family before their
// names, as in "diag.params". An empty state has none, which no Restore takes.
func (s State) Save() infer.Saved {
	saved := infer.Saved{Steps: s.Steps(), Streams: s.Streams, Tensors: infer.Tensors{}}
	if s.empty() {
		return saved
	}
	saved.Tensors["params"] = s.Mean.Flat
	saved.Extra = s.trend.Bytes()
	for name, x := range s.Optimizer.Save().Tensors {
		saved.Tensors[prefix(s.family)+name] = x
	}
	return saved
}

// prefix comes before the names of the optimiser's tensors in a saved state, so that no other family takes them for its
// own.
func prefix(f family) string { return f.name() + "." }

// empty says that no transform has made the state.
func (s State) empty() bool { return s.family == nil || s.Optimizer == nil }

// Variational is the variational parameters, with the sites that the method names.
func (s State) Variational() infer.Params {
	if s.empty() {
		return infer.Params{}
	}
	return s.Optimizer.Position()
}

// SD is the standard deviations of the elements, in the layout and shape of the mean.
func (s State) SD() (infer.Params, error) {
	sd := infer.Params{Layout: s.Mean.Layout}
	var err error
	sd.Flat, err = s.read("SD", func(q gaussian) torch.Tensor { return q.variance().Sqrt() })
	return sd, err
}

// Covariance is FFᵀ, of shape [d, d] or [K, d, d]. One that does not fit into the Memory of the method is an
// [infer.MemoryError].
func (s State) Covariance() (torch.Tensor, error) {
	if err := s.fits("Covariance", func(d int) int { return d }); err != nil {
		return torch.Tensor{}, err
	}
	return s.read("Covariance", func(q gaussian) torch.Tensor {
		f := q.factor()
		return f.MatMul(f.T().MustTranspose(1, 2, false))
	})
}

// ScaleFactor is F, with a leading dimension of K where there are chains: of shape [d, d] and diagonal for [Diag],
// lower triangular for [Dense], and [W, diag e^s] of shape [d, r+d] for [LowRank]. One that does not fit into the
// Memory of the method is an [infer.MemoryError].
func (s State) ScaleFactor() (torch.Tensor, error) {
	if err := s.fits("ScaleFactor", func(d int) int { return s.family.noise(d) }); err != nil {
		return torch.Tensor{}, err
	}
	return s.read("ScaleFactor", func(q gaussian) torch.Tensor { return q.factor() })
}

// fits refuses a matrix that is too large, with a row for each parameter. An empty state is left to read.
func (s State) fits(what string, columns func(d int) int) error {
	if s.empty() {
		return nil
	}
	d := s.Mean.Layout.Dim()
	if err := s.limit.check("a matrix", s.Mean, d, columns(d),
		"use SD, or Sample of the transform for draws"); err != nil {
		return fmt.Errorf("vi.State: %s: %w", what, err)
	}
	return nil
}

// read computes a tensor of K distributions, and drops the chain axis if the mean has none.
func (s State) read(what string, f func(gaussian) torch.Tensor) (out torch.Tensor, err error) {
	if s.empty() {
		return torch.Tensor{}, fmt.Errorf("vi.State: %s: the state is empty: a transform makes states", what)
	}
	err = torch.Do(func(scope *torch.Scope) error {
		x := f(s.gaussian())
		if !s.Mean.Batched() {
			x = x.At(0)
		}
		out, err = torch.Copy(x)
		scope.Keep(out)
		return err
	})
	if err != nil {
		return torch.Tensor{}, fmt.Errorf("vi.State: %s: %w", what, err)
	}
	return out, nil
}

// gaussian is the distribution, for use inside torch.Do.
func (s State) gaussian() gaussian {
	phi := s.Variational()
	return s.family.at(infer.Params{Layout: phi.Layout, Flat: rows(phi.Flat)})
}

// Tensors are what the state owns, and what it shares with others.
func (s State) Tensors() (owned, shared infer.Tensors) {
	owned = infer.Tensors{}
	if s.empty() {
		return owned, nil
	}
	owned["params"] = s.Mean.Flat
	more, shared := s.Optimizer.Tensors()
	for name, x := range more {
		owned[prefix(s.family)+name] = x
	}
	return owned, shared
}

// Linearized is the law of a model's outputs when the model is linearised at μ:
//
//	z_i ~ N(f(μ, x_i), J_i FFᵀ J_iᵀ + NoiseSD² I)
//
// with the mean of shape [n, C] and the covariance [n, C, C], as [curvature.Linearized] has them. The temperature is in
// F. The state must be of one distribution.
func (s State) Linearized(f curvature.Forward, b infer.Batch, o curvature.LinearizedOptions) (mean, cov torch.Tensor,
	err error) {
	switch {
	case s.empty():
		return torch.Tensor{}, torch.Tensor{}, fmt.Errorf(
			"vi.State: Linearized: the state is empty: a transform makes states: %w",
			infer.ErrConfig)
	case s.Mean.Chains() > 1:
		return torch.Tensor{}, torch.Tensor{}, fmt.Errorf(
			"vi.State: Linearized: the state has %d distributions: fit one at a time: %w",
			s.Mean.Chains(), infer.ErrConfig)
	}
	err = torch.Do(func(scope *torch.Scope) error {
		one := func(x torch.Tensor) torch.Tensor { return x.At(0) }
		p := infer.Params{Layout: s.Mean.Layout, Flat: one(rows(s.Mean.Flat))}
		switch q := s.gaussian().(type) {
		case diagGaussian:
			mean, cov, err = curvature.Linearized(f, p, b, one(q.variance()), o)
		case lowRankGaussian:
			// The factor [W, diag e^s] has d columns too many.
			mean, cov, err = curvature.LinearizedFactor(f, p, b, one(q.w), o)
			approx.Try(err)
			o.NoiseSD = 0
			var rest torch.Tensor
			_, rest, err = curvature.Linearized(f, p, b, one(one(q.sd)).Square(), o)
			approx.Try(err)
			cov = cov.Add(rest)
		default:
			mean, cov, err = curvature.LinearizedFactor(f, p, b, one(q.factor()), o)
		}
		scope.Keep(mean, cov)
		return err
	})
	if err != nil {
		return torch.Tensor{}, torch.Tensor{}, fmt.Errorf(
			"vi.State: Linearized: %w", err)
	}
	return mean, cov, nil
}
