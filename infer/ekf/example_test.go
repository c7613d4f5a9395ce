package ekf_test

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/ekf"
	"github.com/kelvin-ppl/kelvin/torch"
)

// A level that wanders is followed one measurement at a time. Prior N(0, 1), noise of variance 1, and at first no
// random walk: after n measurements the level has mean Σy/(n+1) and variance 1/(n+1).
func Example() {
	level := func(p infer.Params, b infer.Batch) torch.Tensor { // a prediction for each measurement
		return p.Get("level").Expand(b.Get("y").Shape()...)
	}
	noise := func(z torch.Tensor, b infer.Batch) torch.Tensor { // log N(y; z, 1)
		return b.Get("y").Sub(z).Square().Mul(-0.5).Sub(0.5 * math.Log(2*math.Pi))
	}
	transform, err := ekf.GaussNewton{Forward: level, Outer: noise}.Build(infer.Target{})
	if err != nil {
		fmt.Println(err)
		return
	}
	layout, err := infer.NewLayout(infer.Shapes{"level": {}})
	if err != nil {
		fmt.Println(err)
		return
	}
	start, err := infer.Zeros(layout)
	if err != nil {
		fmt.Println(err)
		return
	}
	state, err := transform.Init(start)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, y := range []float64{2, 1, 3} {
		measurement, err := torch.FromSlice([]float64{y})
		if err != nil {
			fmt.Println(err)
			return
		}
		if state, _, err = transform.Update(state, infer.Batch{"y": measurement}); err != nil {
			fmt.Println(err)
			return
		}
		mean, err := state.Position().Values()
		if err != nil {
			fmt.Println(err)
			return
		}
		variance, err := torch.Item(state.(ekf.DenseState).Covariance)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("y = %g: mean %.3f, variance %.3f\n", y, mean[0], variance)
	}
	// Output:
	// y = 2: mean 1.000, variance 0.500
	// y = 1: mean 1.000, variance 0.333
	// y = 3: mean 1.500, variance 0.250
}
