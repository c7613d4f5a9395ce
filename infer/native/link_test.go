package native

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/ccompiler"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// C to be linked is written in every tier that has a plan; where it cannot be written, that is an error.
func TestWriteTo(t *testing.T) {
	s := eagerNormal(t, vector(t, 1, 2, 4))
	points := [][]float64{{0.5}, {-3}}
	dir := filepath.Join(t.TempDir(), "gradients")
	for _, tier := range []Tier{VM, C} {
		f, report, err := Compile(s, points, Options{Tier: tier, WriteTo: dir})
		require.NoError(t, err)
		require.NotNil(t, f)
		assert.False(t, report.Linked)
	}
	files, err := ccompiler.Files(dir)
	require.NoError(t, err)
	assert.Len(t, files, 2, "one function and the Go file")

	other := filepath.Join(t.TempDir(), "by-environment")
	t.Setenv(ccompiler.Variable, other)
	_, _, err = Compile(s, points, Options{Tier: VM})
	require.NoError(t, err)
	assert.FileExists(t, filepath.Join(other, ccompiler.GoFile))

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, _, err = Compile(s, points, Options{Tier: VM, WriteTo: file})
	assert.ErrorContains(t, err, "C to be linked")
}
