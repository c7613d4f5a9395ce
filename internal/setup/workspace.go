package setup

import (
	"bytes"
	"errors"
	"fmt"
	"go/version"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/kelvin-ppl/kelvin/internal/gotch"
)

// MinGo is the go line of Kelvin's go.mod: a workspace that uses Kelvin needs at least this.
const MinGo = "1.25.0"

// workHeader begins a go.work that set-up makes.
const workHeader = "" +
	"// Made by `kelvin setup`. It makes builds use the gotch that is adapted to this machine's libtorch.\n" +
	"// The path of the replace is this machine's own: keep this file out of version control.\n"

// writeWorkspace makes the project's go.work lead to the copy of gotch: a new file if the user has none, otherwise the
// user's own with the replace, and the module in it. It returns the file and whether it was changed.
func writeWorkspace(p *Project, dir string) (path string, changed bool, err error) {
	path = p.GoWork
	if path == "" {
		path = filepath.Join(p.Dir, "go.work")
	}
	// A go.work may be a link; what it leads to is the file to write.
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	mode := fs.FileMode(0o644)
	old, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		old = nil
	case err != nil:
		return path, false, fail(err, "make it readable", "the workspace file %s", path)
	default:
		if info, err := os.Stat(path); err == nil {
			mode = info.Mode().Perm()
		}
	}
	data, err := editWorkspace(path, old, p, dir)
	if err != nil {
		return path, false, err
	}
	if old != nil && bytes.Equal(data, old) {
		return path, false, nil
	}
	if err := writeFile(path, data, mode); err != nil {
		return path, false, fail(err, "make its folder writable, then run set-up again",
			"the workspace file %s cannot be written", path)
	}
	return path, true, nil
}

// editWorkspace returns the content of a go.work that leads to the copy in dir. What else is in it stays as it is, and
// a file that needs no change is returned unchanged.
func editWorkspace(path string, old []byte, p *Project, dir string) ([]byte, error) {
	fresh := len(bytes.TrimSpace(old)) == 0
	text := old
	if fresh {
		text = []byte(workHeader + "go " + newestGo(MinGo, p.ModuleGo) + "\n")
	}
	f, err := modfile.ParseWork(path, text, nil)
	if err != nil {
		return nil, fail(err, "repair it, or remove it and run set-up again", "the workspace file %s cannot be read", path)
	}
	changed := fresh
	if p.GoMod != "" && !uses(f, path, p.Dir) {
		if err := f.AddUse(usePath(path, p.Dir), ""); err != nil {
			return nil, err
		}
		changed = true
	}
	if current := goLine(f); p.GoMod != "" && newestGo(current, p.ModuleGo) != current {
		if err := f.AddGoStmt(p.ModuleGo); err != nil {
			return nil, fmt.Errorf("%s: the go line: %w", path, err)
		}
		changed = true
	}
	if replacement(f) != dir {
		if err := f.AddReplace(gotch.Module, gotch.Version, dir, ""); err != nil {
			return nil, err
		}
		changed = true
	}
	if !changed {
		return old, nil
	}
	f.Cleanup()
	return modfile.Format(f.Syntax), nil
}

// replacement returns where a go.work leads for the gotch that Kelvin uses; empty when nowhere.
func replacement(f *modfile.WorkFile) string {
	for _, r := range f.Replace {
		if r.Old.Path == gotch.Module && r.Old.Version == gotch.Version && r.New.Version == "" {
			return r.New.Path
		}
	}
	return ""
}

// readReplacement returns where the go.work at path leads for gotch.
func readReplacement(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	f, err := modfile.ParseWork(path, data, nil)
	if err != nil {
		return "", err
	}
	dir := replacement(f)
	if dir != "" && !filepath.IsAbs(dir) {
		dir = filepath.Join(filepath.Dir(path), dir)
	}
	return dir, nil
}

// uses says whether a go.work at path has the module in dir.
func uses(f *modfile.WorkFile, path, dir string) bool {
	for _, u := range f.Use {
		used := filepath.FromSlash(u.Path)
		if !filepath.IsAbs(used) {
			used = filepath.Join(filepath.Dir(path), used)
		}
		if sameFile(used, dir) {
			return true
		}
	}
	return false
}

// usePath is how a go.work at path names the folder of a module: relative when it is below, as `go work use` writes it.
func usePath(path, dir string) string {
	base := filepath.Dir(path)
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	rel, err := filepath.Rel(base, dir)
	switch {
	case err != nil || strings.HasPrefix(rel, ".."):
		return filepath.ToSlash(dir)
	case rel == ".":
		return "."
	}
	return "./" + filepath.ToSlash(rel)
}

// goLine returns the Go version that a go.work asks for.
func goLine(f *modfile.WorkFile) string {
	if f.Go == nil {
		return ""
	}
	return f.Go.Version
}

// newestGo returns the later of two go lines, either of which may be empty.
func newestGo(a, b string) string {
	if version.Compare("go"+a, "go"+b) >= 0 {
		return a
	}
	return b
}
