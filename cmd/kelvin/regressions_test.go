package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/internal/setup"
)

// The commands of regressions run the program that needs libtorch: built once, and found from anywhere.
func TestRegressions(t *testing.T) {
	a, _, said := bare(t)
	project, err := setup.FindProject(context.Background(), a.sys, "")
	require.NoError(t, err)
	if _, err := setup.InUse(project); err != nil {
		t.Skipf("set-up has not run in this checkout: %v", err)
	}
	run, builds := a.sys.Run, 0
	a.sys.Run = func(ctx context.Context, c setup.Command) (string, error) {
		if c.Name != "go" || c.Args[0] != "build" {
			return run(ctx, c)
		}
		builds++
		assert.Equal(t, setup.Kelvin+"/cmd/kelvin-fit", c.Args[3])
		return "", os.WriteFile(c.Args[2], []byte("program"), 0o755)
	}
	var ran [][]string
	a.exec = func(program string, args, _ []string) error {
		assert.FileExists(t, program)
		ran = append(ran, args)
		return errors.New("it ended")
	}
	call := []string{"fit", "data.csv", "y ~ x", "--family", "poisson"}
	assert.Equal(t, exitFailed, a.run(context.Background(), call))
	assert.Contains(t, said.String(), "building the part of kelvin that needs libtorch")
	require.Len(t, ran, 1)
	assert.Equal(t, call, ran[0][1:])

	said.Reset()
	a.run(context.Background(), []string{"help", "effects"})
	assert.Equal(t, "kelvin: it ended\n", said.String(), "it is not built again")
	assert.Equal(t, []string{"effects", "-help"}, ran[1][1:])
	assert.Equal(t, ran[0][0], ran[1][0])
	assert.Equal(t, 2, builds, "of a checkout Go is asked each time whether it has changed")

	t.Chdir(t.TempDir())
	a.run(context.Background(), []string{"code", "fit"})
	assert.Equal(t, ran[0][0], ran[2][0])
	left, err := filepath.Glob(filepath.Join(a.sys.Root, "cache", "kelvin", "*"))
	require.NoError(t, err)
	assert.False(t, slices.ContainsFunc(left, func(p string) bool { return filepath.Base(p)[0] == 'k' }), "%q", left)
}

// Without set-up the error names the command.
func TestRegressionsWithoutSetup(t *testing.T) {
	a, _, said := bare(t)
	dir := t.TempDir()
	t.Chdir(dir)
	assert.Equal(t, exitFailed, a.run(context.Background(), []string{"fit", "a", "b"}))
	assert.Contains(t, said.String(), "is not in a Go module")
	assert.Contains(t, said.String(), "kelvin setup")
	said.Reset()
	require.NoError(t, os.WriteFile("go.mod", []byte("module x\n\ngo 1.25\n"), 0o644))
	assert.Equal(t, exitFailed, a.run(context.Background(), []string{"predict", "a", "b"}))
	assert.Contains(t, said.String(), setup.SetupCommand)
}

// A folder of a fit is served from its file, which the program that needs libtorch makes where there is none.
func TestServeFolder(t *testing.T) {
	a, _, said := bare(t)
	project, err := setup.FindProject(context.Background(), a.sys, "")
	require.NoError(t, err)
	if _, err := setup.InUse(project); err != nil {
		t.Skipf("set-up has not run in this checkout: %v", err)
	}
	dir := t.TempDir()
	assert.Equal(t, exitFailed, a.run(context.Background(), []string{"serve", dir}))
	assert.Contains(t, said.String(), "is not the folder of a fit")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.json"), []byte("{}"), 0o644))
	run := a.sys.Run
	a.sys.Run = func(ctx context.Context, c setup.Command) (string, error) {
		switch {
		case c.Name == "go" && c.Args[0] == "build":
			return "", os.WriteFile(c.Args[2], []byte("program"), 0o755)
		case len(c.Args) > 0 && c.Args[0] == "export":
			assert.Equal(t, []string{"export", dir}, c.Args)
			return "", os.WriteFile(filepath.Join(dir, "model.kelvin"), []byte("a model"), 0o644)
		}
		return run(ctx, c)
	}
	assert.Equal(t, exitFailed, a.run(context.Background(), []string{"serve", dir}))
	assert.Contains(t, said.String(), "does not begin as an export does")
}
