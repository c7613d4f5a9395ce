package ekf

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/sugarme/gotch"
)

// checkMemory refuses covariance matrices that do not fit, before any is made.
func checkMemory(method string, p infer.Params, memory int64) error {
	if memory == 0 {
		memory = 1 << 30 // as in curvature.Options
	}
	size := 8.0
	if p.Flat.DType() == gotch.Float {
		size = 4
	}
	d := float64(p.Layout.Dim())
	if bytes := size * d * d * float64(p.Chains()); bytes > float64(memory) {
		return fmt.Errorf("%s: %w", method, &curvature.MemoryError{
			What:    fmt.Sprintf("a covariance of shape [%d, %d] for each of %d chains", p.Layout.Dim(), p.Layout.Dim(), p.Chains()),
			Bytes:   int64(min(bytes, 9e18)),
			Allowed: memory,
			Instead: "use ekf.Diag, or the last layer alone by infer.Subspace",
		})
	}
	return nil
}
