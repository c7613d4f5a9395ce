package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A long line is counted, and a file of the size of a built program is named.
func TestColumns(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		size int
		want string
	}{
		"fits":        {"a.go", maxColumns, ""},
		"long":        {"a.go", maxColumns + 1, "1 lines are longer"},
		"no text":     {"a.bin", maxColumns + 1, ""},
		"a program":   {"kelvin", maxBytes + 1, "is it a built program"},
		"largest":     {"a.bin", maxBytes, ""},
		"in testdata": {"testdata/a.bin", maxBytes + 1, ""},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, c.file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Repeat("x", c.size)), 0o644); err != nil {
			t.Fatal(err)
		}
		switch err := columns(dir); {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, and not %q", name, err, c.want)
		}
	}
}

// Files that git ignores, as reports of kelvin, are none of the repository.
func TestColumnsIgnored(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("git", "-C", dir, "init", "-q").CombinedOutput(); err != nil {
		t.Skipf("git: %v: %s", err, out)
	}
	long := []byte(strings.Repeat("x", maxColumns+1))
	for name, text := range map[string][]byte{".gitignore": []byte("/fit/\n"), "fit/a.md": long} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := columns(dir); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.md"), long, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := columns(dir); err == nil {
		t.Error("a new file is one of the repository")
	}
}
