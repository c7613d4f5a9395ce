package diag

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
)

// made has 4 chains of 100 draws of one element, made by a method, with statistics.
func made(t *testing.T, method string, stats map[string][][]float64, notes ...draws.Note) *Report {
	t.Helper()
	var names []string
	var traces [][][]float64
	for name, trace := range stats {
		names, traces = append(names, name), append(traces, trace)
	}
	d := container(t, []string{"x"}, [][][]float64{normals(source(95), 4, 100)}, names, traces)
	d.SetAttr(draws.AttrMethod, method)
	for _, n := range notes {
		d.AddNote(n)
	}
	r, err := Diagnose(d, DiagnoseOptions{ESSPerChain: 1})
	require.NoError(t, err)
	return r
}

// hamiltonianWords belong to HMC and NUTS alone.
var hamiltonianWords = []string{"TargetAccept", "target acceptance", "MaxDepth", "tree", "momenta", "diverge", "energy",
	"E-BFMI"}

// A held update is no divergence: it has its own advice, in the fields of its method.
func TestHeldUpdates(t *testing.T) {
	for _, name := range []string{"sgmcmc.SGHMC", ""} {
		for held, severity := range map[int]Severity{1: Warning, 4: Warning, 5: Serious, 400: Serious} {
			left := held
			r := made(t, name, map[string][][]float64{draws.StatGradNorm: stat(4, 100, 1, 1),
				draws.StatHeld: filled(4, 100, func(int, int) float64 {
					if left--; left >= 0 {
						return 1
					}
					return 0
				})})
			require.Empty(t, r.Of(CodeDivergence))
			require.Empty(t, r.Of(CodeSkipped))
			found := r.Of(CodeHeld)
			require.Len(t, found, 1)
			require.Equal(t, severity, found[0].Severity, held)
			require.Equal(t, float64(held), found[0].Figure)
			want := "Set a smaller LR, ten times smaller at first."
			if name != "" {
				want = "Set a smaller LR in sgmcmc.SGHMC{LR: ...}, ten times smaller at first."
			}
			require.Contains(t, found[0].Advice, want)
			for _, word := range hamiltonianWords {
				require.NotContains(t, r.String(), word)
			}
		}
	}
	r := made(t, "vi.Dense", map[string][][]float64{draws.StatHeld: stat(4, 100, 0, 1, 3)})
	require.Contains(t, r.Of(CodeHeld)[0].Advice, "a smaller LR in vi.Dense{Optimizer: optim.Adam{LR: ...}}")
	require.Equal(t, "4 of 400 updates that led to a draw were held (1%)", r.Of(CodeHeld)[0].Message)
	r = made(t, "sgmcmc.SGLD", map[string][][]float64{draws.StatHeld: stat(4, 100, 0, 0)})
	require.Empty(t, r.Findings)
	require.Contains(t, r.Checked, CodeHeld)
	// What the run itself counted, over all updates, is not said twice.
	r = made(t, "sgmcmc.SGLD", map[string][][]float64{draws.StatHeld: stat(4, 100, 1, 1)},
		draws.Note{Kind: "held", Serious: true, Text: "399600 of 400000 updates were held", Advice: "Lower LR."})
	require.Len(t, r.Of(CodeHeld), 1)
	require.Equal(t, "399600 of 400000 updates were held", r.Of(CodeHeld)[0].Message)
}

