package ode_test

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ode"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// epidemic is dS/dt = −β S I, dI/dt = β S I − γ I, for the shares of a population that can be infected, and that are.
var epidemic = ode.New(func(t, y torch.Tensor, params []torch.Tensor) torch.Tensor {
	beta, gamma := params[0], params[1]
	s, i := y.At(0), y.At(1)
	infections := beta.Mul(s).Mul(i)
	return torch.Stack(0, infections.Neg(), infections.Sub(gamma.Mul(i)))
}, ode.Options{})

// outbreak is a model of the infected, seen through counts among 763 people.
func outbreak(c *ppl.Ctx) {
	beta := c.Sample("beta", dist.LogNormal(0.5, 0.5))
	gamma := c.Sample("gamma", dist.LogNormal(-1, 0.5))
	first := c.Sample("first", dist.Beta(1, 100))
	start := torch.Stack(0, torch.Of(1).Sub(first), first)
	y := ode.Solve(epidemic, start, 0, c.Data("days"), beta, gamma)
	infected := y.Transpose().At(1).Max(1e-8) // what is nearly 0 may come out negative, by about ATol
	c.Plate("days", 0, func(c *ppl.Ctx) {
		c.Observe("cases", dist.Poisson(infected.Mul(763)), c.Data("cases"))
	})
}

// A solution is a tensor of shape [times, states], here of numbers alone. S + I − (γ/β) log S stays what it was.
func ExampleSolve() {
	err := torch.Do(func(*torch.Scope) error {
		y := ode.Solve(epidemic, []float64{0.999, 0.001}, 0, []float64{2, 5, 10}, 1.7, 0.5)
		for t := range 3 {
			fmt.Printf("%.4f susceptible, %.4f infected\n", y.At(t, 0).Item(), y.At(t, 1).Item())
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// 0.9850 susceptible, 0.0108 infected
	// 0.6594 susceptible, 0.2184 infected
	// 0.0675 susceptible, 0.1401 infected
}

// Example compiles a model with a solution in it.
func Example() {
	days, cases := make([]float64, 14), []float64{3, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4}
	for i := range days {
		days[i] = float64(i + 1)
	}
	program, err := ppl.Compile(outbreak, infer.Batch{
		"days": torch.New(days), "cases": torch.New(cases)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(program.Latents())
	// Output: [beta gamma first]
}
