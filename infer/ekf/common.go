package ekf

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// copyOf copies the point, outside any autograd graph: a state that were part of one would carry all its predecessors
// along.
func copyOf(method string, p infer.Params) (infer.Params, error) {
	if err := p.Check(); err != nil {
		return infer.Params{}, fmt.Errorf("%s: %w", method, err)
	}
	start := p
	var err error
	if start.Flat, err = torch.Copy(p.Flat); err != nil {
		return infer.Params{}, fmt.Errorf("%s: %w", method, err)
	}
	return start, nil
}

// chain is chain k of a quantity with a leading chain axis. A quantity without that axis is returned as it is.
func chain(p infer.Params, x *ts.Tensor, k int) *ts.Tensor {
	if !p.Batched() {
		return x
	}
	return x.MustSelect(0, int64(k), false)
}

// same copies a tensor, so that freeing one state leaves the others whole.
func same(x *ts.Tensor) *ts.Tensor { return torch.Must(torch.Combine(torch.Term{Coeff: 1, Tensor: x})) }

// stack puts one tensor for each chain together, with a chain axis where the point has one.
func stack(p infer.Params, x []*ts.Tensor) (*ts.Tensor, error) {
	if !p.Batched() {
		return x[0], nil
	}
	return ts.Stack(x, 0)
}

// scores are the log likelihoods of the data of a batch and their gradients, for each chain.
type scores struct {
	values, norms []float64    // mean log likelihood, and the norm of its gradient
	mean          []*ts.Tensor // mean gradient, [d]
	each          []*ts.Tensor // gradients of the data, [n, d], for Dense
	squares       []*ts.Tensor // mean of their squares, [d], for Diag
}

// scoresOf makes the scores of a method: with the gradients of all data, or else with their squares, of a block of data
// at a time.
func scoresOf(method string, f curvature.PerDatum, p infer.Params, b infer.Batch, memory int64, each bool) (s scores,
	err error) {
	o := curvature.Options{Memory: memory, MemoryField: method + ".Memory", Normalize: true}
	for k := range p.Chains() {
		at := infer.Params{Layout: p.Layout, Flat: chain(p, p.Flat, k)}
		var value, mean, grads, squares *ts.Tensor
		if each {
			if value, grads, err = curvature.Gradients(f, at, b, o); err == nil {
				value, mean = value.MustMean(value.DType(), false), grads.MustMeanDim([]int64{0}, false, grads.DType(), false)
			}
		} else {
			value, mean, squares, err = curvature.GradientSums(f, at, b, o)
		}
		if err != nil {
			return s, fmt.Errorf("log likelihood: %w", err)
		}
		v, norm, err := torch.ValuesAndNorms(value, mean, 1)
		if err != nil {
			return s, err
		}
		s.values, s.norms = append(s.values, v...), append(s.norms, norm...)
		s.mean, s.each, s.squares = append(s.mean, mean), append(s.each, grads), append(s.squares, squares)
	}
	return s, nil
}

// info is what an update tells about itself.
func (s scores) info(lr float64) infer.Info {
	return method.NewInfo(infer.Evaluation{Values: s.values, Norms: s.norms}, lr, 0)
}

// source is where a filter has its likelihood and its prior from.
type source struct {
	name     string
	target   infer.Target
	perDatum curvature.PerDatum // in place of the target's likelihood
	prior    bool               // the prior is the target's: the state begins at the first batch
	lr       infer.Schedule     // nil means n
	bayes    bool               // no LR is configured
	memory   int64
}

// newSource checks where the likelihood comes from. start says whether a Gaussian to start with is configured.
func newSource(name string, target infer.Target, given curvature.PerDatum, lr infer.Schedule, start bool,
	memory int64) (s source, err error) {
	if given == nil && target.LogPosterior == nil {
		return s, fmt.Errorf("%s: the target is empty, and PerDatum is nil: one of them is needed: %w", name, infer.ErrConfig)
	}
	s = source{name: name, target: target, perDatum: given, prior: target.Parts != nil && !start, bayes: lr == nil,
		memory: memory}
	if lr != nil {
		s.lr, err = method.CheckSchedule(name, "LR", lr, nil, 0, false)
	}
	return s, err
}

// Name is the name of the method in checkpoints.
func (s *source) Name() string { return s.name }

// Passes is how often a fit goes over the data: once.
func (s *source) Passes() int64 { return 1 }

// Batches are the data one by one, in an order of the seed: a filter linearises each batch at the mean before it, so
// that all data in one batch would be taken in a single step from the prior.
func (s *source) Batches(data infer.Batch, seed uint64) (infer.Batches, error) {
	return infer.Minibatches(data, infer.MinibatchOptions{Size: 1, Seed: seed})
}

// notes compare the Gaussians with the posterior, where it is that which the filter is for. deviations maps standard
// normal numbers [K, d, n] to those of draws from their means, and logDet is the logarithm of its determinants.
func (s *source) notes(p infer.Params, walk walk, run infer.RunSummary,
	deviations func(z *ts.Tensor) (*ts.Tensor, error), logDet func() ([]float64, error)) []draws.Note {
	if q := walk.sd(max(run.Updates-1, 0)); !s.prior || !s.bayes || q != 0 {
		return nil
	}
	return approx.Closeness(approx.Fit{Name: s.name, Target: s.target, Temperature: 1, Batch: run.Batch, Mean: p,
		Width: int64(p.Layout.Dim()),
		Map: func(eps *ts.Tensor) (*ts.Tensor, *ts.Tensor, error) {
			x, err := deviations(transposed(eps))
			if err != nil {
				return nil, nil, err
			}
			det, err := logDet()
			if err != nil {
				return nil, nil, err
			}
			return transposed(x), approx.Standard(eps, det), nil
		},
		Advice: "a filter sees each datum once: use laplace.DenseHessian, vi.Dense or hmc.NUTS where all data are at hand, " +
			"or ekf.GaussNewton, which is exact where data are normal around a linear function."})
}

