package curvature

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Densities returns log p(y_i|z_i) for outputs z of shape [n, ...], [n], with a graph where z has one, after a check
// that each belongs to a datum: that of datum 0 must be the same without the other data.
func (o Outer) Densities(z torch.Tensor, b infer.Batch) (l torch.Tensor, err error) {
	err = torch.Do(func(scope *torch.Scope) error {
		q := outerProblem(o, z, b)
		l = q.densities(o, z, b, q.n)
		scope.Keep(l)
		return nil
	})
	return l, err
}

// Root returns roots of H_i = −∂² log p(y_i|z_i)/∂z_i² for outputs z of shape [n, ...]: the rows of root, [n, C, C],
// are √|λ_k| u_kᵀ with the eigenvalues and eigenvectors of H_i, those within rounding of 0 at 0, and signs, [n, C], are
// those of λ_k, nil where none is negative, so that H_i = rootᵀ diag(signs) root. It makes the check of Densities.
func (o Outer) Root(z torch.Tensor, b infer.Batch) (root, signs torch.Tensor, err error) {
	err = torch.Do(func(scope *torch.Scope) error {
		defer ts.KelvinSetGradMode(ts.KelvinSetGradMode(true))
		q := outerProblem(o, z, b)
		c := z.Numel() / q.n
		h := finite("the second derivative of the outer density", q.outerHessians(o, z, b, q.n, c))
		values, vectors := eigen(h, q.n, c)
		values = cleaned(values, c)
		scales := values.Abs().Sqrt().Unsqueeze(2).T()
		root = torch.Of(vectors.T().MustTranspose(1, 2, false).MustMul(scales, false))
		signs = signsOf(values)
		scope.Keep(root, signs)
		return nil
	})
	return root, signs, err
}

// outerProblem is a request for an outer density alone: the outputs take the place of the params.
func outerProblem(o Outer, z torch.Tensor, b infer.Batch) *problem {
	if o == nil {
		try(errNil("outer density"))
	}
	n, err := b.Size()
	try(err)
	q := &problem{b: b, n: n, dtype: z.T().DType(), device: torch.Must(torch.DeviceOf(z))}
	q.returned("the forward function", z, n, false)
	return q
}

// densities are the densities of n data at z. The first time that there are several, that of datum 0 is compared with
// what it is alone.
func (q *problem) densities(outer Outer, z torch.Tensor, b infer.Batch, n int) torch.Tensor {
	l := outer(z, b).T()
	q.returned("the outer density", torch.Of(l), n, true)
	if n > 1 && !q.separate {
		q.separate = true
		q.checkSeparate(outer, z, torch.Of(l), b)
	}
	return torch.Of(l)
}

// checkSeparate finds outputs of shape [n, 1] against data of shape [n], among others: libtorch pairs each of the n
// outputs with all the n data, and the sums look like densities.
func (q *problem) checkSeparate(outer Outer, z, l torch.Tensor, b infer.Batch) {
	first := infer.Batch{}
	for name, t := range b {
		first[name] = torch.Of(t.T().MustNarrow(0, 0, 1, false))
	}
	one := outer(torch.Of(z.T().MustDetach(false).MustNarrow(0, 0, 1, false)), first).T()
	q.returned("the outer density", torch.Of(one), 1, true)
	among, alone := l.At(0).Item(), torch.Of(one).Item()
	// The same numbers in another order are rounded differently.
	tol := math.Sqrt(method.Epsilon(z)) * max(1, math.Abs(among), math.Abs(alone))
	if among == alone || math.Abs(among-alone) <= tol || math.IsNaN(among) || math.IsNaN(alone) {
		return
	}
	var data []string
	for _, name := range slices.Sorted(maps.Keys(b)) {
		data = append(data, fmt.Sprintf("%s %v", name, b[name].Shape()))
	}
	fail("the density of datum 0 changes with the other data, from %g alone to %g: z has shape %v, the batch has %s: "+
		"the outer density must take z_i and datum i alone, and shapes must match: %w", alone, among,
		z.Shape(), strings.Join(data, ", "), infer.ErrConfig)
}
