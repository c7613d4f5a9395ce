package kernel

import "math"

// expTable is 2^(j/128).
var expTable = func() (t [128]float64) {
	for j := range t {
		t[j] = math.Exp2(float64(j) / 128)
	}
	return t
}()

// exp is math.Exp with a shorter chain of operations that wait for each other: x = (128 e + j) ln 2/128 + r, and
// e^x = 2^e 2^(j/128) e^r with five terms of the series of e^r - 1, |r| < 0.0028. The error is below 2 ulp.
func exp(x float64) float64 {
	if !(math.Abs(x) < 700) {
		return math.Exp(x)
	}
	const (
		shift = 3 << 51 // its last bit is worth 1, so that a sum with it is rounded to a whole number
		high  = 0x1.62e42fefap-8
		low   = 0x1.cf79abc9e3b3ap-47
	)
	whole := x*(128/math.Ln2) + shift
	n := whole - shift
	k := int64(math.Float64bits(whole)) - 0x4338000000000000
	r := (x - n*high) - n*low
	r2 := r * r
	p := r + r2*((1./2+r*(1./6))+r2*(1./24+r*(1./120)))
	t := expTable[k&127]
	return math.Float64frombits(math.Float64bits(t+t*p) + uint64(k>>7)<<52)
}
