package loo

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
)

// loo and waic of loo 2.5.1 in R 4.2.2, with relative_eff(exp(loglik), chain_id) as efficiencies: estimates and
// standard errors of elpd and p.
func TestLOOGolden(t *testing.T) {
	reff, err := RelativeEfficiency(goldenLogLik(11, 1), 2)
	require.NoError(t, err)
	for i, want := range []float64{0.404690615870403, 0.40867646338285474, 0.39452885343122851, 0.38540125064330566,
		0.37051466244078246, 0.37066504403560685, 0.49872212639382363, 0.40018332705115339, 0.39646608326778882,
		0.38486446562684884,
		0.37730912619245993, 0.34323618882935875} {
		near(t, "relative efficiency", reff[i], want, 1e-12)
	}
	var last *Result
	for k, c := range []struct {
		seed      lcg
		scale     float64
		loo, waic []float64
	}{
		{13, 3, []float64{-25.992255494998098, 0.011193965204290723, 0.82887029098949228, 0.0052546299514605885},
			[]float64{-25.99217632194685, 0.011114792153044844, 0.82883789576381672, 0.0052222326110304279}},
		{12, 1.5, []float64{-23.13226524107521, 0.19179542524445825, 3.3795131739161675, 0.089975293236287474},
			[]float64{-23.132349656560404, 0.19187984072964701, 3.3800438912614106, 0.090506221956979688}},
		{11, 1, []float64{-27.512407071863628, 0.82162542045337394, 7.7151733884889593, 0.38277326248478155},
			[]float64{-27.516152168006379, 0.82537051659612559, 7.7210850520157273, 0.38867984974449793}},
	} {
		ll := goldenLogLik(c.seed, c.scale)
		reff, err := RelativeEfficiency(ll, 2)
		require.NoError(t, err)
		r, err := LOO(ll, reff)
		require.NoError(t, err)
		for i, got := range []float64{r.ELPD, r.P, r.SE, r.SEP} {
			near(t, "loo", got, c.loo[i], 1e-11)
		}
		near(t, "looic", r.IC, -2*c.loo[0], 1e-11)
		w, err := WAIC(ll)
		require.NoError(t, err)
		for i, got := range []float64{w.ELPD, w.P, w.SE, w.SEP} {
			near(t, "waic", got, c.waic[i], 1e-11)
		}
		require.Equal(t, []int{0, 0, 1}[k], w.Unreliable, "the outlier")
		require.Equal(t, w.Pointwise[11].ELPD, w.Model("waic").Pointwise[11])
		last = r
	}
	// Standard errors by a formula that agrees to leading order with loo 2.5.1, which takes normal quantiles.
	for i, want := range []float64{0.033553643777528917, 0.0097320749872810853, 0.021379126942386029,
		0.022552617971954798,
		0.0092874647706021416, 0.036006299298714947, 0.0035176298141220298, 0.027459890260890601, 0.016026159385240175,
		0.015342891044479065, 0.029211981341472005, 0.082903692997707792} {
		require.InEpsilon(t, want, last.Pointwise[i].MCSE, 0.01)
	}
}

// ArviZ 0.23.4, az.loo(reff=1, scale="log") and az.waic: the divisor of SE is n, and that of the variance in WAIC is S.
func TestLOOArviZ(t *testing.T) {
	ll := goldenLogLik(11, 1)
	r, err := LOO(ll, nil)
	require.NoError(t, err)
	near(t, "elpd", r.ELPD, -27.512407071863628, 1e-12)
	near(t, "p", r.P, 0.8216254204533691, 1e-12)
	near(t, "se", r.SE*math.Sqrt(11.0/12), 7.386716143179653, 1e-12)
	w, err := WAIC(ll)
	require.NoError(t, err)
	near(t, "p_waic", w.P*199/200, 0.8212436640131449, 1e-12)
	near(t, "elpd_waic", w.ELPD+w.P/200, -27.5120253154234, 1e-12)
}