// The advice for HMC and NUTS names the field to set, as the user types it.
func TestHamiltonianAdvice(t *testing.T) {
	bad := map[string][][]float64{draws.StatDivergent: stat(4, 100, 0, 1, 7),
		draws.StatTreeDepth: stat(4, 100, 3, 10, 2, 3),
		draws.StatEnergy:    ar1(3, 4, 100, 0.99)}
	r := made(t, "hmc.NUTS", bad)
	require.Equal(t, "4 of 400 transitions diverged (1%)", r.Of(CodeDivergence)[0].Message)
	require.Contains(t, r.Of(CodeDivergence)[0].Advice, "Set hmc.NUTS{TargetAccept: 0.95}, then 0.99.")
	require.Equal(t, "8 of 400 transitions (2%) reached the largest tree depth, 10", r.Of(CodeTreeDepth)[0].Message)
	require.Contains(t, r.Of(CodeTreeDepth)[0].Advice, "Draws are valid but expensive: trajectories ended before "+
		"they turned. Set hmc.NUTS{MaxDepth: 12}.")
	require.Contains(t, r.Of(CodeEBFMI)[0].Advice, "Draw more, with infer.Options{Draws: 200}; reparametrise")

	// The sampler's own word for the cut, and its own limit.
	own := made(t, "hmc.NUTS", map[string][][]float64{draws.StatMaxDepth: stat(4, 100, 0, 1, 5),
		draws.StatTreeDepth: stat(4, 100, 3, 6, 5)})
	require.Equal(t, "4 of 400 transitions (1%) reached the largest tree depth", own.Of(CodeTreeDepth)[0].Message)
	require.Contains(t, own.Of(CodeTreeDepth)[0].Advice, "hmc.NUTS{MaxDepth: 8}")

	hmc := made(t, "hmc.HMC", bad)
	require.Contains(t, hmc.Of(CodeDivergence)[0].Advice, "hmc.HMC{TargetAccept: 0.95}")

	// Draws from elsewhere: the names of all.
	r = made(t, "", bad)
	require.Contains(t, r.Of(CodeDivergence)[0].Advice,
		"(hmc.NUTS{TargetAccept: 0.95}, Stan's adapt_delta, PyMC's target_accept)")
	require.NotContains(t, r.String(), "infer.Options")
	require.Len(t, made(t, "", nil).Of(CodeSkipped), 3)
	require.Len(t, made(t, "hmc.NUTS", nil).Of(CodeSkipped), 3)
}

// The advice on divergences does not repeat what the run had already.
func TestAdviceKnowsTheTarget(t *testing.T) {
	advice := func(target string) string {
		d := container(t, []string{"x"}, [][][]float64{normals(source(95), 4, 100)}, []string{draws.StatDivergent},
			[][][]float64{stat(4, 100, 0, 1, 7)})
		d.SetAttr(draws.AttrMethod, "hmc.NUTS")
		d.SetAttr("target_accept", target)
		r, err := Diagnose(d, DiagnoseOptions{})
		require.NoError(t, err)
		require.Len(t, r.Of(CodeDivergence), 1)
		return r.Of(CodeDivergence)[0].Advice
	}
	for _, low := range []string{"", "0.8", "0.9"} {
		require.Contains(t, advice(low), "Set hmc.NUTS{TargetAccept: 0.95}, then 0.99.")
	}
	require.Contains(t, advice("0.95"), "This run had TargetAccept: 0.95. Set hmc.NUTS{TargetAccept: 0.99}.")
	for _, high := range []string{"0.99", "0.999"} {
		require.Contains(t, advice(high), "This run had TargetAccept: "+high+" already")
		require.Contains(t, advice(high), "no remedy: reparametrise")
		require.NotContains(t, advice(high), "Set ")
		require.NotContains(t, advice(high), "0.95")
	}
}

// A step size that the user set does not adapt, so that another target of the acceptance changes nothing.
func TestAdviceKnowsAStepSizeThatWasSet(t *testing.T) {
	for _, method := range []string{"hmc.NUTS", "hmc.HMC", "hmc.MAMS", "hmc.MCLMC"} {
		d := container(t, []string{"x"}, [][][]float64{normals(source(95), 4, 100)}, []string{draws.StatDivergent},
			[][][]float64{stat(4, 100, 1, 1)})
		d.SetAttr(draws.AttrMethod, method)
		d.SetAttr("step_size", "given")
		r, err := Diagnose(d, DiagnoseOptions{})
		require.NoError(t, err)
		require.Equal(t, "400 of 400 transitions diverged (100%)", r.Of(CodeDivergence)[0].Message)
		advice := r.Of(CodeDivergence)[0].Advice
		require.Contains(t, advice, "Make "+method+"{StepSize: ...} smaller, or leave it out: then it adapts.")
		require.NotContains(t, advice, "TargetAccept")
	}
}

