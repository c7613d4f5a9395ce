package main

import (
	"fmt"
	"math"
	"time"

	"github.com/kelvin-ppl/kelvin/bench"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// tolerance is how far values and gradients of the two sides may be apart, relative to the larger of one and the value.
const tolerance = 1e-10

// perScope is how many additions share a scope in the first case.
const perScope = 100

// comparison is one row of the table: the same operations on both sides.
type comparison struct {
	name   string
	key    string // the case of the C++ program
	at     string // the tensor to evaluate at
	chains int    // 0: without gradient
	calls  int    // per run of kelvin
	kelvin func() error
	result func() ([]torch.Tensor, error) // one call's values and gradients, inside a scope
}

// comparisons gives both sides their data and returns the cases.
func comparisons(cpp *native, device gotch.Device) ([]comparison, error) {
	lr, err := bench.NewLogistic(1000, 25, device)
	if err != nil {
		return nil, err
	}
	es, err := bench.NewSchools(device)
	if err != nil {
		return nil, err
	}
	for _, d := range []struct {
		name  string
		data  []float64
		shape []int
	}{
		{"x", lr.X, []int{lr.N, lr.D}}, {"sign", lr.Sign, []int{lr.N}},
		{"y", bench.SchoolsY, []int{8}}, {"sigma", bench.SchoolsSigma, []int{8}},
	} {
		if err := cpp.put(d.name, d.data, d.shape...); err != nil {
			return nil, err
		}
	}
	points := map[string]torch.Tensor{}
	point := func(name string, data []float64, shape ...int) error {
		if err := cpp.put(name, data, shape...); err != nil {
			return err
		}
		points[name], err = torch.FromSliceOn(device, gotch.Double, data, shape...)
		return err
	}
	if err := point("ten", bench.SchoolsStart(1), bench.SchoolsDim); err != nil {
		return nil, err
	}
	if err := point("w", lr.Start(), lr.D); err != nil {
		return nil, err
	}

	wait := func() error { return nil }
	if device != torch.CPU {
		wait = torch.Synchronize
	}
	ten := points["ten"]
	add := func(perScope int) func() error {
		return func() error {
			return torch.Do(func(*torch.Scope) error {
				for range perScope {
					ten.Add(ten).T()
					if err := wait(); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	sum := func() ([]torch.Tensor, error) { return []torch.Tensor{ten.Add(ten)}, nil }
	cases := []comparison{
		{name: fmt.Sprintf("add of 10 numbers, %d to a scope", perScope), key: "add", at: "ten", calls: perScope,
			kelvin: add(perScope), result: sum},
		{name: "add of 10 numbers, in its own scope", key: "add", at: "ten", calls: 1, kelvin: add(1), result: sum},
	}
	gradient := func(name, key, at string, chains int, f func(torch.Tensor) torch.Tensor) {
		x := points[at]
		evaluate := torch.ValueAndGrad
		if key == "schools_vmap" {
			evaluate = torch.VmapValueAndGrad
		}
		cases = append(cases, comparison{name: name, key: key, at: at, chains: chains, calls: 1,
			kelvin: func() error {
				return torch.Do(func(*torch.Scope) error {
					if _, _, err := evaluate(f, x); err != nil {
						return err
					}
					return wait()
				})
			},
			result: func() ([]torch.Tensor, error) {
				v, g, err := evaluate(f, x)
				return []torch.Tensor{v, g}, err
			}})
	}
	gradient("logistic regression, 1000 x 25", "logistic", "w", 1, lr.LogDensity)
	gradient("eight schools, without vmap", "schools", "ten", 1, es.LogDensity)
	for _, k := range []int{1, 4, 64, 1024} {
		at := fmt.Sprintf("chains%d", k)
		if err := point(at, bench.SchoolsStart(k), k, bench.SchoolsDim); err != nil {
			return nil, err
		}
		name := fmt.Sprintf("eight schools, %d chains", k)
		if k == 1 {
			name = "eight schools, 1 chain"
		}
		gradient(name, "schools_vmap", at, k, es.LogDensity)
	}
	return cases, nil
}

// check compares what both sides compute and returns the largest difference.
func (c *comparison) check(cpp *native) (float64, error) {
	want, err := cpp.eval(c.key, c.at)
	if err != nil {
		return 0, err
	}
	var got []float64
	err = torch.Do(func(*torch.Scope) error {
		results, err := c.result()
		if err != nil {
			return err
		}
		for _, t := range results {
			got = append(got, torch.Must(torch.ToSlice[float64](t))...)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return difference(got, want)
}

// difference is the largest difference, relative to the larger of one and the number; an error above the tolerance.
func difference(got, want []float64) (float64, error) {
	if len(got) != len(want) {
		return 0, fmt.Errorf("there are %d numbers from Kelvin and %d from C++", len(got), len(want))
	}
	largest := 0.0
	for i, w := range want {
		d := math.Abs(got[i]-w) / math.Max(1, math.Abs(w))
		if !(d <= tolerance) { // NaN is too far
			return d, fmt.Errorf("number %d is %.17g from Kelvin and %.17g from C++", i, got[i], w)
		}
		largest = math.Max(largest, d)
	}
	return largest, nil
}

// time returns Kelvin's nanoseconds of a call, as the C++ program measures its own: after a fifth as many calls.
func (c *comparison) time(repetitions int) (float64, error) {
	runs := max(1, repetitions/c.calls)
	for range runs/5 + 1 {
		if err := c.kelvin(); err != nil {
			return 0, err
		}
	}
	start := time.Now()
	for range runs {
		if err := c.kelvin(); err != nil {
			return 0, err
		}
	}
	return float64(time.Since(start).Nanoseconds()) / float64(runs*c.calls), nil
}
