package kernel

import (
	"math"

	"github.com/kelvin-ppl/kelvin/internal/philox"
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

	// ahead are the numbers at the positions from first, of this seed and chain, once valid. They are made together,
	// since ten rounds in a row wait for each other, and those of several counters do not.
	atSeed, atChain, first uint64
	ahead                  [blockLen]float64
	valid                  bool
}

// blockLen is how many numbers are made together, a power of two.
const blockLen = 16

// newStream is the stream of a chain at its start.
func newStream(seed, chain uint64) stream { return stream{Seed: seed, Chain: chain} }

// Float64 draws a number uniform on the open interval (0, 1): 52 bits and a half.
func (s *stream) Float64() float64 {
	if s.spent() {
		s.fill()
	}
	u := s.ahead[s.Position%blockLen]
	s.Position++
	return u
}

// spent reports whether ahead has not the number at the position.
func (s *stream) spent() bool {
	return s.Position-s.first >= blockLen || s.atSeed != s.Seed || s.atChain != s.Chain || !s.valid
}

// fill makes the numbers around the position.
func (s *stream) fill() {
	s.atSeed, s.atChain, s.first, s.valid = s.Seed, s.Chain, s.Position&^(blockLen-1), true
	for i := 0; i < blockLen; i += 2 {
		counter := s.first>>1 + uint64(i)>>1
		w0, w1, w2, w3 := philox.Words(uint32(counter), uint32(counter>>32), uint32(s.Chain), uint32(s.Chain>>32),
			uint32(s.Seed), uint32(s.Seed>>32))
		s.ahead[i], s.ahead[i+1] = philox.Unit(w0, w1), philox.Unit(w2, w3)
	}
}

// Norm draws a standard normal number, Φ⁻¹(u).
func (s *stream) Norm() float64 { return quantile(s.Float64()) }

// Norms draws len(z) numbers, those that as many calls of Norm draw.
func (s *stream) Norms(z []float64) {
	for len(z) > 0 {
		if s.spent() {
			s.fill()
		}
		u := s.ahead[s.Position%blockLen:]
		u = u[:min(len(u), len(z))]
		for i, e := range u {
			z[i] = quantile(e)
		}
		s.Position += uint64(len(u))
		z = z[len(u):]
	}
}

// Exp draws an exponential number of mean 1: -log u.
func (s *stream) Exp() float64 { return -math.Log(s.Float64()) }
