package diag

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
)

// diagnosed is the report of one element, whose draws were made by a method.
func diagnosed(t *testing.T, method string, x [][]float64) *Report {
	t.Helper()
	d := container(t, []string{"x"}, [][][]float64{x}, nil, nil)
	d.SetAttr(draws.AttrMethod, method)
	r, err := Diagnose(d, DiagnoseOptions{})
	require.NoError(t, err)
	return r
}

// Chains of one law that are short have R-hats above 1.01 by chance: that is a note to draw more. The first seed whose
// R-hat rounds to 1.012 stands for it, and is found whatever the generator.
func TestShortChainsAreNotApart(t *testing.T) {
	for seed := range uint64(10000) {
		x := ar1(seed, 4, 200, 0.3)
		if v := RHat(x); v < 1.0115 || v > 1.0125 {
			continue
		}
		r := diagnosed(t, "hmc.NUTS", x)
		found := r.Of(CodeRHat)
		require.Len(t, found, 1)
		require.Equal(t, Info, found[0].Severity)
		require.Regexp(t, `^x: R-hat is 1\.01[12], above 1\.01; chance explains up to 1\.0[2-9]\d$`, found[0].Message)
		require.Equal(t, "The chains are too short to tell whether they agree. Draw more, with infer.Options{Draws: 400}.",
			found[0].Advice)
		require.NotContains(t, r.String(), "do not use")
		return
	}
	t.Fatal("no chains with such an R-hat")
}

// Of 400 runs of chains of one law, few are called apart: chance does that with probability 1e-4, if
// autocorrelations were known. What is left is their estimate; 1% bounds it where chains are at least 20
// autocorrelation times long, halved.
func TestChanceIsNotDisagreement(t *testing.T) {
	for _, c := range []struct {
		chains, draws int
		phi           float64
	}{{4, 200, 0}, {4, 200, 0.5}, {2, 200, 0.5}, {4, 1000, 0.9}, {16, 200, 0.5}, {4, 50, 0}} {
		above, apart := 0, 0
		for seed := range uint64(400) {
			if x := ar1(seed, c.chains, c.draws, c.phi); RHat(x) > 1.01 {
				above++
				if _, beyond := disagree(usable(x), 1e-4); beyond {
					apart++
				}
			}
		}
		require.LessOrEqual(t, apart, 4, c)
		t.Logf("%d chains of %d, phi %.1f: %d of 400 above 1.01, %d called apart", c.chains, c.draws, c.phi, above,
			apart)
	}
}

// A chain that stands still at the largest value leaves no tail effective sample size: that is found, and no number of
// draws is advised where chains disagree. Whole numbers may well repeat.
func TestNoTailIsFound(t *testing.T) {
	rng := source(91)
	z := normals(rng, 4, 400)
	short := filled(4, 400, func(c, i int) float64 { // one draw in sixteen is 9
		if c == 3 && i < 100 {
			return 9
		}
		return z[c][i]
	})
	require.True(t, math.IsNaN(ESSTail(short)))
	report := diagnosed(t, "hmc.NUTS", short)
	tail := report.Of(CodeESSTail)
	require.Len(t, tail, 1)
	require.Contains(t, tail[0].Message, "a chain stood still there")
	require.NotContains(t, tail[0].Advice, "Draws:")
	modes := filled(4, 1, func(c, _ int) float64 { return z[c][0] }) // as of an optimiser
	require.Empty(t, diagnosed(t, "optim.LBFGS", modes).Of(CodeESSTail))
	coin := filled(4, 400, func(c, i int) float64 {
		if z[c][i] > 0 {
			return 1
		}
		return 0
	})
	require.True(t, math.IsNaN(ESSTail(coin)))
	require.Empty(t, diagnosed(t, "hmc.NUTS", coin).Of(CodeESSTail))
}

// Chains that disagree are found, in location, in spread and where they do not move, however many
// elements are looked at.
func TestDisagreementIsFound(t *testing.T) {
	rng := source(90)
	for name, f := range map[string]func(c int, v float64) float64{
		"location": func(c int, v float64) float64 { return v + 0.7*float64(c/3) }, // one chain of four
		"spread":   func(c int, v float64) float64 { return v * (1 + float64(c/3)) },
		"stuck":    func(c int, _ float64) float64 { return float64(c) },
	} {
		z := normals(rng, 4, 400)
		x := filled(4, 400, func(c, i int) float64 { return f(c, z[c][i]) })
		report := diagnosed(t, "hmc.NUTS", x)
		found := report.Of(CodeRHat)
		require.Len(t, found, 1, name)
		require.Equal(t, Serious, found[0].Severity, name)
		few := report.Of(CodeESSBulk)
		require.Equal(t, name != "spread", len(few) > 0, name)
		for _, f := range few {
			require.NotContains(t, f.Advice, "Draws:", name) // which would not make them agree
		}
		require.Contains(t, found[0].Advice, "The chains disagree: do not use the draws.", name)
		limit, beyond := disagree(usable(x), 1e-10)
		require.True(t, beyond, name)
		require.Less(t, limit, found[0].Figure, name)
	}
	// A random walk has not explored anything: serious, whatever chance explains.
	walk := filled(4, 100, func(c, i int) float64 { return 0 })
	for _, c := range walk {
		for i := 1; i < len(c); i++ {
			c[i] = c[i-1] + rng.NormFloat64()
		}
	}
	require.Equal(t, Serious, diagnosed(t, "", walk).Of(CodeRHat)[0].Severity)
}

