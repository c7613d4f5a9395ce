package kernel

import (
	"math"
	"math/bits"
)

// Stream is a counter-based stream of random numbers, named by (seed, chain) and read at a position: each number is a
// function of those three words and of nothing else. It is a plain value; copy it to remember a position, save its
// exported fields to go on later. The zero value is the start of stream (0, 0).
//
// The generator is Philox 4x32-10 (Salmon, Moraes, Dror and Shaw 2011) with key = seed and counter = (position/2,
// chain), low words first. One counter gives two numbers; Normal and exponential numbers use one position each, by
// inversion.
type stream struct {
	Seed     uint64 // of the run
	Chain    uint64
	Position uint64 // numbers drawn so far

	at    [3]uint64 // what pair was made for: seed, chain, counter
	pair  [2]float64
	valid bool
}

// newStream is the stream of a chain at its start.
func newStream(seed, chain uint64) stream { return stream{Seed: seed, Chain: chain} }

// Float64 draws a number uniform on the open interval (0, 1): 52 bits and a half.
func (s *stream) Float64() float64 {
	key := [3]uint64{s.Seed, s.Chain, s.Position >> 1}
	if !s.valid || s.at != key {
		w := philox([4]uint32{uint32(key[2]), uint32(key[2] >> 32), uint32(s.Chain), uint32(s.Chain >> 32)},
			[2]uint32{uint32(s.Seed), uint32(s.Seed >> 32)})
		s.pair = [2]float64{unit(w[0], w[1]), unit(w[2], w[3])}
		s.at, s.valid = key, true
	}
	u := s.pair[s.Position&1]
	s.Position++
	return u
}

// Norm draws a standard normal number: √2 erf⁻¹(2u - 1), where 2u - 1 is exact.
func (s *stream) Norm() float64 { return math.Sqrt2 * math.Erfinv(2*s.Float64()-1) }

// Exp draws an exponential number of mean 1: -log u.
func (s *stream) Exp() float64 { return -math.Log(s.Float64()) }

// unit makes a number of (0, 1) of two words: 52 bits and a half, so that it is exact and never 0 or 1.
func unit(hi, lo uint32) float64 {
	return (float64(uint64(hi)<<20|uint64(lo)>>12) + 0.5) * (1.0 / (1 << 52))
}

// philox is Philox 4x32 with ten rounds.
func philox(c [4]uint32, k [2]uint32) [4]uint32 {
	for range 10 {
		h0, l0 := bits.Mul32(0xD2511F53, c[0])
		h1, l1 := bits.Mul32(0xCD9E8D57, c[2])
		c = [4]uint32{h1 ^ c[1] ^ k[0], l1, h0 ^ c[3] ^ k[1], l0}
		k[0] += 0x9E3779B9
		k[1] += 0xBB67AE85
	}
	return c
}
