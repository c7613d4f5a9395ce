package main

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// One update leaves the posterior as it is. 20000 chains start at exact draws of N(0, 1) and make one update with a
// large step; then the mean, the square and the fourth power still have their expectations 0, 1 and 3. The draws are
// independent, so that the standard errors are those of the powers, √(1/n), √(2/n) and √(96/n).
func TestPosteriorStays(t *testing.T) {
	const n = 20000
	rng := rand.New(rand.NewPCG(7, 0))
	before := make([]float64, n)
	for i := range before {
		before[i] = rng.NormFloat64()
	}
	layout, err := infer.NewLayout(infer.Shapes{"x": {1}})
	if err != nil {
		t.Fatal(err)
	}
	start, err := infer.NewParams(layout, before)
	if err != nil {
		t.Fatal(err)
	}
	target := infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("x").Square().Sum().Div(-2), nil
	}, 1)
	transform, err := Barker{LR: infer.Constant(1.5)}.Build(target)
	if err != nil {
		t.Fatal(err)
	}
	state, err := infer.Init(transform, start, 8)
	if err != nil {
		t.Fatal(err)
	}
	next, info, err := transform.Update(state, nil)
	if err != nil {
		t.Fatal(err)
	}
	after, err := next.Position().Values()
	if err != nil {
		t.Fatal(err)
	}

	moved, accept, sums := 0.0, 0.0, [3]float64{}
	for i, v := range after {
		if v != before[i] {
			moved++
		}
		accept += info.Stats["accept"][i]
		sums[0], sums[1], sums[2] = sums[0]+v, sums[1]+v*v, sums[2]+v*v*v*v
	}
	for i, want := range []float64{0, 1, 3} {
		se := math.Sqrt([]float64{1, 2, 96}[i] / n)
		if got := sums[i] / n; !(math.Abs(got-want) <= 4*se) {
			t.Errorf("power %d: %v, want %v ± %v", []int{1, 2, 4}[i], got, want, 4*se)
		}
	}
	if !(math.Abs(moved-accept)/n <= 4*0.5/math.Sqrt(n)) {
		t.Errorf("%v moves are made, and %v are told of", moved, accept)
	}
}
