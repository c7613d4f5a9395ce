package nn_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// must is the value of a call that cannot fail here; tests use it where an error is a mistake of the test.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// values are the elements of a tensor, of gotch or not.
func values(x any) []float64 { return torch.Of(x).Values() }

// shape is the shape of a tensor, of gotch or not.
func shape(x any) []int64 { return torch.Of(x).Shape() }

// tensor is a float64 tensor.
func tensor(v []float64, shape ...int64) *ts.Tensor { return must(torch.FromSlice(v, shape...)) }

// normals are n standard normal numbers of a stream.
func normals(seed uint64, n int) []float64 {
	s := torch.NewStreams(seed, 1)
	return values(must(s.Normal([]int64{int64(n)}, gotch.Double, gotch.CPU)))
}

// close checks numbers to a tolerance relative to 1 + |want|.
func closeTo(t *testing.T, want, have []float64, tolerance float64, what string) {
	t.Helper()
	require.Len(t, have, len(want), what)
	for i := range want {
		if d := math.Abs(want[i] - have[i]); !(d <= tolerance*(1+math.Abs(want[i]))) {
			require.Failf(t, what, "element %d is %.15g, expected %.15g", i, have[i], want[i])
		}
	}
}

// do runs f in a scope.
func do(t *testing.T, f func()) {
	t.Helper()
	require.NoError(t, torch.Do(func(*torch.Scope) error { f(); return nil }))
}

// failing is the error of f, which must panic with one that a scope returns.
func failing(t *testing.T, f func()) error {
	t.Helper()
	err := torch.Do(func(*torch.Scope) error { f(); return nil })
	require.Error(t, err)
	return err
}

// build is a network that must be valid.
func build(t *testing.T, s nn.Sequential, in ...int64) *nn.Network {
	t.Helper()
	n, err := s.Build(in...)
	require.NoError(t, err)
	return n
}

// point is a point of standard normal numbers, [d], or with k > 0 chains [k, d], times a scale.
func point(n *nn.Network, seed uint64, scale float64, k int) infer.Params {
	d := n.NumParams()
	v := normals(seed, max(k, 1)*d)
	for i := range v {
		v[i] *= scale
	}
	s := []int64{int64(d)}
	if k > 0 {
		s = []int64{int64(k), int64(d)}
	}
	return infer.Params{Layout: n.Layout(), Flat: tensor(v, s...)}
}

// row is row k of a point with chains.
func row(p infer.Params, k int) infer.Params {
	return infer.Params{Layout: p.Layout, Flat: p.Flat.MustSelect(0, int64(k), false)}
}

// array is a tensor in plain Go, for the reference implementations.
type array struct {
	shape []int64
	data  []float64
}

func zeros(shape ...int64) array {
	n := int64(1)
	for _, s := range shape {
		n *= s
	}
	return array{shape, make([]float64, n)}
}

// at is a pointer to an element.
func (a array) at(index ...int64) *float64 {
	if len(index) != len(a.shape) {
		panic("rank")
	}
	k := int64(0)
	for i, s := range a.shape {
		if index[i] < 0 || index[i] >= s {
			panic("index")
		}
		k = k*s + index[i]
	}
	return &a.data[k]
}

// each is f of all elements.
func (a array) each(f func(float64) float64) array {
	out := zeros(a.shape...)
	for i, v := range a.data {
		out.data[i] = f(v)
	}
	return out
}

// sites are the values of all sites of one point.
func sites(p infer.Params) map[string]array {
	out := map[string]array{}
	for _, s := range p.Layout.Sites {
		out[s.Name] = array{s.Shape, must(p.Site(s.Name))}
	}
	return out
}

// assertMoments checks mean 0 and a standard deviation within four standard errors; kurtosis is that of the law.
func assertMoments(t *testing.T, v []float64, sd, kurtosis float64, what string) {
	t.Helper()
	var sum, squares float64
	for _, x := range v {
		sum += x
		squares += x * x
	}
	n := float64(len(v))
	assert.InDelta(t, 0, sum/n, 4*sd/math.Sqrt(n), "%s: mean", what)
	assert.InDelta(t, sd*sd, squares/n, 4*sd*sd*math.Sqrt((kurtosis-1)/n), "%s: variance", what)
}
