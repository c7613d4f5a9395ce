package torch_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/torch"
)

// Normal numbers of single precision are those of double precision, rounded, bit for bit, although they are computed
// many at a time by other formulas: four million numbers, in rows of odd and even lengths, from any position.
func TestNormalFloatsAreRoundedDoubles(t *testing.T) {
	for i, shape := range [][]int64{{1 << 22}, {1, 7}, {3, 100_001}, {5, 17}, {2, 4096}} {
		inScope(t, func(*torch.Scope) {
			s := torch.NewStreams(math.MaxUint64-uint64(i), int(shape[0])%6+1)
			s.Offset = 1<<32 - 1000
			again := s
			x := floats(torch.Must(s.Normal(shape, gotch.Float, gotch.CPU)))
			y := floats(torch.Must(again.Normal(shape, gotch.Double, gotch.CPU)))
			require.Len(t, x, len(y))
			assert.Equal(t, again.Offset, s.Offset)
			for i := range x {
				if x[i] != float64(float32(y[i])) {
					t.Fatalf("number %d of shape %v is %v, and %v in double precision", i, shape, x[i], y[i])
				}
			}
		})
	}
}

// A sum in one pass has the bits of libtorch's operations one after the other, whatever its length.
func TestCombineHasTheBitsOfItsOperations(t *testing.T) {
	for _, dtype := range []gotch.DType{gotch.Float, gotch.Double} {
		for _, n := range []int64{1, 5, 8, 33, 1003, 100_000} {
			inScope(t, func(*torch.Scope) {
				s := torch.NewStreams(5, 1)
				var terms []torch.Term
				for _, c := range []float64{0.3, 1, -1.7, 0.01} {
					terms = append(terms, torch.Term{Coeff: c, Tensor: torch.Must(s.Normal([]int64{n}, dtype, gotch.CPU))})
				}
				for k := 2; k <= 4; k++ {
					for first := range 2 { // of a coefficient that is 1, too
						if first+k > len(terms) {
							continue
						}
						some := terms[first : first+k : first+k]
						// A tensor with a graph is added by operations.
						slow := append([]torch.Term{}, some...)
						slow[0].Tensor = torch.Must(torch.Leaf(some[0].Tensor))
						want := torch.Must(torch.Combine(slow...)).MustDetach(false)
						assert.Equal(t, floats(want), floats(torch.Must(torch.Combine(some...))), "%d numbers of %v", n, dtype)
					}
				}
			})
		}
	}
}
