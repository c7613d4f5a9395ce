package nn_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/models/nn/internal/nntest"
	"github.com/kelvin-ppl/kelvin/torch"
)

// reference changes images pixel by pixel, from the same three numbers of each.
func reference(o nn.Augment, x nntest.Array, u []float64) nntest.Array {
	y := nntest.Zeros(x.Shape...)
	for i := range x.Shape[0] {
		top, left := int(u[3*i+1]*float64(2*o.Pad+1))-o.Pad, int(u[3*i+2]*float64(2*o.Pad+1))-o.Pad
		for c := range x.Shape[1] {
			for r := range x.Shape[2] {
				for s := range x.Shape[3] {
					row, column := r+top, s
					if o.Flip && u[3*i] < 0.5 {
						column = x.Shape[3] - 1 - s
					}
					if column += left; row >= 0 && row < x.Shape[2] && column >= 0 && column < x.Shape[3] {
						*y.At(i, c, r, s) = *x.At(i, c, row, column)
					}
				}
			}
		}
	}
	return y
}

func TestImages(t *testing.T) {
	const n = 40
	shape := []int{n, 2, 5, 4}
	x := nntest.New(shape, nntest.Normals(1, n*2*5*4))
	u := nntest.Values(nntest.Must(torch.NewSource(7, 3).Uniform([]int{n, 3}, gotch.Double, torch.CPU)))
	for _, o := range []nn.Augment{{}, {Flip: true}, {Pad: 2}, {Flip: true, Pad: 3}} {
		y, err := o.Apply(nntest.Tensor(x.Data, shape...), torch.NewSource(7, 3))
		require.NoError(t, err)
		require.Equal(t, reference(o, x, u).Data, nntest.Values(y), "%+v", o)
	}
	whole, err := nn.Augment{}.Apply(nntest.Tensor(x.Data, shape...), torch.NewSource(7, 3))
	require.NoError(t, err)
	require.Equal(t, x.Data, nntest.Values(whole))
}

// Half of the images are flipped, and each of the nine crops of Pad 1 comes up in a ninth: within four standard errors.
func TestChangesAreUniform(t *testing.T) {
	const n = 9000
	v := make([]float64, n*4)
	for i := range v {
		v[i] = float64(i%4) + 1 // 1 2 over 3 4
	}
	y := nntest.Values(nntest.Must(nn.Augment{Flip: true, Pad: 1}.Apply(nntest.Tensor(v, n, 1, 2, 2),
		torch.NewSource(5, 0))))
	counts := map[[4]float64]int{}
	for i := range n {
		counts[[4]float64(y[4*i:])]++
	}
	assert.Len(t, counts, 18)
	for image, count := range counts {
		assert.InDelta(t, n/18.0, count, 4*22.2, "%v", image) // √(n p (1 − p)) = 21.7 with p = 1/18
	}
}

// A resumed run sees the changes that a run in one piece sees.
func TestBatchesAreAFunctionOfThePosition(t *testing.T) {
	const n = 12
	data := infer.Batch{"x": nntest.Tensor(nntest.Normals(1, n*6), n, 1, 2, 3), "y": nntest.Tensor(nntest.Normals(2,
		n), n)}
	make := func(seed uint64) infer.Batches {
		inner := nntest.Must(infer.Minibatches(data, infer.MinibatchOptions{Size: 4, Seed: 9}))
		return nntest.Must(nn.Augment{Flip: true, Pad: 1}.Batches(inner, "x", seed))
	}
	all := make(3)
	var seen [][]float64
	var places []infer.Position
	for range 7 {
		places = append(places, all.Position())
		b := nntest.Must(all.Next())
		seen = append(seen, nntest.Values(b["x"]))
		require.Equal(t, []int{4}, nntest.Shape(b["y"]))
	}
	resumed := make(3)
	require.NoError(t, resumed.Seek(places[5]))
	require.Equal(t, seen[5], nntest.Values(nntest.Must(resumed.Next())["x"]))
	other := make(4)
	require.NotEqual(t, seen[0], nntest.Values(nntest.Must(other.Next())["x"]))
	require.NotEqual(t, nntest.Must(other.Fingerprint()), nntest.Must(resumed.Fingerprint()))
	require.Equal(t, nntest.Must(all.Fingerprint()), nntest.Must(resumed.Fingerprint()))
}

func TestErrors(t *testing.T) {
	_, err := nn.Augment{Pad: -1}.Apply(torch.Zeros(1, 1, 2, 2), torch.NewSource(1, 0))
	require.ErrorContains(t, err, "nn.Augment: Pad is -1: it must be from 0")
	_, err = nn.Augment{}.Apply(torch.Zeros(1, 2, 2), torch.NewSource(1, 0))
	require.ErrorContains(t, err, "the images have shape [1 2 2]: expected [n, channels, height, width]")
	_, err = nn.Augment{}.Apply(torch.Zeros(1, 1, 2, 2), nil)
	require.ErrorContains(t, err, "there is no random source")
	_, err = nn.Augment{}.Batches(nil, "x", 1)
	require.ErrorContains(t, err, "there are no batches")
	b, err := nn.Augment{}.Batches(infer.Full(infer.Batch{"y": nntest.Tensor([]float64{1}, 1)}), "x", 1)
	require.NoError(t, err)
	_, err = b.Next()
	require.ErrorContains(t, err, `"x"`)
}