// No figure is shown as the limit that it passed.
func TestFiguresDifferFromTheirLimits(t *testing.T) {
	number := regexp.MustCompile(`(R-hat|E-BFMI|size) is (\S+), (above|below) ([0-9.]+)`)
	seen := map[string]int{}
	check := func(r *Report) {
		for _, f := range r.Findings {
			m := number.FindStringSubmatch(f.Message)
			if m == nil {
				continue
			}
			shown, err := strconv.ParseFloat(m[2], 64)
			require.NoError(t, err)
			limit, err := strconv.ParseFloat(m[4], 64)
			require.NoError(t, err)
			require.Equal(t, m[3] == "above", shown > limit, f.Message)
			require.NotEqual(t, limit, shown, f.Message)
			seen[m[1]]++
		}
	}
	for seed := range uint64(10) {
		x := ar1(seed, 4, 200, 0.3)
		d := container(t, []string{"x"}, [][][]float64{x}, []string{draws.StatEnergy},
			[][][]float64{ar1(seed+50, 4, 200, 0.8)})
		low := math.Inf(1)
		for c := range 4 {
			e, err := d.Stat(draws.StatEnergy, c)
			require.NoError(t, err)
			low = min(low, EBFMI(e))
		}
		for _, off := range []float64{1e-9, 1e-5, 3e-4} { // limits that the figures hardly pass
			r, err := Diagnose(d, DiagnoseOptions{RHat: RHat(x) - off, ESSPerChain: (ESSBulk(x) + 100*off) / 4,
				EBFMI: low + off})
			require.NoError(t, err)
			check(r)
		}
		round, err := Diagnose(d, DiagnoseOptions{RHat: math.Floor(RHat(x)*1000) / 1000,
			EBFMI:       math.Ceil(low*100) / 100,
			ESSPerChain: math.Ceil(ESSBulk(x)/4) / 1})
		require.NoError(t, err)
		check(round)
	}
	for _, name := range []string{"R-hat", "E-BFMI", "size"} {
		require.Positive(t, seen[name], name)
	}
}

// A total is what estimates need: a thousand chains of 20 draws have ten thousand effective draws and pass; sixteen
// chains count, so 1600 is what is asked for.
func TestManyChainsNeedNoMoreDraws(t *testing.T) {
	x := normals(source(91), 1000, 20)
	require.Greater(t, ESSBulk(x), 1e4)
	require.Less(t, ESSBulk(x), 1e5)
	r := diagnosed(t, "sgmcmc.SGHMC", x)
	require.Empty(t, r.Of(CodeESSBulk))
	require.Empty(t, r.Of(CodeESSTail))
	for chains, least := range map[int]float64{1: 100, 4: 400, 16: 1600, 17: 1600, 1000: 1600} {
		require.Equal(t, least, leastESS(100, chains))
	}
	slow := diagnosed(t, "hmc.NUTS", ar1(1, 4, 200, 0.9)).Of(CodeESSBulk)
	require.Len(t, slow, 1)
	require.Equal(t, 400.0, slow[0].Threshold)
	require.Regexp(t, `^x: bulk effective sample size is \d+, below 400$`, slow[0].Message)
	require.Regexp(t, `Draw more, with infer.Options\{Draws: \d+00\}, or reparametrise`, slow[0].Advice)
}

// The advice asks for as many draws as are missing, in two digits.
func TestMore(t *testing.T) {
	for _, c := range []struct {
		draws int
		times float64
		want  int
	}{{1000, 1.1, 2000}, {1000, 3.14159, 3200}, {200, 2, 400}, {4, 100, 400}, {1234, 2.5, 3100}, {1, 1, 8},
		{10, 1.2345, 20}} {
		want := fmt.Sprintf("Draw more, with infer.Options{Draws: %d}", c.want)
		require.Equal(t, want, adviser{method: "hmc.NUTS", draws: c.draws}.more(c.times))
		require.Equal(t, fmt.Sprintf("Draw more, about %d for each chain", c.want),
			adviser{draws: c.draws}.more(c.times))
	}
	require.Equal(t, "Draw more", adviser{draws: 1000}.more(inf))
}
