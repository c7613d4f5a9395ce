package infer_test

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The log density -½ |x|² as a function of Go slices.
func ExampleCompile() {
	target := infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("x").Square().Sum().Mul(-0.5), nil
	}, 1)
	layout, err := infer.NewLayout(infer.Shapes{"x": {2}})
	if err != nil {
		fmt.Println(err)
		return
	}
	start, err := infer.NewParams(layout, []float64{0.5, 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	f, report, err := infer.Compile(target, start, nil, native.Options{Tier: native.VM})
	if err != nil {
		fmt.Println(err)
		return
	}
	gradient := make([]float64, 2)
	value, err := f.Eval([]float64{1, 2}, 0, gradient)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Tier, value, gradient)
	// Output: vm -2.5 [-1 -2]
}