// The model y(i) ~ N(mu, 1), mu ~ N(0, 10²) has normal leave-one-out predictions in closed form: without y(i) the
// posterior is N(m, v) with v = 1/(n - 1 + 0.01), m = v Σ y, and the prediction of y(i) is N(m, 1 + v).
func TestLOOConjugate(t *testing.T) {
	const n, draws = 20, 4000
	rng := source(8)
	y, sum := make([]float64, n), 0.0
	for i := range y {
		y[i] = 1 + rng.NormFloat64()
		sum += y[i]
	}
	v := 1 / (n + 0.01)
	exact := make([]float64, n)
	for i := range y {
		vi := 1 / (n - 1 + 0.01)
		z := y[i] - vi*(sum-y[i])
		exact[i] = -0.5*z*z/(1+vi) - 0.5*math.Log(2*math.Pi*(1+vi))
	}
	var z2 []float64
	for range 20 {
		mu := make([]float64, draws)
		for s := range mu {
			mu[s] = v*sum + math.Sqrt(v)*rng.NormFloat64()
		}
		ll := filled(draws, n, func(s, i int) float64 {
			return -0.5*(y[i]-mu[s])*(y[i]-mu[s]) - 0.5*math.Log(2*math.Pi)
		})
		r, err := LOO(ll, nil)
		require.NoError(t, err)
		require.InDelta(t, 1, r.P, 0.25) // one parameter, up to the misfit of the sample
		total := 0.0
		for i, p := range r.Pointwise {
			require.Less(t, p.K, 0.5)
			require.InDelta(t, exact[i], p.ELPD, 5*p.MCSE+1e-4)
			total += exact[i]
			if i == 0 { // one observation, since one draw of mu moves all
				z2 = append(z2, math.Pow((p.ELPD-exact[i])/p.MCSE, 2))
			}
		}
		require.InDelta(t, total, r.ELPD, 0.05)
	}
	mean, se := meanSE(z2)
	require.InDelta(t, 1, mean, 4*se+0.1, "errors scatter by MCSE")
}

func TestLogLikErrors(t *testing.T) {
	ok := goldenLogLik(11, 1)
	for name, c := range map[string]struct {
		ll   [][]float64
		kind error
	}{
		"nil": {nil, draws.ErrSize}, "one draw": {ok[:1], draws.ErrSize},
		"no observations": {[][]float64{{}, {}}, draws.ErrSize},
		"ragged":          {[][]float64{{1, 2}, {1}}, draws.ErrSize},
		"NaN":             {[][]float64{{1}, {nan}}, diag.ErrNotFinite},
		"Inf":             {[][]float64{{1}, {-inf}}, diag.ErrNotFinite},
	} {
		_, err := LOO(c.ll, nil)
		require.ErrorIs(t, err, c.kind, name)
		_, err = WAIC(c.ll)
		require.ErrorIs(t, err, c.kind, name)
		_, err = RelativeEfficiency(c.ll, 1)
		require.ErrorIs(t, err, c.kind, name)
	}
	_, err := RelativeEfficiency(ok, 3)
	require.ErrorIs(t, err, draws.ErrRange)
	_, err = RelativeEfficiency(ok, 0)
	require.ErrorIs(t, err, draws.ErrRange)
	_, err = LOO(ok, []float64{1, 1})
	require.ErrorIs(t, err, draws.ErrSize)
	_, err = LOO(ok, []float64{0})
	require.ErrorIs(t, err, draws.ErrRange)
	_, err = LOO([][]float64{{0}, {-1e4}, {nan}}, nil)
	require.EqualError(t, err, "diag/loo: loo: the log likelihood of observation 0 in draw 2 is NaN")
}