// Points of an optimiser, and of fits at T = 0, that agree to rounding are one point. The same points ten times as far
// apart are not.
func TestPointsAgreeToRounding(t *testing.T) {
	for _, method := range []string{"optim.LBFGS", "laplace.DenseHessian"} {
		points := func(apart float64) *Report {
			return diagnosed(t, method, filled(4, 20, func(c, _ int) float64 { return 2 + apart*float64(c) }))
		}
		require.True(t, points(3e-8).OK(), points(3e-8).String())
		require.Len(t, points(3e-8).Of(CodeConstant), 1)
		require.Len(t, points(3e-7).Of(CodeRHat), 1)
		for _, c := range []struct {
			apart, density float64
			same           bool
		}{{3e-8, 0, true}, {3e-7, 0, false}, {3e-8, 1e-10, false}} { // around a mode at 0
			x := filled(4, 20, func(k, _ int) float64 { return c.apart * (float64(k) - 1.5) })
			lp := filled(4, 20, func(k, _ int) float64 { return -20 - c.density*float64(k) })
			d := container(t, []string{"x"}, [][][]float64{x}, []string{draws.StatLP}, [][][]float64{lp})
			d.SetAttr(draws.AttrMethod, method)
			r, err := Diagnose(d, DiagnoseOptions{})
			require.NoError(t, err)
			require.Equal(t, c.same, r.OK(), "%v: %v", c, r)
			require.False(t, diagnosed(t, method, x).OK(), "no log posteriors")
		}
	}
}

// A sampler at T = 0 is an optimiser, by what its draws say of T. Chains of one at T = 1 that stand still at different
// points have not sampled, however near the points are, unless they are one number but for rounding: 45 units in the
// last place of a float64.
func TestPointsOfSamplers(t *testing.T) {
	apart := func(center, step float64) [][][]float64 {
		x := filled(4, 20, func(c, _ int) float64 { return center + step*float64(c)/3 })
		return [][][]float64{x}
	}
	for _, c := range []struct {
		center, step float64
		attr         string
		stat         []float64
		same         bool
	}{
		{2, 0x1p-51, "", nil, true}, // a unit in the last place
		{-2, 0x1p-51, "", nil, true},
		{2e9, 1e-6, "", nil, true},
		{2, 4e-14, "", nil, false},
		{-2, 4e-14, "", nil, false},
		{0, 1e-300, "", nil, false},
		{2, 1e-7, "", nil, false},
		{2, 1e-7, "1", nil, false},
		{2, 1e-7, "1e-9", nil, false},
		{2, 1e-7, "cold", nil, false},
		{2, 1e-7, "0", nil, true},
		{2, 3e-7, "0", nil, false},
		{2, 1e-7, "", []float64{0, 0}, true},
		{2, 1e-7, "", []float64{0, 1}, false},
		{2, 1e-7, "1", []float64{0, 0}, false},
	} {
		for _, method := range []string{"sgmcmc.BAOA", "hmc.NUTS", ""} {
			stats, values := []string{draws.StatDivergent}, [][][]float64{stat(4, 20, 0, 0)}
			if c.stat != nil {
				stats, values = append(stats, draws.StatTemperature), append(values, stat(4, 20, c.stat[0], c.stat[1], 7))
			}
			d := container(t, []string{"x"}, apart(c.center, c.step), stats, values)
			d.SetAttr(draws.AttrMethod, method)
			if c.attr != "" {
				d.SetAttr(draws.AttrTemperature, c.attr)
			}
			r, err := Diagnose(d, DiagnoseOptions{})
			require.NoError(t, err)
			if c.same {
				require.Len(t, r.Of(CodeConstant), 1, "%s %v: %v", method, c, r)
				require.Empty(t, r.Of(CodeRHat), "%s %v", method, c)
			} else {
				require.Len(t, r.Of(CodeRHat), 1, "%s %v: %v", method, c, r)
				require.Equal(t, Serious, r.Of(CodeRHat)[0].Severity)
			}
		}
	}
}

// Draws of an optimiser are points: more of them are no remedy, and one for each chain is nothing to warn of.
func TestOptimisersAreNotAskedForDraws(t *testing.T) {
	points := filled(4, 1, func(int, int) float64 { return 1.5 })
	r := diagnosed(t, "optim.LBFGS", points)
	require.True(t, r.OK())
	require.Len(t, r.Of(codeFewDraws), 1)
	require.Contains(t, r.Of(codeFewDraws)[0].Advice, "the point where the chain ended")
	require.NotContains(t, r.String(), "Draw more")
	require.Contains(t, diagnosed(t, "sgmcmc.SGLD", points).Of(codeFewDraws)[0].Advice, "Draw more")
	for _, x := range [][][]float64{ar1(1, 4, 100, 0.98), normals(source(95), 4, 5),
		filled(4, 100, func(c, i int) float64 { return float64(5*c) + float64(i%7) })} {
		r := diagnosed(t, "optim.Adam", x)
		require.False(t, r.OK())
		require.NotContains(t, r.String(), "Draw more")
	}
}

