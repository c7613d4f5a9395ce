package vi

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// State is the state of [Diag], [Dense] and [LowRank]: a normal distribution N(μ, FFᵀ) on its way, or K of them.
type State struct {
	Mean      infer.Params  // μ, of shape [d] or [K, d]
	Optimizer infer.State   // the optimiser's; its position is the variational parameters
	Streams   torch.Streams // of the K chains

	family family
}

// Position is the mean.
func (s State) Position() infer.Params { return s.Mean }

// Steps is the number of updates so far.
func (s State) Steps() int64 { return s.Optimizer.Steps() }

// Save names the parts of the state: "params" is the mean, and the optimiser's parts have the family before their names, as in
// "diag.params".
func (s State) Save() infer.Saved {
	saved := infer.Saved{Steps: s.Steps(), Streams: s.Streams, Tensors: infer.Tensors{"params": s.Mean.Flat}}
	for name, x := range s.Optimizer.Save().Tensors {
		saved.Tensors[prefix(s.family)+name] = x
	}
	return saved
}

// prefix comes before the names of the optimiser's tensors in a saved state, so that no other family takes them for its own.
func prefix(f family) string { return f.name() + "." }

// Variational is the variational parameters, with the sites that the method names.
func (s State) Variational() infer.Params { return s.Optimizer.Position() }

// SD is the standard deviations of the elements, in the layout and shape of the mean.
func (s State) SD() (infer.Params, error) {
	sd := infer.Params{Layout: s.Mean.Layout}
	var err error
	sd.Flat, err = s.read("SD", func(q gaussian) *ts.Tensor { return q.variance().MustSqrt(false) })
	return sd, err
}

// Covariance is FFᵀ, of shape [d, d] or [K, d, d].
func (s State) Covariance() (*ts.Tensor, error) {
	return s.read("Covariance", func(q gaussian) *ts.Tensor {
		f := q.factor()
		return f.MustMatmul(f.MustTranspose(1, 2, false), false)
	})
}

// ScaleFactor is F, with a leading dimension of K where there are chains: of shape [d, d] and diagonal for [Diag], lower triangular for
// [Dense], and [W, diag e^s] of shape [d, r+d] for [LowRank].
func (s State) ScaleFactor() (*ts.Tensor, error) {
	return s.read("ScaleFactor", func(q gaussian) *ts.Tensor { return q.factor() })
}

// read computes a tensor of K distributions, and drops the chain axis where there is none.
func (s State) read(what string, f func(gaussian) *ts.Tensor) (out *ts.Tensor, err error) {
	if s.family == nil {
		return nil, fmt.Errorf("vi.State: %s: the state is empty: a transform makes states", what)
	}
	err = torch.Do(func(scope *torch.Scope) error {
		x := f(s.gaussian())
		if !s.Mean.Batched() {
			x = x.MustSelect(0, 0, false)
		}
		out, err = copyOf(x)
		scope.Keep(out)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("vi.State: %s: %w", what, err)
	}
	return out, nil
}

// gaussian is the distribution, for use inside torch.Do.
func (s State) gaussian() gaussian {
	phi := s.Variational()
	return s.family.at(infer.Params{Layout: phi.Layout, Flat: rows(phi.Flat)})
}
