package diag_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
)

// sample has four chains of 250 independent draws of a scalar and a vector; transition 17 of each chain diverged.
func sample() *draws.Draws {
	sites := []draws.Site{{Name: "mu", Size: 1}, {Name: "theta", Shape: []int{2}, Offset: 1, Size: 2}}
	d, err := draws.New(sites, []string{draws.StatDivergent}, 4)
	if err != nil {
		panic(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 250 {
		var x, stats []float64
		for range 4 {
			x = append(x, rng.NormFloat64(), 10+3*rng.NormFloat64(), math.Exp(rng.NormFloat64()))
			if i == 17 {
				stats = append(stats, 1)
			} else {
				stats = append(stats, 0)
			}
		}
		if err := d.Append(x, stats); err != nil {
			panic(err)
		}
	}
	return d
}

func Example() {
	table, err := diag.Summary(sample(), diag.SummaryOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(table)
	// Output:
	//           mean     sd  hdi_3%  hdi_97%  mcse_mean  mcse_sd  ess_bulk  ess_tail  r_hat
	// mu         0.008  1.037  -1.973    1.749      0.034    0.024     909.0    1036.0    1.0
	// theta[0]  10.054  2.897   4.383   15.254      0.094    0.067     953.0     960.0    1.0
	// theta[1]   1.626  1.903   0.076    4.762      0.062    0.158    1051.0     887.0    1.0
}

func ExampleDiagnose() {
	report, err := diag.Diagnose(sample(), diag.DiagnoseOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.OK())
	for _, f := range report.Findings {
		fmt.Println(f.Severity, f.Code, f.Site, f.Figure)
	}
	// Output:
	// false
	// serious divergence  4
	// info skipped tree_depth 0
	// info skipped energy 0
}

func ExampleRHat() {
	mixed := [][]float64{{1, 4, 2, 5, 3, 6, 2, 4}, {2, 5, 3, 4, 1, 6, 3, 5}}
	apart := [][]float64{{1, 4, 2, 5, 3, 6, 2, 4}, {12, 15, 13, 14, 11, 16, 13, 15}}
	fmt.Printf("%.2f %.2f\n", diag.RHat(mixed), diag.RHat(apart))
	// Output:
	// 0.95 1.74
}

func ExampleKSD() {
	rng := rand.New(rand.NewPCG(1, 2))
	var x, gradient, shifted, atShifted []float64
	for range 500 { // draws of the standard normal, and of one moved by 1
		v := rng.NormFloat64()
		x, gradient = append(x, v), append(gradient, -v)
		shifted, atShifted = append(shifted, v+1), append(atShifted, -v-1)
	}
	good, err := diag.KSD(x, gradient, 1, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	bad, err := diag.KSD(shifted, atShifted, 1, diag.IMQ{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.2f %.2f\n", good.KSD, bad.KSD)
	// Output:
	// 0.06 0.86
}
