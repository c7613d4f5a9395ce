package curvature_test

import (
	"fmt"

	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/torch"
)

// A line through four points with noise of standard deviation 1/2: the Gauss-Newton matrix is XᵀX/s², the same whatever
// y is.
func Example() {
	forward := func(p infer.Params, b infer.Batch) torch.Tensor {
		return p.Get("slope").Mul(b.Get("x")).Add(p.Get("intercept"))
	}
	outer := func(z torch.Tensor, b infer.Batch) torch.Tensor {
		return b.Get("y").Sub(z).Square().Mul(-0.5 / 0.25)
	}
	batch := infer.Batch{
		"x": torch.New([]float64{-1, 0, 1, 2}),
		"y": torch.New([]float64{0, 1, 3, 4}),
	}
	p, err := infer.FromTensors(map[string]torch.Tensor{
		"intercept": torch.Of(ts.MustFull([]int64{}, ts.FloatScalar(1), gotch.Double, torch.CPU)),
		"slope":     torch.Of(ts.MustFull([]int64{}, ts.FloatScalar(1), gotch.Double, torch.CPU)),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ggn, err := curvature.GGN(forward, outer, p, batch, curvature.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("GGN:   ", torch.Must(torch.ToSlice[float64](ggn)))
	fisher, err := curvature.Fisher(curvature.Likelihood(forward, outer), p, batch, curvature.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("Fisher:", torch.Must(torch.ToSlice[float64](fisher)))
	// Output:
	// GGN:    [16 8 8 24]
	// Fisher: [32 48 48 80]
}
