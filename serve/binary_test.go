//go:build cgo

package serve_test

import (
	"context"
	"debug/elf"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the files of testdata anew")

// A program that was built without cgo samples an exported model: its means are those of the library.
func TestBinary(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "means")
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", program, "./testdata/means")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	about, err := os.Stat(program)
	require.NoError(t, err)
	t.Logf("the program has %.1f MB", float64(about.Size())/1e6)
	if runtime.GOOS == "linux" {
		f, err := elf.Open(program)
		require.NoError(t, err)
		libraries, err := f.ImportedLibraries()
		require.NoError(t, err)
		require.Empty(t, libraries, "it is static")
		require.NoError(t, f.Close())
	}
	for _, m := range all(t) {
		switch m.Name {
		case "eight_schools", "radon", "beetles", "lynx":
		default:
			continue
		}
		p, _, bytes := exported(t, m)
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

// With -update the files of testdata are written, from which tests without libtorch begin.
func TestUpdate(t *testing.T) {
	if !*update {
		t.Skip("it writes files where -update is given")
	}
	for _, m := range all(t) {
		switch m.Name {
		case "eight_schools", "counts", "wave_gp", "hidden_markov":
			_, _, bytes := exported(t, m)
			require.NoError(t, os.WriteFile("testdata/"+m.Name+".kelvin", bytes, 0o644))
		}
	}
}
