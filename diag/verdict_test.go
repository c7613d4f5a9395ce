package diag

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
)

// All that is found of an element has one verdict: its chains disagree, or they are too short, by one number of draws.
// What a report shows under an advice is what has that advice.
func TestOneVerdictForAnElement(t *testing.T) {
	number := regexp.MustCompile(`Draws: \d+`)
	seen := map[string]int{}
	for seed := range uint64(40) {
		// Very slow, slow, and apart.
		names := []string{"walk", "slow", "apart"}
		z := ar1(seed+200, 4, 1000, 0.9)
		shifted := filled(4, 1000, func(c, i int) float64 { return z[c][i] + 9*float64(c) })
		d := container(t, names, [][][]float64{ar1(seed, 4, 1000, 0.99), ar1(seed+100, 4, 1000, 0.9), shifted}, nil, nil)
		d.SetAttr(draws.AttrMethod, "sgmcmc.SGHMC")
		r, err := Diagnose(d, DiagnoseOptions{})
		require.NoError(t, err)
		verdicts := map[string]map[string]bool{}
		for _, f := range r.Findings {
			if f.Code != CodeRHat && f.Code != CodeESSBulk && f.Code != CodeESSTail {
				continue
			}
			verdict := number.FindString(f.Advice)
			if strings.Contains(f.Advice, "disagree") {
				verdict = "disagree"
			}
			require.NotEmpty(t, verdict, f.Advice)
			if verdicts[f.Site] == nil {
				verdicts[f.Site] = map[string]bool{}
			}
			verdicts[f.Site][verdict] = true
			if f.Site == "walk" && f.Code == CodeRHat {
				seen[f.Severity.String()]++
			}
		}
		for site, all := range verdicts {
			assert.Len(t, all, 1, "seed %d: %s: %v", seed, site, all)
			assert.Equal(t, site == "apart", all["disagree"] && site != "walk", "seed %d: %s", seed, site)
		}
		for _, group := range r.Groups() {
			apart := strings.Contains(group[0].Advice, "disagree")
			for _, f := range group {
				assert.Equal(t, apart, strings.Contains(f.Advice, "disagree"), "seed %d: %s", seed, f.Message)
			}
		}
	}
	require.Positive(t, seen["serious"], seen)
	require.Positive(t, seen["warning"]+seen["info"], seen)
}

// A chain that stands still at an extreme value does not make chains disagree that agree.
func TestStandingStillIsNoDisagreement(t *testing.T) {
	z := normals(source(7), 4, 400)
	clamped := filled(4, 400, func(c, i int) float64 { return min(z[c][i], 1.3) }) // a tenth of the draws
	require.True(t, math.IsNaN(ESSTail(clamped)))
	for _, name := range []string{"hmc.NUTS", "sgmcmc.SGLD", "vi.Dense", "evidence.SMC", "optim.Adam", ""} {
		r := diagnosed(t, name, clamped)
		require.Empty(t, r.Of(CodeRHat))
		tail := r.Of(CodeESSTail)
		require.Len(t, tail, 1)
		assert.NotContains(t, tail[0].Advice, "disagree", name)
		assert.NotEmpty(t, tail[0].Advice, name)
	}
}

// Fits that are points have no spread to compare.
func TestFitsThatArePoints(t *testing.T) {
	r := diagnosed(t, "svi.SVI", filled(4, 100, func(k, _ int) float64 { return float64(k) }))
	require.Contains(t, r.String(), "each fit has one value, and they differ")
	require.NotContains(t, r.String(), "NaN")
}

// Draws of fits are independent: R-hat finds that fits are a tenth of their standard deviation apart, which is no
// matter for the figures, as the note "fits_differ" of package vi says. A standard deviation apart, or twice as wide,
// they are serious; chains of a sampler that disagree are so at any distance.
func TestFitsThatDifferALittle(t *testing.T) {
	const n = 4000
	z := normals(source(11), 4, n)
	fits := func(off, scale float64, f func(float64) float64) [][]float64 { // the last one is elsewhere, or wider
		return filled(4, n, func(k, i int) float64 {
			if k == 3 {
				return f(scale*z[k][i] + off)
			}
			return f(z[k][i])
		})
	}
	same := func(v float64) float64 { return v }
	for _, c := range []struct {
		off, scale float64
		severity   Severity
	}{{0.3, 1, Warning}, {0.8, 1, Warning}, {1.3, 1, Serious}, {0, 1.5, Warning}, {0, 3, Serious}} {
		x := fits(c.off, c.scale, same)
		off, spread := apart(usable(x))
		// The standard errors of a median, and of the logarithm of the range of the middle half, are 1.25 and 1.17 over √n;
		// the range of four is within four of them, and the mean square of the standard deviations is known.
		assert.InDelta(t, c.off/math.Sqrt((3+c.scale*c.scale)/4), off, 4*1.25*c.scale/math.Sqrt(n), "%+v", c)
		assert.InDelta(t, math.Log(c.scale), math.Log(spread), 4*1.17/math.Sqrt(n), "%+v", c)
		for _, f := range []func(float64) float64{same, math.Exp} { // and a heavy tail, as of a scale
			if x = fits(c.off, c.scale, f); c.off == 0.8 {
				x = fits(c.off, c.scale, same) // the exponential would be e^0.8 times as wide
			}
			for _, method := range []string{"vi.Dense", "svi.SVI", "laplace.DenseHessian", "ekf.Dense",
				"pathfinder.Pathfinder"} {
				r := diagnosed(t, method, x)
				found := r.Of(CodeRHat)
				require.Len(t, found, 1, "%s %+v", method, c)
				assert.Equal(t, c.severity, found[0].Severity, "%s %+v: %s", method, c, found[0].Message)
				assert.Equal(t, c.severity == Serious, strings.Contains(r.String(), "do not use the draws"), "%s %+v", method,
					c)
				assert.Contains(t, found[0].Message, "standard deviations apart")
				for _, f := range r.Findings {
					assert.NotContains(t, f.Advice, "Draw more", "%s %+v", method, c)
				}
			}
			assert.Equal(t, Serious, diagnosed(t, "hmc.NUTS", x).Of(CodeRHat)[0].Severity, "%+v", c)
		}
	}
	x := fits(0.4, 1, same)
	for method, want := range map[string]string{
		"svi.SVI":               "an LR that falls to 0 (svi.SVI{Optimizer: optim.Adam{LR: ...}})",
		"vi.Dense":              "raise vi.Dense{Samples: ...}",
		"pathfinder.Pathfinder": "Raise pathfinder.Pathfinder{Paths: ...}",
		"laplace.DenseGGN":      "infer.Options{Warmup: ...}",
	} {
		assert.Contains(t, diagnosed(t, method, x).Of(CodeRHat)[0].Advice, want)
	}
	// Half of a chain may be one value, as of a coin with few heads: 0.1 and 0.2 have standard deviations of 0.3 and 0.4.
	coin := filled(4, n, func(k, i int) float64 {
		if i%10 == 0 || k == 3 && i%10 == 5 {
			return 1
		}
		return 0
	})
	off, spread := apart(usable(coin))
	assert.InDelta(t, 0.1/math.Sqrt((3*0.09+0.16)/4), off, 1e-3)
	assert.InDelta(t, 4.0/3, spread, 1e-3)
}
