package curvature

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/sites"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// leaves are what the gradients of a block are taken in: a leaf of shape [rows, d], or the sites of a single row. A
// large site, such as an embedding, is then not copied into a gradient of all sites.
type leaves []*ts.Tensor

// gradient is Jᵀu of y, for u in the shape of y, or nil for ones: in the shapes of the leaves.
func (l leaves) gradient(y, u *ts.Tensor, keep bool) ([]*ts.Tensor, error) {
	o := &torch.GradOptions{KeepGraph: keep, AllowUnused: len(l) > 1}
	if u != nil {
		o.Weights = []*ts.Tensor{u}
	}
	return torch.Grad([]*ts.Tensor{y}, l, o)
}

// joined is a gradient in leaves as rows, [rows, d].
func joined(g []*ts.Tensor) *ts.Tensor {
	if len(g) == 1 {
		return g[0]
	}
	return ts.MustCat(g, 0).MustUnsqueeze(0, false)
}

// singleRow evaluates f at θ, with the sites as leaves, and one datum. It is not ok where f reads the flat vector,
// which the first datum shows: f is the same for all.
func (q *problem) singleRow(what string, block infer.Batch, flat bool,
	f func(infer.Params, infer.Batch) torch.Tensor) (l leaves, out *ts.Tensor, ok bool) {
	layout := q.p.Layout
	if q.tables != nil || q.whole || len(layout.Sites) < 2 {
		return nil, nil, false
	}
	for _, s := range layout.Sites {
		l = append(l, torch.Must(torch.Leaf(q.p.Flat.MustNarrow(0, int64(s.Offset), int64(s.Size), false))))
	}
	vector := torch.Must(torch.Leaf(q.p.Flat))
	out = f(sites.Join(layout, vector, l).(infer.Params), block).T()
	q.returned(what, out, 1, flat)
	tracked(what, "the params", out)
	if !q.apart {
		_, err := leaves{vector}.gradient(out.MustSum(q.dtype, false), nil, true)
		q.apart, q.whole = err != nil, err == nil
	}
	return l, out, q.apart
}
