package curvature

import (
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// leaves are what the gradients of a block are taken in: a leaf of shape [rows, d], or those of a single row. These are
// its sites, so that a large one, such as an embedding, is not copied into a gradient of all, and then the flat vector,
// which a model may read beside them or instead of them.
type leaves []torch.Tensor

// gradient is Jᵀu of y, for u in the shape of y, or nil for ones: [rows, d], or each site's of a single row.
func (l leaves) gradient(y, u torch.Tensor, keep bool) []torch.Tensor {
	var weights []torch.Tensor
	if u != (torch.Tensor{}) {
		weights = []torch.Tensor{u}
	}
	outputs, n := []torch.Tensor{y}, len(l)-1
	if n == 0 {
		return torch.Must(torch.Grad(outputs, l, &torch.GradOptions{Weights: weights, KeepGraph: keep}))
	}
	g := torch.Must(ts.KelvinGradUsed(raw.Pointers(outputs), raw.Pointers(l), raw.Pointers(weights), keep))
	whole := g[n]
	if used := slices.ContainsFunc(g[:n], func(t *ts.Tensor) bool { return t != nil }); !used && whole == nil {
		// which has the error
		return torch.Must(torch.Grad(outputs, l[n:], &torch.GradOptions{Weights: weights, KeepGraph: keep}))
	} else if !used {
		return []torch.Tensor{torch.Of(whole.MustUnsqueeze(0, false))}
	}
	from := 0
	for i, site := range l[:n] {
		size := site.Numel()
		switch {
		case whole != nil && g[i] != nil:
			g[i] = g[i].MustAdd(whole.MustNarrow(0, int64(from), int64(size), false), false)
		case whole != nil:
			g[i] = whole.MustNarrow(0, int64(from), int64(size), false)
		case g[i] == nil:
			g[i] = site.T().MustZerosLike(false)
		}
		from += size
	}
	return raw.All(g[:n])
}

// joined is a gradient in leaves as rows, [rows, d].
func joined(g []torch.Tensor) torch.Tensor {
	if len(g) == 1 {
		return g[0]
	}
	return torch.Cat(0, g).Unsqueeze(0)
}

// singleRow evaluates f at θ, with its leaves, and one datum.
func (q *problem) singleRow(f func(infer.Params, infer.Batch) torch.Tensor, block infer.Batch) (leaves, torch.Tensor) {
	layout, l := q.p.Layout, leaves{}
	for _, s := range layout.Sites {
		l = append(l, torch.Must(torch.Leaf(torch.Of(q.p.Flat.T().MustNarrow(0, int64(s.Offset), int64(s.Size), false)))))
	}
	vector := torch.Must(torch.Leaf(q.p.Flat))
	return append(l, vector), f(layout.Join(vector, l), block)
}
