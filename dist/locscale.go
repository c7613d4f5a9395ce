package dist

import "github.com/kelvin-ppl/kelvin/torch"

// LocScale is loc + scale·z, for parameters that are numbers or tensors.
func LocScale(loc, scale any, z torch.Tensor) torch.Tensor {
	return z.Mul(param("LocScale", "scale", scale)).Add(param("LocScale", "loc", loc))
}
