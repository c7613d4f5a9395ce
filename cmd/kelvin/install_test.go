package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
)

// `go install .../cmd/kelvin@version` refuses a module with replace or exclude directives, has no workspace, and finds
// no libtorch: the command builds so, and needs no cgo of gotch.
func TestInstallable(t *testing.T) {
	const path = "../../go.mod"
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	f, err := modfile.Parse(path, text, nil)
	require.NoError(t, err)
	require.Empty(t, f.Replace)
	require.Empty(t, f.Exclude)

	goCommand := func(args ...string) string {
		c := exec.Command("go", args...)
		c.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly", "CGO_ENABLED=0")
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	require.NotContains(t, goCommand("list", "-deps", "."), "github.com/sugarme/gotch")
	binary := filepath.Join(t.TempDir(), "kelvin")
	goCommand("build", "-o", binary, ".")
	out, err := exec.Command(binary, "version").CombinedOutput()
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(out), "kelvin   "), "%s", out)
}
