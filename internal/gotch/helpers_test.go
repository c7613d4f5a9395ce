package gotch

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// published is the folder of the module as it is published, in Go's module cache.
var published = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "kelvin-gotch")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module source\n\ngo 1.24\n"), 0o644); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "mod", "download", "-json", Module+"@"+Version)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	out, err := cmd.Output()
	if err != nil {
		return "", err
	}
	var got struct{ Dir string }
	return got.Dir, json.Unmarshal(out, &got)
})

// source skips the test where the module cannot be had.
func source(t testing.TB) string {
	t.Helper()
	dir, err := published()
	if err != nil || dir == "" {
		t.Skipf("the source of %s %s is neither in the module cache nor to be downloaded: %v", Module, Version, err)
	}
	return dir
}

// write makes files with their folders under dir.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
}

// read is the text of a file.
func read(t testing.TB, elem ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elem...))
	require.NoError(t, err)
	return string(text)
}

// writable copies a folder without its tests, so that its files can be changed.
func writable(t testing.TB, src string) string {
	t.Helper()
	dst := t.TempDir()
	require.NoError(t, copyModule(src, dst))
	return dst
}