// Other methods hear nothing of Hamiltonian Monte Carlo, whatever is wrong.
func TestNoHamiltonianAdvice(t *testing.T) {
	apart := filled(4, 100, func(c, i int) float64 { return float64(5*c) + float64(i%7) })
	slow := ar1(1, 4, 100, 0.98)
	for _, name := range []string{"sgmcmc.SGHMC", "optim.Adam", "vi.Dense", "laplace.DenseGGN", "ekf.Diagonal",
		"mine.Sampler"} {
		d := container(t, []string{"apart", "slow", "still", "bad"},
			[][][]float64{apart, slow, stat(4, 100, 2, 2), stat(4, 100, 1, nan, 3)}, []string{draws.StatLP},
			[][][]float64{apart})
		d.SetAttr(draws.AttrMethod, name)
		r, err := Diagnose(d, DiagnoseOptions{})
		require.NoError(t, err)
		found := codes(r)
		for _, code := range []Code{CodeRHat, CodeESSBulk, CodeConstant, CodeNotFinite} {
			require.Positive(t, found[code], "%s: %s", name, code)
		}
		held := 0
		for _, f := range r.Of(CodeSkipped) {
			require.Equal(t, draws.StatHeld, f.Site)
			held++
		}
		require.Equal(t, strings.HasPrefix(name, "sgmcmc.") || strings.HasPrefix(name, "optim."), held == 1)
		for _, word := range hamiltonianWords {
			require.NotContains(t, r.String(), word, name)
		}
		for _, f := range r.Findings {
			if f.Code != CodeSkipped {
				require.NotEmpty(t, f.Advice, f.Code)
			}
		}
	}
	d := container(t, []string{"apart"}, [][][]float64{apart}, nil, nil)
	for name, want := range map[string]string{"vi.Dense": "The fits disagree", "sgmcmc.SGLD": "a LR too small to move",
		"hmc.NUTS": "chains that got stuck"} {
		d.SetAttr(draws.AttrMethod, name)
		r, err := Diagnose(d, DiagnoseOptions{})
		require.NoError(t, err)
		require.Contains(t, r.Of(CodeRHat)[0].Advice, want)
	}
}

// One chain of independent draws from a fit is enough.
func TestOneChainOfAFit(t *testing.T) {
	for name, want := range map[string]int{"laplace.DenseGGN": 0, "vi.Dense": 0, "hmc.NUTS": 1, "": 1} {
		r := diagnosed(t, name, normals(source(96), 1, 1000))
		require.Len(t, r.Of(codeOneChain), want, name)
	}
	require.Equal(t, "Chains from different starting points show what one cannot. Set infer.Options{Chains: 4}.",
		diagnosed(t, "hmc.NUTS", normals(source(96), 1, 1000)).Of(codeOneChain)[0].Advice)
}

// What the run noted becomes a finding, with its own advice, in the order of severity.
func TestNotesBecomeFindings(t *testing.T) {
	r := made(t, "laplace.DenseGGN", nil,
		draws.Note{Kind: "slow", Text: "the fit was slow", Advice: "Wait."},
		draws.Note{Kind: "not_at_mode", Serious: true, Text: "the gradient at the mode is 63 times what the curvature allows",
			Advice: "Run the optimiser longer: infer.Options{Warmup: 10000}."})
	require.False(t, r.OK())
	require.Equal(t, []Finding{
		{Code: "not_at_mode", Severity: Serious, Chain: -1, Observation: -1,
			Message: "the gradient at the mode is 63 times what the curvature allows",
			Advice:  "Run the optimiser longer: infer.Options{Warmup: 10000}."},
		{Code: "slow", Severity: Warning, Chain: -1, Observation: -1, Message: "the fit was slow", Advice: "Wait."},
	}, r.Findings)
	require.Equal(t, `4 chains of 100 draws; checked rhat, ess_bulk, ess_tail.
serious: the gradient at the mode is 63 times what the curvature allows
  Run the optimiser longer: infer.Options{Warmup: 10000}.
warning: the fit was slow
  Wait.
`, r.String())
}

// A share that is not all is never 100 %.
func TestShare(t *testing.T) {
	g := &diagnosis{d: container(t, []string{"x"}, [][][]float64{normals(source(96), 4, 10_000)}, nil, nil)}
	for n, want := range map[int]string{40_000: "100%", 39_999: "99.99%", 39_700: "99.25%", 4_100: "10%", 1: "0.0025%"} {
		require.Equal(t, want, g.share(n))
	}
}
