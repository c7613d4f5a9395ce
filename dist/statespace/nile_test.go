package statespace_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"gonum.org/v1/gonum/floats"

	"github.com/kelvin-ppl/kelvin/dist/statespace"
)

// nile is the flow of the Nile at Aswan in each year from 1871 to 1970, in 10⁸ m³ (Cobb 1978, Biometrika 65, 243–251,
// table 1).
var nile = []float64{
	1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958, 1140,
	1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969,
	831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759,
	781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890,
	744, 749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740,
}

// The likelihood of the Nile's local level is largest at the published variances of noise and level, 15099 and 1469.1
// (Durbin and Koopman 2012, section 2.10.3), with a start of variance 10⁷ (section 2.2.5) and with a diffuse one.
func TestNile(t *testing.T) {
	assert.Len(t, nile, 100)
	assert.Equal(t, 91935.0, floats.Sum(nile))
	do(t, func() {
		y := tensor(nile)
		// The top of a parabola through three points, in each logarithm. The published digits and the start leave 0.1
		// %.
		top := func(f func(h float64) float64) float64 {
			const h = 0.02
			a, b, c := f(-h), f(0), f(h)
			return h * (a - c) / (2 * (a - 2*b + c))
		}
		for _, part := range []statespace.LocalLevel{{Spread: math.Sqrt(1e7)}, {Spread: 100, Diffuse: true}} {
			at := func(noise, level float64) float64 {
				part.Scale = math.Sqrt(level)
				return statespace.New(100, math.Sqrt(noise), part).LogProb(y).Item()
			}
			assert.InDelta(t, 0, top(func(h float64) float64 { return at(15099*math.Exp(h), 1469.1) }), 1e-3)
			assert.InDelta(t, 0, top(func(h float64) float64 { return at(15099, 1469.1*math.Exp(h)) }), 1e-3)
		}
	})
}
