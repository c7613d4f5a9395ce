package large

import (
	"fmt"
	"math/bits"
	"math/rand/v2"

	"github.com/kelvin-ppl/kelvin/data"
)

// rounds of the Feistel network. Luby and Rackoff (1988) need four with random functions and wide halves; here halves
// are as narrow as three bits.
const rounds = 12

// Shuffle is a permutation of the numbers 0 to n-1 that takes no memory: a Feistel network on the b bits that n-1 has
//
//	(l, r) -> (r, l xor F_k(r)),  k = 1, ..., 12
//
// whose halves have ⌈b/2⌉ and ⌊b/2⌋ bits in turn. A result of n or more is put in again until one is below (Black and
// Rogaway 2002, "Ciphers with arbitrary finite domains": cycle walking), less than twice on average. The keys of the
// rounds are drawn from the seed and the epoch (PCG). It is made for data, not for secrets.
type Shuffle struct {
	n    uint64
	low  uint // bits of the lower half, before the first round
	high uint
	keys [rounds]uint64
}

// NewShuffle is the permutation of n rows for a seed and an epoch. n must be from 1 to 2^62.
func NewShuffle(n int, seed, epoch uint64) (*Shuffle, error) {
	if n < 1 || n > 1<<62 {
		return nil, &data.Error{Row: -1, Problem: fmt.Sprintf("a shuffle of %d rows: expected 1 to 2^62", n)}
	}
	// Six bits at least: halves of one or two bits mix badly.
	b := uint(max(6, bits.Len64(uint64(n-1))))
	s := &Shuffle{n: uint64(n), low: b / 2, high: b - b/2}
	r := rand.New(rand.NewPCG(seed, epoch))
	for i := range s.keys {
		s.keys[i] = r.Uint64()
	}
	return s, nil
}

// At is the row at a place. A place outside of 0 to n-1 is taken modulo n. It is -1 for a shuffle that [NewShuffle] did
// not make.
func (s *Shuffle) At(place int) int {
	if s == nil || s.n == 0 {
		return -1
	}
	n := int(s.n)
	x := uint64((place%n + n) % n)
	for x = s.once(x); x >= s.n; x = s.once(x) {
	}
	return int(x)
}

// once puts a number through the network.
func (s *Shuffle) once(x uint64) uint64 {
	low, high := s.low, s.high
	for _, key := range s.keys {
		l, r := x>>low, x&(1<<low-1)
		// The halves change places: the next lower half is as wide as this upper one.
		x = r<<high | (l^mix(r^key))&(1<<high-1)
		low, high = high, low
	}
	return x
}

// mix is the finalizer of MurmurHash3 with the constants of Stafford's variant 13.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
