package dist

import "github.com/sugarme/gotch/ts"

// LocScale is loc + scale·z, for parameters that are numbers or tensors.
func LocScale(loc, scale any, z *ts.Tensor) *ts.Tensor {
	return ten(z).mul(param("LocScale", "scale", scale)).add(param("LocScale", "loc", loc)).t
}
