// Package philox is the generator of random numbers that samplers without libtorch share: Philox 4x32-10 (Salmon,
// Moraes, Dror and Shaw 2011).
package philox

// Unit makes a number of (0, 1) of two words: 52 bits and a half, so that it is exact and never 0 or 1.
func Unit(hi, lo uint32) float64 {
	return (float64(int64(hi)<<20|int64(lo)>>12) + 0.5) * (1.0 / (1 << 52))
}

// Words is Philox 4x32 with ten rounds, of the counter c and the key k. Its words are apart, so that they stay in
// registers, and the rounds are written out, so that none is moved.
func Words(c0, c1, c2, c3, k0, k1 uint32) (w0, w1, w2, w3 uint32) {
	const d0, d1 = 0x9E3779B9, 0xBB67AE85
	c0, c1, c2, c3 = round(c0, c1, c2, c3, k0, k1)
	c0, c1, c2, c3 = round(c0, c1, c2, c3, k0+d0, k1+d1)
	c0, c1, c2, c3 = round(c0, c1, c2, c3, k0+(2*d0)%(1<<32), k1+(2*d1)%(1<<32))
	c0, c1, c2, c3 = round(c0, c1, c2, c3, k0+(3*d0)%(1<<32), k1+(3*d1)%(1<<32))
	c0, c1, c2, c3 = round(c0, c1, c2, c3, k0+(4*d0)%(1<<32), k1+(4*d1)%(1<<32))
	c0, c1, c2, c3 = round(c0, c1, c2, c3, k0+(5*d0)%(1<<32), k1+(5*d1)%(1<<32))
	c0, c1, c2, c3 = round(c0, c1, c2, c3, k0+(6*d0)%(1<<32), k1+(6*d1)%(1<<32))
	c0, c1, c2, c3 = round(c0, c1, c2, c3, k0+(7*d0)%(1<<32), k1+(7*d1)%(1<<32))
	c0, c1, c2, c3 = round(c0, c1, c2, c3, k0+(8*d0)%(1<<32), k1+(8*d1)%(1<<32))
	c0, c1, c2, c3 = round(c0, c1, c2, c3, k0+(9*d0)%(1<<32), k1+(9*d1)%(1<<32))
	return c0, c1, c2, c3
}

func round(c0, c1, c2, c3, k0, k1 uint32) (w0, w1, w2, w3 uint32) {
	a, b := 0xD2511F53*uint64(c0), 0xCD9E8D57*uint64(c2)
	return uint32(b>>32) ^ c1 ^ k0, uint32(b), uint32(a>>32) ^ c3 ^ k1, uint32(a)
}
