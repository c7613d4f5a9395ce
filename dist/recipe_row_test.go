package dist_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The recipe of CONTRIBUTING.md is a whole distribution: one file, which is recipe_test.go here, and one row of
// scalarFamilies, whose tests it passes. The law is an independent one: that of a Weibull distribution of shape 2.
func TestRecipe(t *testing.T) {
	defer func(all []scalarCase) { scalarFamilies = all }(scalarFamilies)
	scalarFamilies = []scalarCase{
		{"Rayleigh", func(p ...any) dist.Distribution { return dist.Rayleigh(p[0]) }, "p",
			func(p []float64) scalarLaw { return gonumLaw(distuv.Weibull{K: 2, Lambda: p[0] * math.Sqrt2}) }, true, false},
	}
	for name, test := range map[string]func(*testing.T){
		"log density": TestScalarLogProb, "gradients": TestScalarGradients, "moments": TestScalarMoments,
		"outside": TestScalarCDFOutsideTheSupport, "draws": TestScalarSamples, "vmap": TestScalarVmap,
		"gradients of draws": TestScalarReparameterisedDraws, "shapes": TestScalarShapes, "float32": TestScalarFloat32,
		"parameters": TestScalarValidate,
	} {
		t.Run(name, test)
	}
	scoped(t, func() {
		d, law := dist.Rayleigh(0.7), scalarFamilies[0].law([]float64{0.7})
		for _, p := range []float64{0.01, 0.5, 0.999} {
			x := d.(dist.ICDFer).ICDF(torch.Of(p))
			require.InEpsilon(t, law.icdf(p), scalarRead(x.T())[0], 1e-10)
			require.InEpsilon(t, p, scalarRead(d.(dist.CDFer).CDF(x).T())[0], 1e-10)
		}
	})
}
