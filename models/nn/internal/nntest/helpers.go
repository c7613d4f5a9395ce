// Package nntest compares layers with loops in plain Go, for the tests of nn and of the rooms below it. It is no part
// of a network, and nothing but tests uses it.
package nntest

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Array is a tensor in plain Go, for the reference implementations.
type Array struct {
	Shape []int
	Data  []float64
}

// New is an array of elements in row-major order.
func New(shape []int, data []float64) Array { return Array{shape, data} }

// Zeros is an array of zeros.
func Zeros(shape ...int) Array {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return New(shape, make([]float64, n))
}

// At is a pointer to an element.
func (a Array) At(index ...int) *float64 {
	if len(index) != len(a.Shape) {
		panic("rank")
	}
	k := 0
	for i, s := range a.Shape {
		if index[i] < 0 || index[i] >= s {
			panic("index")
		}
		k = k*s + index[i]
	}
	return &a.Data[k]
}

// Each is f of all elements.
func (a Array) Each(f func(float64) float64) Array {
	out := Zeros(a.Shape...)
	for i, v := range a.Data {
		out.Data[i] = f(v)
	}
	return out
}

// Must is the value of a call that cannot fail here; tests use it where an error is a mistake of the test.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Values are the elements of a tensor, of gotch or not.
func Values(x any) []float64 { return torch.Of(x).Values() }

// Shape is the shape of a tensor, of gotch or not.
func Shape(x any) []int { return torch.Of(x).Shape() }

// Tensor is a float64 tensor.
func Tensor(v []float64, shape ...int) torch.Tensor { return Must(torch.FromSlice(v, shape...)) }

// Normals are n standard normal numbers of a stream.
func Normals(seed uint64, n int) []float64 {
	s := torch.NewStreams(seed, 1)
	return Values(Must(s.Normal([]int{n}, gotch.Double, gotch.CPU)))
}

// CloseTo checks numbers to a tolerance relative to 1 + |want|.
func CloseTo(t *testing.T, want, have []float64, tolerance float64, what string) {
	t.Helper()
	require.Len(t, have, len(want), what)
	for i := range want {
		if d := math.Abs(want[i] - have[i]); !(d <= tolerance*(1+math.Abs(want[i]))) {
			require.Failf(t, what, "element %d is %.15g, expected %.15g", i, have[i], want[i])
		}
	}
}

// Do runs f in a scope.
func Do(t *testing.T, f func()) {
	t.Helper()
	require.NoError(t, torch.Do(func(*torch.Scope) error { f(); return nil }))
}

// Build is a network that must be valid.
func Build(t *testing.T, s nn.Sequential, in ...int) *nn.Network {
	t.Helper()
	n, err := s.Build(in...)
	require.NoError(t, err)
	return n
}

// Point is a point of standard normal numbers, [d], or with k > 0 chains [k, d], times a scale.
func Point(n *nn.Network, seed uint64, scale float64, k int) infer.Params {
	d := n.NumParams()
	v := Normals(seed, max(k, 1)*d)
	for i := range v {
		v[i] *= scale
	}
	s := []int{d}
	if k > 0 {
		s = []int{k, d}
	}
	return infer.Params{Layout: n.Layout(), Flat: Tensor(v, s...)}
}

// Row is row k of a point with chains.
func Row(p infer.Params, k int) infer.Params {
	return infer.Params{Layout: p.Layout, Flat: p.Flat.At(k)}
}

// Sites are the values of all sites of one point.
func Sites(p infer.Params) map[string]Array {
	out := map[string]Array{}
	for _, s := range p.Layout.Sites {
		out[s.Name] = New(s.Shape, Must(p.Site(s.Name)))
	}
	return out
}
