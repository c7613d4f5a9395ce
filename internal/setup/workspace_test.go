package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// find is FindProject on the real Go.
func find(t *testing.T, dir string) *Project {
	t.Helper()
	p, err := FindProject(context.Background(), machine(t).System, dir)
	require.NoError(t, err)
	return p
}

// point writes the workspace of the module in dir and checks that Go accepts it.
func point(t *testing.T, dir, copyDir string) (path string, changed bool) {
	t.Helper()
	path, changed, err := writeWorkspace(find(t, dir), copyDir)
	require.NoError(t, err)
	_, err = runCommand(context.Background(), Command{Name: "go", Args: []string{"work", "edit", "-json"}, Dir: dir})
	require.NoError(t, err)
	got, err := readReplacement(path)
	require.NoError(t, err)
	assert.Equal(t, copyDir, got)
	return path, changed
}

// same compares a file with a text.
func same(t *testing.T, path, want string) {
	t.Helper()
	if diff := cmp.Diff(want, read(t, path)); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

func TestWorkspaceIsMade(t *testing.T) {
	dir := newModule(t, plainModule)
	path, changed := point(t, dir, "/cache/gotch/v0.9.1-a")
	assert.True(t, changed)
	assert.Equal(t, filepath.Join(dir, "go.work"), path)
	same(t, path, workHeader+"go 1.25.0\n\nuse .\n\nreplace github.com/sugarme/gotch v0.9.1 => /cache/gotch/v0.9.1-a\n")

	_, changed = point(t, dir, "/cache/gotch/v0.9.1-a")
	assert.False(t, changed, "the second run finds it done")

	_, changed = point(t, dir, "/cache/gotch/a folder with spaces")
	assert.True(t, changed)
	same(t, path, workHeader+"go 1.25.0\n\nuse .\n\nreplace github.com/sugarme/gotch v0.9.1 => \"/cache/gotch/a folder "+
		"with spaces\"\n")
}

func TestWorkspaceGoLine(t *testing.T) {
	old := newModule(t, "module example.com/old\n\ngo 1.21\n")
	path, _ := point(t, old, "/c")
	assert.Contains(t, read(t, path), "\ngo "+MinGo+"\n", "Kelvin needs it")

	none := newModule(t, "module example.com/none\n")
	path, _ = point(t, none, "/c")
	assert.Contains(t, read(t, path), "\ngo "+MinGo+"\n")
	assert.Equal(t, "1.26.0", newestGo(MinGo, "1.26.0"))
	assert.Equal(t, MinGo, newestGo("", MinGo))
}

const userWorkspace = `// My workspace.

go 1.24

toolchain go1.25.1

use (
	./other // the other one
)

// A replacement of mine.
replace example.com/x => ../x

replace github.com/sugarme/gotch v0.9.1 => /old/copy // from before
`

func TestWorkspaceIsExtended(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	dir := filepath.Join(root, "deep/mine")
	write(t, filepath.Join(dir, "go.mod"), plainModule)
	write(t, filepath.Join(root, "other/go.mod"), "module example.com/other\n\ngo 1.24\n")
	path := filepath.Join(root, "go.work")
	write(t, path, userWorkspace)
	require.NoError(t, os.Chmod(path, 0o600))

	got, changed := point(t, dir, "/new/copy")
	assert.True(t, changed)
	assert.Equal(t, path, got, "the one above, which is in force")
	same(t, path, `// My workspace.

go 1.25.0

toolchain go1.25.1

use (
	./other // the other one
	./deep/mine
)

// A replacement of mine.
replace example.com/x => ../x

replace github.com/sugarme/gotch v0.9.1 => /new/copy // from before
`)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.EqualValues(t, 0o600, info.Mode().Perm())
	assert.NoFileExists(t, filepath.Join(dir, "go.work"))

	_, changed = point(t, dir, "/new/copy")
	assert.False(t, changed)
}

func TestWorkspaceThatNeedsNoChangeIsNotFormatted(t *testing.T) {
	dir := newModule(t, plainModule)
	odd := "go    1.25.0\nuse    .\nreplace   github.com/sugarme/gotch   v0.9.1 =>   /c\n"
	write(t, filepath.Join(dir, "go.work"), odd)
	path, changed := point(t, dir, "/c")
	assert.False(t, changed)
	same(t, path, odd)
}

func TestWorkspaceElsewhere(t *testing.T) {
	dir := newModule(t, plainModule)
	place, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	m := machine(t)
	t.Setenv("GOWORK", filepath.Join(place, "go.work"))
	p, err := FindProject(context.Background(), m.System, dir)
	require.NoError(t, err)
	path, changed, err := writeWorkspace(p, "/c")
	require.NoError(t, err)
	assert.True(t, changed)
	assert.Equal(t, filepath.Join(place, "go.work"), path)
	assert.Contains(t, read(t, path), "use "+dir+"\n")
	_, changed, err = writeWorkspace(p, "/c")
	require.NoError(t, err)
	assert.False(t, changed)
}

func TestWorkspaceThroughALink(t *testing.T) {
	dir := newModule(t, plainModule)
	real := filepath.Join(dir, "real.work")
	write(t, real, "go 1.25.0\n\nuse .\n")
	require.NoError(t, os.Symlink("real.work", filepath.Join(dir, "go.work")))
	point(t, dir, "/c")
	assert.Contains(t, read(t, real), "=> /c")
	info, err := os.Lstat(filepath.Join(dir, "go.work"))
	require.NoError(t, err)
	assert.NotZero(t, info.Mode()&os.ModeSymlink, "the link stays a link")
}

func TestWorkspaceOfAFolderOutsideItsModules(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	write(t, filepath.Join(root, "mine/go.mod"), plainModule)
	write(t, filepath.Join(root, "go.work"), "go 1.25.0\n\nuse ./mine\n")
	p := find(t, root)
	assert.Empty(t, p.GoMod)
	path, _, err := writeWorkspace(p, "/c")
	require.NoError(t, err)
	same(t, path, "go 1.25.0\n\nuse ./mine\n\nreplace github.com/sugarme/gotch v0.9.1 => /c\n")
}

func TestWorkspaceThatCannotBeRead(t *testing.T) {
	dir := newModule(t, plainModule)
	p := find(t, dir)
	p.GoWork = filepath.Join(dir, "go.work")
	write(t, p.GoWork, "go 1.25.0\nuse (\n")
	_, _, err := writeWorkspace(p, "/c")
	require.ErrorContains(t, err, "the workspace file "+p.GoWork+" cannot be read")
	assert.Contains(t, remedyOf(t, err), "repair it")

	p.GoWork = filepath.Join(dir, "absent/go.work")
	_, _, err = writeWorkspace(p, "/c")
	require.ErrorContains(t, err, "cannot be written")
	assert.Contains(t, remedyOf(t, err), "writable")
}

func TestFindProject(t *testing.T) {
	dir := newModule(t, plainModule)
	sub := filepath.Join(dir, "sub")
	require.NoError(t, os.Mkdir(sub, 0o755))
	p := find(t, sub)
	assert.Equal(t, dir, p.Dir)
	assert.Equal(t, "example.com/user", p.Module)
	assert.Equal(t, "1.25.0", p.ModuleGo)
	assert.False(t, p.Checkout())
	assert.True(t, find(t, newModule(t, "module "+Kelvin+"\n\ngo 1.25.0\n")).Checkout())
}

func TestFindProjectRefuses(t *testing.T) {
	m := machine(t)
	try := func(dir string) error {
		_, err := FindProject(context.Background(), m.System, dir)
		require.Error(t, err)
		return err
	}
	empty := t.TempDir()
	err := try(empty)
	assert.ErrorContains(t, err, "is not in a Go module")
	assert.Contains(t, remedyOf(t, err), "go mod init")
	assert.ErrorContains(t, try(filepath.Join(empty, "absent")), "is not a folder")

	dir := newModule(t, plainModule)
	for flags, message := range map[string]string{
		"-mod=mod": "GOFLAGS has -mod=mod", "-mod=vendor": "GOFLAGS has -mod=vendor",
		"-modfile=x.mod": "GOFLAGS has -modfile=x.mod",
	} {
		t.Setenv("GOFLAGS", flags)
		assert.ErrorContains(t, try(dir), message)
	}
	t.Setenv("GOFLAGS", "-mod=readonly")
	_, err = FindProject(context.Background(), m.System, dir)
	assert.NoError(t, err)

	t.Setenv("GOWORK", "off")
	err = try(dir)
	assert.ErrorContains(t, err, "GOWORK=off")
	assert.Contains(t, remedyOf(t, err), "unset GOWORK")

	m.Run = func(context.Context, Command) (string, error) {
		return "", fmt.Errorf("no go: %w", exec.ErrNotFound)
	}
	assert.ErrorContains(t, try(dir), "the command go is not on the PATH")

	m.GOOS = "windows"
	assert.ErrorContains(t, try(dir), "does not know windows")
}

func TestRequiresKelvin(t *testing.T) {
	m := machine(t)
	required, err := requiresKelvin(context.Background(), m.System, find(t, newModule(t, plainModule)))
	require.NoError(t, err)
	assert.False(t, required)

	with := newModule(t, plainModule+"\nrequire "+Kelvin+" v0.0.0\n\nreplace "+Kelvin+" => ./kelvin\n")
	write(t, filepath.Join(with, "kelvin/go.mod"), "module "+Kelvin+"\n\ngo 1.25.0\n")
	required, err = requiresKelvin(context.Background(), m.System, find(t, with))
	require.NoError(t, err)
	assert.True(t, required)

	p := find(t, with)
	m.Run = func(context.Context, Command) (string, error) { return "", errors.New("go: updates to go.mod needed") }
	_, err = requiresKelvin(context.Background(), m.System, p)
	require.ErrorContains(t, err, "Go cannot read the modules")
	assert.ErrorContains(t, err, "updates to go.mod needed")
}
