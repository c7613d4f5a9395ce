// Package sites lets other packages see the sites of a point, an infer.Params, as tensors, and hand a log posterior a
// point whose sites are tensors of their own.
package sites

import "github.com/sugarme/gotch/ts"

// Package infer sets these.
var (
	// Join is a point of a layout, an *infer.Layout, whose sites are the parts, each of shape [size], in its order. What
	// reads the flat vector itself sees flat, which has the same numbers.
	Join func(layout any, flat *ts.Tensor, parts []*ts.Tensor) any

	// Of are the parts of a point that was split or joined, in the order of its layout; nil of any other.
	Of func(params any) []*ts.Tensor
)
