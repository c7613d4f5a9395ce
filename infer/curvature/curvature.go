package curvature

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Forward is a model's output for the data of a batch: [n] or [n, ...], the first dimension the data. The C numbers of
// a datum are taken in row-major order. Failures of operations come back as errors.
type Forward func(p infer.Params, b infer.Batch) torch.Tensor

// Outer is log p(y_i | z_i) for each datum: [n], from outputs of shape [n, ...]. Entry i depends on z_i alone.
type Outer func(z torch.Tensor, b infer.Batch) torch.Tensor

// PerDatum is a log density for each datum of a batch: [n].
type PerDatum func(p infer.Params, b infer.Batch) torch.Tensor

// Options are what the functions have in common; the zero value is fine.
type Options struct {
	// Memory is the number of bytes that rows of gradients and the result may take together; 0 means 1 GiB. Less memory
	// means smaller blocks of rows, down to one row. The model's own intermediates come on top.
	Memory int
	// MemoryField is what a MemoryError calls the field that sets Memory, where it is one of another configuration; ""
	// means "curvature.Options.Memory".
	MemoryField string
	// Tables names sites that are tables, of shape [rows, ...]: a datum sees only the rows whose numbers are in a batch
	// tensor, int64 of shape [n, ...]. An embedding and its tokens are one. FisherDiag and GGNDiag then make gradients of
	// these rows alone, which for a large vocabulary is most of the work and of the memory. The model is given a site with
	// as many rows as numbers, and numbers that fit it: it may use the batch tensor for nothing else. The other functions
	// refuse it.
	Tables map[string]string
	// Normalize divides sums over the n data by n. Gradients and Hessian have no such sum and ignore it.
	Normalize bool
}

// Likelihood is the log density of each datum under a model: log p(y_i | z_i) with z = f(p, b).
func Likelihood(f Forward, o Outer) PerDatum {
	return func(p infer.Params, b infer.Batch) torch.Tensor {
		if f == nil || o == nil {
			fail("Likelihood: the forward function or the outer density is nil: %w", infer.ErrConfig)
		}
		return o(f(p, b), b)
	}
}

// PerSample evaluates a log posterior at each datum as a batch of one. For a mean over data, (1/N) log prior + (1/n) Σ
// log likelihood, that is (1/N) log prior + log likelihood of the datum: the prior is then part of every gradient g_i.
func PerSample(f infer.LogPosterior) PerDatum {
	return func(p infer.Params, b infer.Batch) torch.Tensor {
		if f == nil {
			fail("PerSample: the log posterior is nil: %w", infer.ErrConfig)
		}
		n, err := b.Size()
		if err != nil {
			fail("PerSample: %w", err)
		}
		return eachDatum(b, n, func(one infer.Batch) torch.Tensor {
			logp, _ := f(p, one)
			if shape := logp.Shape(); len(shape) != 0 {
				fail("the log posterior returned shape %v for a datum, expected []", shape)
			}
			return torch.Of(logp.T())
		})
	}
}

// eachDatum maps f over the data, each as a batch of one, and returns the results with a leading dimension of n. One
// datum needs no map.
func eachDatum(b infer.Batch, n int, f func(one infer.Batch) torch.Tensor) torch.Tensor {
	if n == 1 {
		return f(b).Unsqueeze(0)
	}
	names, parts := ones(b)
	out := torch.Must(torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
		return []torch.Tensor{f(named(names, in))}, nil
	}, parts, nil))
	return out[0]
}

// ones are the tensors of a batch, in the order of their names, with shape [n, 1, ...]: n batches of one.
func ones(b infer.Batch) (names []string, parts []torch.Tensor) {
	for name := range b {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		parts = append(parts, b[name].Unsqueeze(1))
	}
	return names, parts
}

func named(names []string, parts []torch.Tensor) infer.Batch {
	b := infer.Batch{}
	for i, name := range names {
		b[name] = parts[i]
	}
	return b
}

// fail panics with an error that torch.Do returns.
func fail(format string, args ...any) {
	torch.Must[torch.Tensor](torch.Tensor{}, fmt.Errorf(format, args...))
}
