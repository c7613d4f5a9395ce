package main

import (
	"os"
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
