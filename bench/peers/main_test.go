package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/bench/internal/peer"
	"github.com/stretchr/testify/require"
)

const pimaFile = "../../examples/internal/pima/pima.csv"

func TestLeastESS(t *testing.T) {
	chain := func(from float64) []float64 { // a straight line has hardly any effective draws
		x := make([]float64, 100)
		for i := range x {
			x[i] = from + float64(i)
		}
		return x
	}
	mixing := func(seed int) []float64 { // a full period of a linear congruential generator looks independent
		x := make([]float64, 100)
		for i := range x {
			seed = (seed*21 + 37) % 101
			x[i] = float64(seed)
		}
		return x
	}
	draws := map[string][][]float64{"slow": {chain(0), chain(1)}, "fast": {mixing(1), mixing(7)}}
	fast, err := leastESS(draws, []string{"fast"})
	require.NoError(t, err)
	both, err := leastESS(draws, []string{"fast", "slow"})
	require.NoError(t, err)
	require.Less(t, both, 10.0)
	require.Greater(t, fast, 50.0)
	_, err = leastESS(draws, []string{"other"})
	require.ErrorContains(t, err, "no other")
}

// Kelvin alone, with the keys that other programs read; peers that cannot be had are listed with the reason.
func TestProgram(t *testing.T) {
	var out bytes.Buffer
	err := run(context.Background(), []string{"-path", "", "-pima", pimaFile, "-models", "Pima", "-only", "nuts", "-quick",
		"-json", "-venv", t.TempDir(), "-python", "/nowhere/python"}, &out, io.Discard)
	require.NoError(t, err)
	var got struct {
		Missing map[string]string
		NUTS    []map[string]any
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	for _, g := range peer.Groups {
		for _, p := range g.Peers {
			require.Contains(t, got.Missing[p], "/nowhere/python")
		}
	}
	require.Len(t, got.NUTS, 1)
	for _, key := range []string{"model", "side", "compile_s", "s_per_1000_draws", "min_ess", "ess_per_s",
		"ess_per_s_with_compiling", "us_per_gradient", "draws"} {
		require.Contains(t, got.NUTS[0], key)
	}
	require.Greater(t, got.NUTS[0]["ess_per_s"], got.NUTS[0]["ess_per_s_with_compiling"])
	err = run(context.Background(), []string{"-models", "x", "-pima", pimaFile}, &out, io.Discard)
	require.ErrorContains(t, err, `"x"`)
	require.ErrorContains(t, run(context.Background(), []string{"-only", "x"}, &out, io.Discard), `-only "x"`)
}

// Every posterior has a Stan program, and each group its packages and its program.
func TestPrograms(t *testing.T) {
	for _, g := range peer.Groups {
		for _, file := range []string{g.Name + ".txt", g.Name + "_peer.py"} {
			_, err := peer.Programs.ReadFile("py/" + file)
			require.NoError(t, err)
		}
		for _, p := range samplers {
			if p.group == g.Name {
				peer, _ := strings.CutSuffix(p.name, ", low rank")
				require.Contains(t, g.Peers, peer)
			}
		}
	}
	p, err := influenza()
	require.NoError(t, err)
	require.Contains(t, p.stan, "ode_rk45_tol(sir, [N - 1, 1, 0]', 0.0, times, 1e-6, 1e-8, 10000,") // as ode.Options
	require.Len(t, p.data.(map[string]any)["cases"], 14)
	for _, name := range []string{schoolsName, "arK-arK", "sblrc-blr", "nes2000-nes"} {
		text, err := stanProgram(name)
		require.NoError(t, err)
		require.Contains(t, text, "model {")
	}
}

// Means over two rounds are 1 ± √(0.3² + 0.4²)/2 = 1 ± 0.25 and 2 ± 0: they are 4 standard errors apart. A side is not
// apart from itself.
func TestApart(t *testing.T) {
	a := row{means: []map[string]moment{{"x": {0.5, 0.3}}, {"x": {1.5, 0.4}}}}
	b := row{means: []map[string]moment{{"x": {2, 0}, "y": {9, 1}}}}
	require.InDelta(t, 4, apart(a, b), 1e-12)
	require.Zero(t, apart(a, a))
	require.Zero(t, apart(a, row{}))
	require.InDelta(t, 2.5, moments(map[string][][]float64{"x": {{1, 2}, {3, 4}}}, []string{"x"})["x"].mean, 1e-12)
}

// A median of rounds, ratios of Kelvin to a side, and what Kelvin loses.
func TestTable(t *testing.T) {
	make := func(side string, ess, seconds, compile float64) row {
		r := row{Model: "m", Side: side, Compile: compile}
		for _, factor := range []float64{1, 1.5, 3} {
			r.add(sampled{seconds: seconds * factor, ess: ess, draws: 1000})
		}
		r.finish()
		return r
	}
	ours, slow, quick := make("Kelvin", 300, 2, 1), make("Stan", 300, 4, 0), make("nutpie", 300, 1, 7)
	require.InDelta(t, 100, ours.Rate, 1e-9) // 300 / (1.5 · 2)
	require.InDelta(t, 75, ours.Whole, 1e-9) // 300 / (3 + 1)
	require.InDelta(t, 3, ours.Wall, 1e-9)
	failed := row{Model: "m", Side: "Pyro", Error: errors.New("no").Error()}
	r := report{NUTS: []row{ours, slow, quick, failed}, Steps: []stepRow{{Case: "c", Side: "Kelvin", US: 3},
		{Case: "c", Side: "posteriors", US: 2}}}
	losses := r.losses()
	require.Len(t, losses, 2)
	require.Contains(t, losses[0], "nutpie has 2 times the ESS/s")
	require.Contains(t, losses[1], "posteriors takes 0.67 of Kelvin's time")
	var out strings.Builder
	require.NoError(t, r.write(&out))
	require.Contains(t, out.String(), "| Stan | 0.00 | 6 | 300 of 1000 | 50 | 50 |  | 2 | 1.5 |")
	require.Contains(t, out.String(), "| Pyro | no |")
}