// A likelihood that never varies has relative efficiency 1 and an exact prediction.
func TestLOOConstant(t *testing.T) {
	ll := filled(100, 2, func(s, i int) float64 { return -float64(i) })
	reff, err := RelativeEfficiency(ll, 2)
	require.NoError(t, err)
	require.Equal(t, []float64{1, 1}, reff)
	r, err := LOO(ll, reff)
	require.NoError(t, err)
	require.InDelta(t, -1, r.ELPD, 1e-12)
	require.InDelta(t, 0, r.P, 1e-12)
	require.True(t, math.IsInf(r.Pointwise[0].K, -1))
}

// Findings are the observations above the threshold, the largest k first, and the figure is never shown as the limit.
func TestDiagnose(t *testing.T) {
	r := &Result{Draws: 4000, Pointwise: []Point{{K: 0.2}, {K: 0.75}, {K: inf}, {K: 0.7}, {K: 0.7001}}}
	report := r.Diagnose()
	require.False(t, report.OK())
	found := report.Of(CodeParetoK)
	require.Len(t, found, 3)
	require.Equal(t, []int{2, 1, 4}, []int{found[0].Observation, found[1].Observation, found[2].Observation})
	require.Equal(t, 0.7, found[0].Threshold)
	require.Equal(t, diag.Serious, found[0].Severity)
	require.Equal(t, `leave-one-out prediction of 5 observations from 4000 draws; checked pareto_k.
serious: observation 2: Pareto k is +Inf, above 0.70
serious: observation 1: Pareto k is 0.75, above 0.70
serious: observation 4: Pareto k is 0.7001, above 0.70
  `+found[0].Advice+"\n", report.String())
	require.True(t, (&Result{Draws: 4000, Pointwise: []Point{{K: 0.2}}}).Diagnose().OK())
}

// A tail is fitted to 21 draws and more. Fewer, such as the points of an optimiser, are one finding that says so.
func TestDiagnoseFewDraws(t *testing.T) {
	for draws, few := range map[int]bool{4: true, fewest - 1: true, fewest: false} {
		ll := filled(draws, 8, func(s, i int) float64 { return -float64((s+i)%draws) / 100 })
		r, err := LOO(ll, nil)
		require.NoError(t, err)
		require.Equal(t, few, math.IsInf(r.Pointwise[0].K, 1), "%d draws", draws)
		report := r.Diagnose()
		if !few {
			require.NotContains(t, report.String(), "optimiser")
			continue
		}
		require.Len(t, report.Findings, 1)
		require.Equal(t, diag.Serious, report.Findings[0].Severity)
		require.Contains(t, report.String(), fmt.Sprintf("there are %d draws, fewer than the 21", draws))
		require.Contains(t, report.String(), "The points of an optimiser are no such draws.")
		require.NotContains(t, report.String(), "Pareto k is")
	}
}

// Printed is a summary, not the points.
func TestResultString(t *testing.T) {
	r := &Result{ELPD: -358.5967, SE: 18.389, P: 9.4897, SEP: 1.5156, IC: 717.1934, SEIC: 36.778,
		Pointwise: make([]Point, 220), Draws: 4000, Unreliable: 3}
	require.Equal(t, `      estimate     se
elpd   -358.60  18.39
p         9.49   1.52
ic      717.19  36.78
unreliable: 3 of 220 observations
`, fmt.Sprint(r))

	// Four points of an optimiser, two observations of which have one log likelihood: no count of Pareto k.
	few, err := LOO(filled(4, 5, func(s, i int) float64 { return -float64(s*max(i-1, 0)) / 100 }), nil)
	require.NoError(t, err)
	require.Equal(t, 5, few.Unreliable)
	require.Contains(t, fmt.Sprint(few),
		"unreliable: all 5 observations: 4 draws are fewer than the 21 that importance sampling takes at least\n")
	waic, err := WAIC(filled(4, 5, func(s, i int) float64 { return -float64(s*i) / 100 }))
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(waic), "unreliable: 0 of 5 observations\n")
}
