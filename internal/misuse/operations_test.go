package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/torch"
)

// operation is what is called with random arguments: a method of gotch's tensors, or a function of its package.
type operation struct {
	name string
	f    reflect.Value
}

// perOperation is how often each operation is called with any tensors, and withIntegers how often with integers.
const perOperation, withIntegers = 40, 10

// notCalled are methods that are no operations: they print, write files, or give memory or pointers away. The Must
// forms call the others.
var notCalled = []string{"Must", "Print", "Format", "Save", "Drop", "Detached", "Ctensor", "DataPtr", "Info",
	"Backward", "ApplyCModule", "Apply", "Kelvin", "String", "Vals", "ToString"}

// operations are the methods, and then the functions.
var operations = func() (all []operation) {
	tensor := of[*ts.Tensor]()
	for i := range tensor.NumMethod() {
		m := tensor.Method(i)
		if !slices.ContainsFunc(notCalled, func(p string) bool { return strings.HasPrefix(m.Name, p) }) {
			all = append(all, operation{m.Name, m.Func})
		}
	}
	for _, r := range functions {
		all = append(all, operation{r.key, reflect.ValueOf(r.f)})
	}
	return all
}()

// callOperations calls the operations from one number to another with random arguments, which are the same at every
// call of an operation. An error is fine, and so is a panic.
func callOperations(from, to int) {
	limitMemory(12 << 30)
	_ = torch.SetThreads(1)
	for i, op := range operations[from:to] {
		fmt.Println("row", from+i)
		rng := rand.New(rand.NewPCG(uint64(len(op.name)), hashOf(op.name)))
		for call := range perOperation + withIntegers {
			_ = torch.Do(func(*torch.Scope) error {
				defer func() { _ = recover() }()
				tensor := randomTensor
				if call >= perOperation {
					tensor = edges
				}
				in := arguments(op.f.Type(), rng, tensor)
				fmt.Println("call", op.name)
				if op.f.Type().IsVariadic() {
					op.f.CallSlice(in)
				} else {
					op.f.Call(in)
				}
				return nil
			})
		}
	}
}

func hashOf(name string) (h uint64) {
	for _, c := range name {
		h = h*31 + uint64(c)
	}
	return h
}

func arguments(t reflect.Type, rng *rand.Rand, tensor func(*rand.Rand) *ts.Tensor) (in []reflect.Value) {
	for i := range t.NumIn() {
		in = append(in, random(t.In(i), rng, tensor))
	}
	return in
}

// random is a value such as a model might give, right or wrong.
func random(t reflect.Type, rng *rand.Rand, tensor func(*rand.Rand) *ts.Tensor) reflect.Value {
	switch t {
	case of[*ts.Tensor]():
		return reflect.ValueOf(tensor(rng))
	case of[ts.Tensor]():
		return reflect.ValueOf(*tensor(rng))
	case of[gotch.DType]():
		return reflect.ValueOf([]gotch.DType{gotch.Double, gotch.Float, gotch.Int64, gotch.Bool, gotch.Uint8}[rng.IntN(5)])
	case of[gotch.Device]():
		return reflect.ValueOf(torch.CPU)
	case of[*ts.Scalar]():
		if rng.IntN(2) == 0 {
			return reflect.ValueOf(ts.IntScalar(int64(randomInt(rng))))
		}
		return reflect.ValueOf(ts.FloatScalar(randomFloat(rng)))
	}
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Int8, reflect.Int16:
		v.SetInt(int64(randomInt(rng)))
	case reflect.Float64, reflect.Float32:
		v.SetFloat(randomFloat(rng))
	case reflect.Bool:
		v.SetBool(rng.IntN(2) == 0)
	case reflect.String:
		v.SetString([]string{"", "sum", "mean", "none", "linear", "ij,jk->ik"}[rng.IntN(6)])
	case reflect.Slice:
		for range rng.IntN(4) {
			v = reflect.Append(v, random(t.Elem(), rng, tensor))
		}
	}
	return v
}

func randomInt(rng *rand.Rand) int {
	if rng.IntN(4) > 0 {
		return int(rng.Int64N(5) - 1)
	}
	return []int{-100, 1000, 1 << 40, math.MaxInt64, math.MinInt64}[rng.IntN(5)]
}

func randomFloat(rng *rand.Rand) float64 {
	if rng.IntN(3) > 0 {
		return rng.NormFloat64()
	}
	return []float64{0, -1, 1e300, math.NaN(), math.Inf(1)}[rng.IntN(5)]
}

// edges is a matrix of integers at which quotients and multiples overflow. All have one shape, so that any two of them
// are operands of one operation.
func edges(rng *rand.Rand) *ts.Tensor {
	x := make([]int, 4)
	for i := range x {
		x[i] = []int{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, 5, math.MaxInt64}[rng.IntN(7)]
	}
	return torch.New(x, 2, 2).T()
}

func randomTensor(rng *rand.Rand) *ts.Tensor {
	if rng.IntN(20) == 0 {
		return ts.NewTensor() // undefined
	}
	shape, size := []int{}, 1
	for range rng.IntN(5) {
		n := rng.Int64N(4)
		shape, size = append(shape, int(n)), size*int(n)
	}
	switch rng.IntN(5) {
	case 0, 1:
		x := make([]float64, size)
		for i := range x {
			x[i] = randomFloat(rng)
		}
		return torch.New(x, shape...).T()
	case 2:
		x := make([]float32, size)
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		return torch.New(x, shape...).T()
	case 3:
		x := make([]int, size)
		for i := range x {
			x[i] = randomInt(rng)
		}
		return torch.New(x, shape...).T()
	}
	x := make([]float64, size)
	for i := range x {
		x[i] = float64(rng.IntN(2))
	}
	return must(torch.New(x, shape...).T().Totype(gotch.Bool, false))
}
