package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const pimaFile = "../../examples/internal/pima/pima.csv"

// Draws lie chain by chain, draw by draw, name by name.
func TestReadDraws(t *testing.T) {
	var raw bytes.Buffer
	for c := range 2 {
		for i := range 3 {
			for j := range 2 {
				require.NoError(t, binary.Write(&raw, binary.LittleEndian, float64(100*c+10*i+j)))
			}
		}
	}
	file := filepath.Join(t.TempDir(), "draws")
	require.NoError(t, os.WriteFile(file, raw.Bytes(), 0o600))
	a := answer{Names: []string{"mu", "theta[1]"}, Chains: 2, Draws: 3}
	got, err := readDraws(file, a)
	require.NoError(t, err)
	require.Equal(t, map[string][][]float64{"mu": {{0, 10, 20}, {100, 110, 120}},
		"theta[1]": {{1, 11, 21}, {101, 111, 121}}}, got)
	a.Draws = 4
	_, err = readDraws(file, a)
	require.ErrorContains(t, err, "96 bytes of draws for 2 chains, 4 draws and 2 names")
	a.Draws, a.Names = 3, []string{"mu", "mu"}
	_, err = readDraws(file, a)
	require.ErrorContains(t, err, "twice")
}

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

// interpreter is a group's environment whose Python is a shell script.
func interpreter(t *testing.T, script string) *environments {
	t.Helper()
	root := t.TempDir()
	bin := filepath.Join(root, groups[0].name, "bin")
	require.NoError(t, os.MkdirAll(bin, 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "cache"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "python"), []byte("#!/bin/sh\n"+script), 0o755))
	return &environments{root: root, messages: io.Discard}
}

func TestProcess(t *testing.T) {
	e := interpreter(t, `read request
case "$request" in *gradient*) echo '{"us": 1.5}' ;; esac
read request
echo '{"error": "RuntimeError: no"}'
read request
echo 'it is over' >&2
exit 1`)
	p, err := e.start(context.Background(), groups[0])
	require.NoError(t, err)
	defer p.close()
	a, err := p.ask("gradient", request{}, time.Minute)
	require.NoError(t, err)
	require.Equal(t, 1.5, a.US)
	_, err = p.ask("gradient", request{}, time.Minute)
	require.EqualError(t, err, "RuntimeError: no")
	_, err = p.ask("gradient", request{}, time.Minute)
	require.ErrorContains(t, err, "the program ended")
	_, err = p.ask("gradient", request{}, time.Minute)
	require.ErrorContains(t, err, "the program ended")

	e = interpreter(t, "read request\nexec sleep 60")
	p, err = e.start(context.Background(), groups[0])
	require.NoError(t, err)
	defer p.close()
	_, err = p.ask("sample", request{}, 100*time.Millisecond)
	require.ErrorContains(t, err, "sample took more than 100ms")
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
	for _, g := range groups {
		for _, p := range g.peers {
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
	for _, g := range groups {
		for _, file := range []string{g.name + ".txt", g.name + "_peer.py"} {
			_, err := programs.ReadFile("py/" + file)
			require.NoError(t, err)
		}
		for _, p := range samplers {
			if p.group == g.name {
				peer, _ := strings.CutSuffix(p.name, ", low rank")
				require.Contains(t, g.peers, peer)
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
