package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/stretchr/testify/require"
)

const pimaFile = "../../examples/internal/pima/pima.csv"

// The hand-written gradients are those of the models: time refuses others. Those of posteriordb are compared where
// there is a checkout.
func TestBaselineIsTheGradient(t *testing.T) {
	hand, err := newBaseline()
	if err != nil {
		t.Skipf("there is no C compiler: %v", err)
	}
	defer hand.remove()
	all, err := collect(os.Getenv("POSTERIORDB"), pimaFile, "")
	require.NoError(t, err)
	compared := 0
	for _, m := range all {
		if m.hand == "" {
			continue
		}
		compared++
		program, err := ppl.Compile(m.model, m.batch)
		require.NoError(t, err)
		e, err := newEager(program, m.batch)
		require.NoError(t, err)
		grad := make([]float64, len(e.start))
		_, err = e.at(e.start, grad)
		require.NoError(t, err)
		us, err := hand.time(m, e.start, grad, e.data, 0.001)
		require.NoError(t, err, m.name)
		require.Greater(t, us, 0.0)

		grad[0] += 1e-6 * math.Max(1, math.Abs(grad[0]))
		for i := range grad {
			grad[0] += 1e-6 * math.Abs(grad[i])
		}
		_, err = hand.time(m, e.start, grad, e.data, 0.001)
		require.ErrorContains(t, err, "element 0 of the gradient")
	}
	require.GreaterOrEqual(t, compared, 2)
}

// The program prints every model that was asked for, with the keys that other programs read, and a time or a reason for
// each tier.
func TestProgram(t *testing.T) {
	var out bytes.Buffer
	args := []string{"-path", "", "-pima", pimaFile, "-models", "eight_schools,pima", "-seconds", "0.001", "-points", "3"}
	require.NoError(t, run(append(args, "-json"), &out, os.Stderr))
	var got struct {
		Models []map[string]any `json:"models"`
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	require.Len(t, got.Models, 2)
	for i, name := range []string{"eight_schools", "pima"} {
		m := got.Models[i]
		require.Equal(t, name, m["name"])
		for _, key := range []string{"tier", "us", "us_vm", "us_eager", "error", "reason"} {
			require.Contains(t, m, key)
		}
		require.Greater(t, m["us_eager"], 0.0)
		if m["us"] == nil || m["us_vm"] == nil {
			require.NotEmpty(t, m["reason"])
		}
		require.Less(t, m["error"], 1e-10)
	}
	out.Reset()
	require.NoError(t, run(args, &out, os.Stderr))
	require.Contains(t, out.String(), "\neight_schools")
	require.ErrorContains(t, run([]string{"-models", "x", "-pima", pimaFile}, &out, os.Stderr), `"x"`)
	require.ErrorContains(t, run([]string{"-seconds", "0"}, &out, os.Stderr), "-seconds 0")
}
