package draws_test

import (
	"errors"
	"fmt"
	"os"

	"github.com/kelvin-ppl/kelvin/draws"
)

// sample is a small container: two chains of three draws of a scalar and a vector.
func sample() *draws.Draws {
	sites := []draws.Site{
		{Name: "tau", Offset: 0, Size: 1},
		{Name: "w", Shape: []int{2}, Offset: 1, Size: 2},
	}
	d, err := draws.New(sites, []string{"lp"}, 2)
	if err != nil {
		panic(err)
	}
	for i := range 3 {
		v := float64(i)
		x := []float64{
			1 + v, 10 + v, 20 + v, // chain 0
			4 + v, 13 + v, 23 + v, // chain 1
		}
		if err := d.Append(x, []float64{-v - 1, -v - 1.5}); err != nil {
			panic(err)
		}
	}
	return d
}

func Example() {
	d := sample()
	rows, err := d.Summary()
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := draws.FormatTable(os.Stdout, rows, nil); err != nil {
		fmt.Println(err)
	}
	// Output:
	// name  mean     sd     5%   50%    95%
	// tau    3.5  1.871   1.25   3.5   5.75
	// w[0]  12.5  1.871  10.25  12.5  14.75
	// w[1]  22.5  1.871  20.25  22.5  24.75
}

func ExampleNew() {
	_, err := draws.New([]draws.Site{{Name: "w", Shape: []int{2, 3}, Size: 5}}, nil, 4)
	fmt.Println(err)
	fmt.Println(errors.Is(err, draws.ErrLayout))
	// Output:
	// draws: site 0 ("w"): size is 5, want 6, the product of shape [2 3]
	// true
}

func ExampleDraws_AppendChain() {
	d, err := draws.New([]draws.Site{{Name: "x", Size: 1}}, []string{"lp"}, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 3 {
		if err := d.AppendChain(0, []float64{float64(i)}, []float64{-1}); err != nil {
			fmt.Println(err)
		}
	}
	if err := d.AppendChain(1, []float64{7}, []float64{-2}); err != nil {
		fmt.Println(err)
	}
	fmt.Println(d.Len(0), d.Len(1), d.MinLen(), d.Element(0, 0), d.Pooled(0))
	// Output: 3 1 1 [0 1 2] [0 1 2 7]
}

func ExampleDraws_Quantile() {
	q, err := sample().Quantile("w", 0.05, 0.95)
	if err != nil {
		fmt.Println(err)
		return
	}
	low, high := q[0], q[1]
	for i := range low {
		fmt.Printf("w[%d]: %.2f to %.2f\n", i, low[i], high[i])
	}
	// Output:
	// w[0]: 10.25 to 14.75
	// w[1]: 20.25 to 24.75
}

func ExampleDraws_Slice() {
	d := sample()
	kept, err := d.Slice(1, d.MaxLen()) // without the first draw of each chain
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(kept.Pooled(0))
	// Output: [2 3 5 6]
}

func ExampleDraws_Select() {
	d, err := sample().Select("w")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Names(), d.Row(1, 0))
	// Output: [w[0] w[1]] [13 23]
}

func ExampleDraws_Merge() {
	d, err := sample().Merge(sample())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Chains(), d.Total())
	// Output: 4 12
}
