package ppl_test

import (
	"fmt"
	"math"
	"strings"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// must ends an example that cannot go on; a program would return the error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// coin is a coin of unknown bias, thrown ten times.
func coin(c *ppl.Ctx) {
	p := c.Sample("p", dist.Beta(2, 2))
	c.Plate("throws", 10, func(c *ppl.Ctx) {
		c.Observe("heads", dist.Bernoulli(p), c.Data("heads"))
	})
}

func throws() infer.Batch {
	return infer.Batch{"heads": torch.New([]float64{1, 1, 0, 1, 1, 1, 0, 1, 1, 0})}
}

// A compiled model is a log posterior on unconstrained space. Here p = 1/(1 + e⁻ˣ), and at x = 0 the density of p is
// Beta(2, 2)'s, 1.5, times 2⁻¹⁰ for the throws, times dp/dx = 1/4.
func ExampleCompile() {
	batch := throws()
	program := must(ppl.Compile(coin, batch))
	fmt.Println(program.Layout(), program.Data())

	gradient := must(infer.NewGradient(program.Target()))
	e := must(gradient.ValueAndGrad(must(infer.Zeros(program.Layout())), batch, 1./10)) // a mean over the 10 throws
	fmt.Printf("%.6f %.6f\n", 10*e.Values[0], math.Log(1.5/1024/4))

	p := must(program.Constrain(must(infer.NewParams(program.Layout(), []float64{1})), batch))["p"]
	fmt.Printf("%.4f\n", p.Item())
	// Output:
	// p[] 10
	// -7.912301 -7.912301
	// 0.7311
}

// A mistake comes back as an error that says where it is and what would be right.
func ExampleSiteError() {
	batch := throws()
	_, err := ppl.Compile(func(c *ppl.Ctx) {
		rate := c.Sample("rate", dist.Gamma(1, 1))
		c.Plate("throws", 5, func(c *ppl.Ctx) { c.Observe("heads", dist.Poisson(rate), c.Data("heads")) })
	}, batch)
	fmt.Println(strings.NewReplacer("): ", "):\n", " and the", "\nand the", "; ", ";\n").Replace(err.Error()))
	// Output:
	// ppl.Compile: model, site "heads" in plate throws (Poisson):
	// plate "throws" has size 5,
	// and the site has batch shape [] and a value of shape [10]: size 10 at dimension -1;
	// give the plate size 10, or 0, which takes the size of the data (at ppl/example_test.go:58)
}

// Handlers turn a model into a model: here the coin's bias is observed, and then set by an intervention,
// which does not count.
func ExampleCondition() {
	half := ppl.Values{"p": torch.Scalar(0.5)}
	for _, m := range []ppl.Model{ppl.Condition(coin, half), ppl.Do(coin, half)} {
		trace := must(ppl.TraceModel(m, throws(), 1))
		fmt.Printf("%.4f\n", must(trace.LogProb()).Item())
	}
	fmt.Printf("%.4f %.4f\n", math.Log(1.5/1024), math.Log(1./1024))
	// Output:
	// -6.5260
	// -6.9315
	// -6.5260 -6.9315
}

// What the prior predicts needs no data, only what the data depend on: here nothing.
func ExamplePredictive_Prior() {
	values := must(ppl.Predictive{Model: coin, Batch: infer.Batch{}, Seed: 1}.Prior(1000))
	heads := must(torch.ToSlice[float64](values["heads"]))
	sum := 0.0
	for _, h := range heads {
		sum += h
	}
	fmt.Println(values["heads"].Shape(), math.Abs(sum/float64(len(heads))-0.5) < 0.05)
	// Output: [1000 10] true
}

// The graph of a model in Graphviz's language.
func ExampleRender() {
	fmt.Print(must(ppl.Render(coin, throws())))
	// Output:
	// digraph model {
	//   "p" [shape=ellipse, tooltip="Beta"];
	//   subgraph "cluster_throws" {
	//     label="throws (10)"; labelloc=b; labeljust=r;
	//     "heads" [shape=ellipse, style=filled, fillcolor=gray80, tooltip="Bernoulli"];
	//   }
	//   "p" -> "heads";
	// }
}