// CheckRows refuses data that a filter cannot take one by one, before a run begins.
func (s *source) CheckRows(b infer.Batch) error {
	if _, err := approx.Rows(b); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}

// rate is ε of an update.
func (s *source) rate(step int64, b infer.Batch) (float64, error) {
	if err := s.CheckRows(b); err != nil {
		return 0, err
	}
	if s.lr == nil {
		n, err := b.Size()
		return float64(n), err
	}
	lr := s.lr(step)
	return lr, method.CheckValue(s.name, fmt.Sprintf("LR at update %d", step), lr, 0, false)
}

// each is the log likelihood of each datum of a batch.
func (s *source) each(p infer.Params, b infer.Batch) (curvature.PerDatum, error) {
	switch {
	case s.perDatum != nil:
		return s.perDatum, nil
	case s.target.Parts == nil:
		return curvature.PerSample(s.target.LogPosterior), nil
	}
	f, _, err := approx.Data(s.target, infer.Params{Layout: p.Layout, Flat: chain(p, p.Flat, 0)}, b)
	return f, err
}

// begin is the target's prior as a Gaussian: its mean in the shape of p, and its precision, [d, d], or [d] where it is
// diagonal.
func (s *source) begin(p infer.Params, b infer.Batch) (mean, precision *ts.Tensor, err error) {
	first := infer.Params{Layout: p.Layout, Flat: chain(p, p.Flat, 0)}
	mean, precision, err = approx.Gaussian(approx.Prior(s.target, 1), first, b, s.memory, s.name)
	if errors.Is(err, approx.ErrNoGaussian) || errors.Is(err, infer.ErrNonFinite) {
		return nil, nil, fmt.Errorf("the prior: %w: set InitSD, and start at the prior's mean", err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the prior: %w", err)
	}
	return same(mean.MustExpandAs(p.Flat, false)), precision, nil
}

// positive checks a tensor of one number for each parameter, positive or at least not negative, and copies it in the
// type and on the device of the point. The shape is [d], or that of the point where chains is set.
func positive(name, field string, given *ts.Tensor, p infer.Params, chains, zero bool) (*ts.Tensor, error) {
	shape, err := torch.Shape(given)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", name, field, err)
	}
	d := p.Layout.Dim()
	want, err := torch.Shape(p.Flat)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(shape, []int64{int64(d)}) && !(chains && slices.Equal(shape, want)) {
		allowed := fmt.Sprintf("it must be of shape [%d], one number for each parameter", d)
		if chains && len(want) == 2 {
			allowed += fmt.Sprintf(", or %v", want)
		}
		return nil, &infer.FieldError{Type: name, Field: field, Value: fmt.Sprintf("of shape %v", shape), Allowed: allowed}
	}
	v, err := torch.ToSlice[float64](given)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", name, field, err)
	}
	for i, x := range v {
		if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 || x == 0 && !zero {
			return nil, method.CheckValue(name, field+" of "+p.Layout.At(i%d), x, 0, !zero)
		}
	}
	return like(p.Flat, given)
}

// like copies x in the type and on the device of another tensor, outside any graph.
func like(other, x *ts.Tensor) (out *ts.Tensor, err error) {
	err = torch.Do(func(scope *torch.Scope) error {
		device, err := torch.DeviceOf(other)
		if err != nil {
			return err
		}
		if out, err = torch.To(x, device, other.DType()); err != nil {
			return err
		}
		out, err = torch.Combine(torch.Term{Coeff: 1, Tensor: out.MustDetach(false)})
		scope.Keep(out)
		return err
	})
	return out, err
}

// eye is the identity matrix in the type and on the device of another tensor.
func eye(n int64, other *ts.Tensor) *ts.Tensor {
	return torch.Must(ts.Eye(n, other.DType(), torch.Must(torch.DeviceOf(other))))
}

// transposed swaps the last two dimensions.
func transposed(m *ts.Tensor) *ts.Tensor { return m.MustTranspose(-2, -1, false) }

// draw draws n points: means plus noise, where noise maps standard normal numbers [K, d, m], K chains and m draws of
// each, to deviations of that shape. Draw i is of chain i mod K.
func draw(name string, p infer.Params, n int, streams *torch.Streams,
	noise func(z *ts.Tensor) (*ts.Tensor, error)) (infer.Params, error) {
	if err := method.CheckDraws(name, n, streams); err != nil {
		return infer.Params{}, err
	}
	out, err := method.DrawGaussians(p, n, int64(p.Layout.Dim()), streams, func(eps *ts.Tensor) (*ts.Tensor, error) {
		x, err := noise(transposed(eps))
		if err != nil {
			return nil, err
		}
		return transposed(x), nil
	})
	if err != nil {
		return infer.Params{}, fmt.Errorf("%s: %w", name, err)
	}
	return out, nil
}

// held says whether chain k diverged.
func held(diverged []bool, k int) bool { return diverged != nil && diverged[k] }

var errNoLikelihood = errors.New("the outer density returned one number, expected a tensor of shape [n]")
