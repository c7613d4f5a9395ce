package rows

import (
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// RowTermOf is the term of a site with these log densities, without what its plates say.
func RowTermOf(logp *ts.Tensor) infer.RowTerm {
	return infer.RowTerm{Sum: torch.Of(logp.MustSum(gotch.Double, false)).Item(),
		Size: torch.Of(logp.MustAbs(false).MustSum(gotch.Double, false)).Item()}
}

// InPlate says of a term what a plate around its site does, of which a batch has used of size data: rows add up where
// that is a part. A plate that has all of its data at once, as many as there are rows, or the one of which the batch of
// Compile had a part, has them on a smaller batch too.
func InPlate(t *infer.RowTerm, all []Rows, batch infer.Batch, size, used int, ofPart bool) {
	whole := used == size
	t.AddsUp = t.AddsUp || !whole
	t.AllInOne = !t.AddsUp && (t.AllInOne || whole && size > 1 && slices.ContainsFunc(all, func(r Rows) bool {
		return (r.Size == size || ofPart) && r.In(batch) != r.Size
	}))
}
