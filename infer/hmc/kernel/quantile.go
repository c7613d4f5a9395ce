package kernel

import "math"

// The quantile function of the standard normal law, by Taylor polynomials. The tail probability t = min(u, 1-u) has a
// polynomial for each of 16 intervals between two powers of 2, down to 2^-17. The singularity at t = 0 is 33 half
// widths from the centre of each, so that ten terms leave 33^-10/10 = 6e-17. Beyond is math.Erfinv, once in 65,536
// numbers.
const (
	quantileBits  = 4  // log₂ of the intervals to a power of 2
	quantileTerms = 10 // of each polynomial
	quantileRange = 16 // powers of 2 from 1/2 downwards
	quantileShift = 52 - quantileBits
	quantileFirst = (1022 - quantileRange) << quantileBits // the leading bits of 2^-17
)

var quantiles = quantileTable()

// quantile is Φ⁻¹(u) = √2 erf⁻¹(2u - 1), for u in (0, 1) with an exact 1 - u. The error is below 4e-16 (1 + |Φ⁻¹(u)|).
func quantile(u float64) float64 {
	v := u - 0.5
	t := 0.5 - math.Abs(v)
	bits := math.Float64bits(t)
	i := int(bits>>quantileShift) - quantileFirst
	if uint(i) >= uint(len(quantiles)) {
		return math.Sqrt2 * math.Erfinv(2*u-1)
	}
	c := &quantiles[i]
	// From the centre of the interval, in half widths.
	fraction := math.Float64frombits(bits&(1<<quantileShift-1) | 1023<<52)
	s := (fraction-1)*(2<<quantileBits) - 1
	s2 := s * s
	s4 := s2 * s2
	low := (c[0] + c[1]*s) + s2*(c[2]+c[3]*s)
	high := (c[4] + c[5]*s) + s2*(c[6]+c[7]*s)
	z := low + s4*(high+s4*(c[8]+c[9]*s)) // of the upper tail, at least 0
	return math.Float64frombits(math.Float64bits(z) ^ math.Float64bits(v)&(1<<63))
}

// quantileTable makes the Taylor series of q(t) = Φ⁻¹(1-t). With y = q' = -√2π exp(q²/2) the equation y' = q y² gives
// term after term of both.
func quantileTable() [quantileRange << quantileBits][quantileTerms]float64 {
	var table [quantileRange << quantileBits][quantileTerms]float64
	for i := range table {
		from := math.Float64frombits(uint64(i+quantileFirst) << quantileShift)
		half := (math.Float64frombits(uint64(i+1+quantileFirst)<<quantileShift) - from) / 2
		q := &table[i]
		var y, square [quantileTerms]float64
		q[0] = math.Sqrt2 * math.Erfinv(1-2*(from+half))
		y[0] = -math.Sqrt(2*math.Pi) * math.Exp(q[0]*q[0]/2) * half
		for n := range quantileTerms - 1 {
			q[n+1] = y[n] / float64(n+1)
			for k := range n + 1 {
				square[n] += y[k] * y[n-k]
			}
			for k := range n + 1 {
				y[n+1] += q[k] * square[n-k]
			}
			y[n+1] /= float64(n + 1)
		}
	}
	return table
}
