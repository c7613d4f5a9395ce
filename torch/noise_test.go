package torch_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/torch"
)

// philox are the four words of a position.
func philox(seed, chain, position uint64) [4]uint32 {
	c := [4]uint32{uint32(position), uint32(position >> 32), uint32(chain), uint32(chain >> 32)}
	for i := range uint32(10) {
		a, b := uint64(c[0])*0xD2511F53, uint64(c[2])*0xCD9E8D57
		c = [4]uint32{uint32(b>>32) ^ c[1] ^ (uint32(seed) + i*0x9E3779B9), uint32(b),
			uint32(a>>32) ^ c[3] ^ (uint32(seed>>32) + i*0xBB67AE85), uint32(a)}
	}
	return c
}

// In single precision a position makes four normal numbers: each pair of words is a radius, of 31 bits and a half, and
// an angle, of whole right ones and a rest that has digits of its own. The transform of these, rounded to float, is
// here in double precision, for four million numbers, in rows of odd and even lengths, from any position. Six units of
// 2^-24 are the roundings and polynomials of the radius, the rest, its sine or cosine, and their product.
func TestNormalFloats(t *testing.T) {
	for i, shape := range [][]int{{1 << 22}, {1, 7}, {3, 100_001}, {5, 17}, {2, 4096}} {
		inScope(t, func(*torch.Scope) {
			s := torch.NewStreams(math.MaxUint64-uint64(i), shape[0]%6+1)
			s.Chains[len(s.Chains)-1] += 1 << 50
			s.Offset = 1<<32 - 1000
			x := floats(torch.Must(s.Normal(shape, gotch.Float, gotch.CPU)))
			n := len(x) / len(s.Chains) // of a row
			assert.EqualValues(t, 1<<32-1000+(n+3)/4, s.Offset)
			for i, x := range x {
				w := philox(s.Seed, s.Chains[i/n], 1<<32-1000+uint64(i%n/4))
				radius, turn := w[i%n%4/2*2], w[i%n%4/2*2+1]
				u := float64(float32(radius>>1)+0.5) / (1 << 31)
				rest := float64(float32(int32(turn<<2)>>2)+0.5) / (1 << 30) * math.Pi / 2
				whole := (turn + 1<<29) >> 30
				if i%n%2 == 1 { // sin a is cos(a - a right angle)
					whole += 3
				}
				turned := []float64{math.Cos(rest), -math.Sin(rest), -math.Cos(rest), math.Sin(rest)}[whole%4]
				want := math.Sqrt(-2*math.Log(u)) * turned
				if !(math.Abs(x-want) <= 6*0x1p-24*math.Abs(want)) {
					t.Fatalf("number %d of shape %v is %v, and %v in double precision", i, shape, x, want)
				}
			}
		})
	}
}

// A sum in one pass has the bits of libtorch's operations one after the other, whatever its length.
func TestCombineHasTheBitsOfItsOperations(t *testing.T) {
	for _, dtype := range []gotch.DType{gotch.Float, gotch.Double} {
		for _, n := range []int{1, 5, 8, 33, 1003, 100_000} {
			inScope(t, func(*torch.Scope) {
				s := torch.NewStreams(5, 1)
				var terms []torch.Term
				for _, c := range []float64{0.3, 1, -1.7, 0.01} {
					terms = append(terms, torch.Term{Coeff: c, Tensor: torch.Must(s.Normal([]int{n}, dtype, gotch.CPU))})
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
						want := torch.Must(torch.Combine(slow...)).T().MustDetach(false)
						assert.Equal(t, floats(torch.Of(want)), floats(torch.Must(torch.Combine(some...))), "%d numbers of %v", n, dtype)
					}
				}
			})
		}
	}
}
