package setup

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"

	"github.com/kelvin-ppl/kelvin/internal/gotch"
)

// TestConstantsAgreeWithTheModule compares what set-up knows with Kelvin's own go.mod and go.sum.
func TestConstantsAgreeWithTheModule(t *testing.T) {
	f, err := modfile.Parse("go.mod", []byte(read(t, "../../go.mod")), nil)
	require.NoError(t, err)
	assert.Equal(t, Kelvin, f.Module.Mod.Path)
	assert.Equal(t, MinGo, f.Go.Version)
	sums := read(t, "../../go.sum")
	assert.Contains(t, sums, gotch.Module+" "+gotch.Version+" "+gotchSum+"\n")
	assert.Contains(t, sums, gotch.Module+" "+gotch.Version+"/go.mod "+gotchModSum+"\n")
}

// TestGotchSource asks the real Go for gotch, in a module that leads elsewhere, and edits the module cache's copy.
func TestGotchSource(t *testing.T) {
	sys := machine(t).System
	t.Setenv("GOPROXY", "off")
	dir, err := gotchSource(context.Background(), sys, t.TempDir())
	if err != nil && strings.Contains(err.Error(), "GOPROXY") {
		t.Skip("gotch is not in Go's module cache: run `kelvin setup` first")
	}
	require.NoError(t, err)
	assert.FileExists(t, filepath.Join(dir, "ts/tensor.go"))

	// The same source, but somebody has edited it: the archive is unpacked instead.
	edited := t.TempDir()
	run := sys.Run
	sys.Run = func(ctx context.Context, c Command) (string, error) {
		out, err := run(ctx, c)
		return strings.Replace(out, `"Dir": "`+dir, `"Dir": "`+edited, 1), err
	}
	scratch := t.TempDir()
	dir, err = gotchSource(context.Background(), sys, scratch)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(scratch, "gotch"), dir)
	assert.FileExists(t, filepath.Join(dir, "ts/tensor.go"))
}

func TestGotchSourceWithoutNetwork(t *testing.T) {
	sys := machine(t).System
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOMODCACHE", t.TempDir())
	_, err := gotchSource(context.Background(), sys, t.TempDir())
	require.ErrorContains(t, err, "the source of github.com/sugarme/gotch@v0.9.1 cannot be had")
	assert.Contains(t, remedyOf(t, err), "GOPROXY")
}
