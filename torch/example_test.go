package torch_test

import (
	"fmt"

	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/torch"
)

// Everything that is made inside is freed at the end, except what is kept.
func ExampleDo() {
	var total torch.Tensor
	err := torch.Do(func(s *torch.Scope) error {
		x := torch.New([]float64{1, 2, 3, 4}, 2, 2)
		total = torch.Of(x.T().MustMatmul(x.T(), false).MustSum(gotch.Double, false))
		fmt.Println("tensors:", s.Owned())
		s.Keep(total)
		return nil
	})
	fmt.Println(err)
	fmt.Println(torch.Item(total))
	// Output:
	// tensors: 3
	// <nil>
	// 54 <nil>
}

// A mistake inside is an error outside.
func ExampleDo_error() {
	err := torch.Do(func(*torch.Scope) error {
		w := ts.MustZeros([]int64{8}, gotch.Double, gotch.CPU)
		x := ts.MustZeros([]int64{10, 9}, gotch.Double, gotch.CPU)
		x.MustMv(w, false)
		return nil
	})
	fmt.Println(err != nil)
	if e, ok := err.(*torch.Error); ok {
		fmt.Println(e.Op, e.Operands)
	}
	// Output:
	// true
	// Mv [[10 9] Double [8] Double]
}

// The log density of a standard normal, up to a constant, and its gradient.
func ExampleValueAndGrad() {
	x, err := torch.FromSlice([]float64{1, -2, 0.5})
	if err != nil {
		fmt.Println(err)
		return
	}
	value, grad, err := torch.ValueAndGrad(func(x torch.Tensor) torch.Tensor {
		return torch.Of(x.T().MustSquare(false).MustSum(gotch.Double, false).MustMulScalar(ts.FloatScalar(-0.5), false))
	}, x)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(torch.Item(value))
	fmt.Println(torch.ToSlice[float64](grad))
	// Output:
	// -2.625 <nil>
	// [-1 2 -0.5] <nil>
}

// Distances of three points to one centre: the function is written for a single point.
func ExampleVmap() {
	_ = torch.Do(func(*torch.Scope) error {
		points := torch.New([]float64{3, 4, 6, 8, 0, 1}, 3, 2)
		centre := torch.New([]float64{0, 0})
		out, err := torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
			point, centre := in[0], in[1] // of shape [2] both
			return []torch.Tensor{torch.Of(point.T().MustSub(centre.T(), false).MustNorm(false))}, nil
		}, []torch.Tensor{points, centre}, &torch.VmapOptions{InDims: []int{0, torch.NotMapped}})
		if err != nil {
			return err
		}
		fmt.Println(torch.ToSlice[float64](out[0]))
		return nil
	})
	// Output:
	// [5 10 1] <nil>
}

// A chain draws the same numbers whatever other chains there are, and goes on where a copy was made.
func ExampleStreams() {
	draw := func(s *torch.Streams) []float64 {
		x := torch.Must(s.Normal([]int{1}, gotch.Double, gotch.CPU))
		defer torch.Free(x)
		return torch.Must(torch.ToSlice[float64](x))
	}
	four, two := torch.NewStreams(42, 4), torch.NewStreams(42, 2)
	a, b := draw(&four), draw(&two)
	fmt.Println(a[1] == b[1], a[0] == a[1])
	saved := two
	fmt.Println(draw(&two)[0] == draw(&saved)[0])
	// Output:
	// true false
	// true
}

// What is computed inside is not part of a graph.
func ExampleNoGrad() {
	_ = torch.Do(func(*torch.Scope) error {
		w := torch.Must(torch.Leaf(torch.Scalar(3)))
		return torch.NoGrad(func() error {
			fmt.Println(w.T().MustSquare(false).MustRequiresGrad())
			return nil
		})
	})
	// Output:
	// false
}
