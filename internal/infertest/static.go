package infertest

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/serve"
	"github.com/stretchr/testify/require"
)

// Static builds serve/testdata/means without cgo, and makes sure that it needs no library.
func Static(t testing.TB) (program string) {
	program = filepath.Join(t.TempDir(), "means")
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", program,
		"github.com/kelvin-ppl/kelvin/serve/testdata/means")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	if runtime.GOOS == "linux" {
		f, err := elf.Open(program)
		require.NoError(t, err)
		libraries, err := f.ImportedLibraries()
		require.NoError(t, err)
		require.Empty(t, libraries, "it is static")
		require.NoError(t, f.Close())
	}
	return program
}

// StaticAlike makes sure that the static program has the bits of log density, gradient, values, log likelihoods and
// predictions that this process has of an exported file.
func StaticAlike(t testing.TB, program string, loaded *serve.Model, file []byte) {
	path := filepath.Join(t.TempDir(), "model")
	require.NoError(t, atomicfile.Write(path, file, 0o644))
	run := exec.Command(program, "-predict", path)
	run.Env = []string{}
	out, err := run.CombinedOutput()
	require.NoError(t, err, string(out))
	zero, grad := make([]float64, loaded.Dim()), make([]float64, loaded.Dim())
	want := fmt.Sprintf("%x\n", loaded.LogDensity(zero, grad))
	rows := [][]float64{grad}
	values := loaded.Constrain(zero)
	for _, name := range loaded.Names() {
		rows = append(rows, values[name])
	}
	if likelihood, err := loaded.LogLikelihood(zero); err == nil {
		var names []string
		for name := range likelihood {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			rows = append(rows, likelihood[name])
		}
	}
	predictions, err := loaded.Predict(nil, loaded.Rows(), nil, 5)
	require.NoError(t, err)
	var b strings.Builder
	for _, row := range append(rows, predictions.Rows()...) {
		for _, v := range row {
			fmt.Fprintf(&b, "%x ", v)
		}
		b.WriteByte('\n')
	}
	require.Equal(t, want+b.String(), string(out))
}

// Exports makes sure that a program which was exported is the library's: in this process to 1e-12 of the largest,
// single log likelihoods to 1e-10, and to the bit from there in a process that was built without cgo.
func Exports(t testing.TB, p *ppl.Program) {
	named, unconstrained := PosteriorAt(t, p, 6)
	loaded, file := Exported(t, p, named)
	d := Compare(t, loaded, p, named, unconstrained)
	t.Logf("%d bytes; differences up to %.1e; rows free: %v", len(file), d, loaded.FreeRows())
	require.Less(t, max(d.Density, d.Values, d.Predictions), 1e-12)
	require.Less(t, d.LogLikelihood, 1e-10)
	StaticAlike(t, Static(t), loaded, file)
}
