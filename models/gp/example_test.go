package gp_test

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/models/gp"
	"github.com/kelvin-ppl/kelvin/torch"
)

// A process that is known at 0 and 1 without noise: halfway its Matérn 1/2 kernel, that of a Markov process, gives the
// mean y/cosh(1/2) for equal values y, and the variance tanh(1/2). The rule says how to approximate a length of a
// third of the half range.
func ExampleProcess() {
	err := torch.Do(func(*torch.Scope) error {
		x, y := torch.New([]float64{0, 1}), torch.Zeros(2).Add(1)
		f := gp.Process{Kernel: gp.Matern{Nu: 0.5}, X: x}.Given(y, 0, torch.Zeros(1).Add(0.5), nil)
		fmt.Printf("%.4f %.4f\n", f.Mean().Values(), f.Variance().Values())
		return nil
	})
	factor, functions, _ := gp.Rule(gp.SquaredExponential{}, 1./3)
	fmt.Printf("%v %.1f %d\n", err, factor, functions)
	// Output:
	// [0.8868] [0.4621]
	// <nil> 1.2 7
}
