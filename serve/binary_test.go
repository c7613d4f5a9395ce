//go:build cgo

package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/data/batch"
	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the files of testdata anew")

// A program that was built without cgo samples an exported model: its means are those of the library.
func TestBinary(t *testing.T) {
	dir := t.TempDir()
	program := infertest.Static(t)
	about, err := os.Stat(program)
	require.NoError(t, err)
	t.Logf("the program has %.1f MB", float64(about.Size())/1e6)
	app := exec.Command("go", "build", "-o", filepath.Join(dir, "app"), "./testdata/app")
	app.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	out, err := app.CombinedOutput()
	require.NoError(t, err, string(out))
	for _, m := range all(t) {
		p, err := m.Compile()
		require.NoError(t, err)
		named, _ := infertest.PosteriorAt(t, p, 6)
		loaded, bytes := infertest.Exported(t, p, named)
		infertest.StaticAlike(t, program, loaded, bytes)
		switch m.Name {
		case "eight_schools", "radon", "beetles", "lynx", "pima":
		default:
			continue
		}
		file := filepath.Join(dir, m.Name)
		require.NoError(t, os.WriteFile(file, bytes, 0o644))
		run := exec.Command(program, file)
		run.Env, run.Dir = []string{}, dir
		out, err := run.CombinedOutput()
		require.NoError(t, err, string(out))
		result, err := infer.Sample(context.Background(), p, hmc.NUTS{}, infer.Options{Seed: 2})
		require.NoError(t, err)
		table, err := diag.Summary(result, diag.SummaryOptions{})
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		require.Len(t, lines, len(table.Rows))
		worst := 0.0
		for i, r := range table.Rows {
			var mean, sd, mcse float64
			rest, found := strings.CutPrefix(lines[i], r.Name+" ")
			require.True(t, found, lines[i])
			_, err := fmt.Sscan(rest, &mean, &sd, &mcse)
			require.NoError(t, err, lines[i])
			if r.MCSEMean > 0 {
				worst = math.Max(worst, math.Abs(mean-r.Mean)/math.Hypot(mcse, r.MCSEMean))
			}
		}
		t.Logf("%s: the largest of %d differences is %.1f standard errors", m.Name, len(lines), worst)
		require.Less(t, worst, 4.0, m.Name)
	}
}

// With -update the file of version 3 in testdata is written, from which tests without libtorch begin. Those of earlier
// versions stay as they are: they must be read.
func TestUpdate(t *testing.T) {
	if !*update {
		t.Skip("it writes a file where -update is given")
	}
	file, want := sales(t)
	require.NoError(t, os.WriteFile("testdata/app/model.kelvin", file, 0o644))
	text, err := json.Marshal(want)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("testdata/app/predictions.json", text, 0o644))
}

// sales is a regression on a design, with draws, and what ppl.Predictive predicts for two rows at three draws.
func sales(t *testing.T) ([]byte, map[string][]float64) {
	hours, sold, shops := []float64{1, 2, 3, 4}, []float64{3, 5.5, 7, 9.5}, []string{"north", "south", "north", "south"}
	table, err := data.NewTable(data.Column{Name: "hours", Numbers: hours}, data.Column{Name: "shop", Labels: shops},
		data.Column{Name: "sold", Numbers: sold})
	require.NoError(t, err)
	design, err := data.Spec{Terms: []data.Term{{Column: "hours"}, {Column: "shop"}},
		Outcome: data.Term{Column: "sold"}}.Fit(table)
	require.NoError(t, err)
	frame, err := design.Frame(table)
	require.NoError(t, err)
	tensors, err := batch.Of(frame)
	require.NoError(t, err)
	model := func(c *ppl.Ctx) {
		x := c.Data("x")
		a, w := c.Sample("a", dist.Normal(0, 10)), c.Sample("w", dist.Normal(0, 10).Expand(x.Shape()[1]))
		s := c.Sample("s", dist.HalfNormal(5))
		c.Plate("data", 0, func(c *ppl.Ctx) {
			mean := c.Deterministic("mean", x.MatMul(w).Add(a))
			c.Observe("y", dist.Normal(mean, s), c.Data("y"))
			c.Observe("visits", dist.Poisson(mean.Exp()), torch.Of(c.Data("y").T().MustRound(false)))
		})
	}
	p, err := ppl.Compile(model, tensors)
	require.NoError(t, err)
	named, _ := infertest.PosteriorAt(t, p, 200)
	posterior, err := named.Select("a", "w", "s")
	require.NoError(t, err)
	require.NoError(t, posterior.Label("w", frame.Names))
	var file bytes.Buffer
	require.NoError(t, p.ExportFitted(&file, posterior, design))
	first, err := posterior.Slice(0, 3)
	require.NoError(t, err)
	first, err = first.Chain(0)
	require.NoError(t, err)
	x, err := torch.FromSlice([]float64{1.5, 1, 2, 0}, 2, 2)
	require.NoError(t, err)
	values, err := ppl.Predictive{Model: model, Batch: infer.Batch{"x": x, "y": torch.Zeros(2)}, Seed: 3}.Posterior(first)
	require.NoError(t, err)
	want := map[string][]float64{}
	for _, name := range []string{"y", "mean", "visits"} {
		want[name] = values[name].Values()
	}
	return file.Bytes(), want
}
