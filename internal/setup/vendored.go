package setup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/internal/gotch"
)

// vendor copies the adapted gotch into a folder of the module, and makes go.mod lead to it: then builds need neither a
// go.work nor the cache, on any machine that has the same libtorch.
func vendor(p *Project, from, to string) (path string, err error) {
	const remedy = "name a folder of the module that is not there yet, as -vendor gotch"
	if p.GoMod == "" {
		return "", fail(nil, "run set-up in the folder of a module", "-vendor: %s is no module", p.Dir)
	}
	path = filepath.Join(p.Dir, filepath.Clean(to))
	if filepath.IsAbs(to) || !filepath.IsLocal(to) || path == p.Dir {
		return "", fail(nil, remedy, "-vendor: %q is no folder below %s", to, p.Dir)
	}
	if p.GoWork != "" && exists(p.GoWork) {
		if dir, err := readReplacement(p.GoWork); err == nil && dir != "" {
			return "", fail(nil, "take its replace out, or remove the file where nothing else is in it",
				"-vendor: %s leads to %s, which would go before go.mod", p.GoWork, dir)
		}
	}
	fresh := path + ".new"
	if exists(path) {
		if _, err := readStamp(path); err != nil {
			return "", fail(nil, remedy, "-vendor: %s is there, and set-up has not made it", path)
		}
	}
	if err := errors.Join(os.RemoveAll(fresh), os.MkdirAll(filepath.Dir(path), 0o755)); err != nil {
		return "", err
	}
	if err := atomicfile.Folder(fresh, func(dir string) error { return os.CopyFS(dir, os.DirFS(from)) }); err != nil {
		return "", fail(err, "make the folder writable", "-vendor: %s cannot be made", path)
	}
	if err := errors.Join(os.RemoveAll(path), os.Rename(fresh, path)); err != nil {
		return "", err
	}
	return path, replaceInModule(p.GoMod, "./"+filepath.ToSlash(filepath.Clean(to)))
}

// replaceInModule makes a go.mod lead to a folder for gotch.
func replaceInModule(goMod, dir string) error {
	old, err := os.ReadFile(goMod)
	if err != nil {
		return err
	}
	f, err := modfile.Parse(goMod, old, nil)
	if err != nil {
		return fail(err, "repair it", "the module's go.mod cannot be read")
	}
	if err := f.AddReplace(gotch.Module, gotch.Version, dir, ""); err != nil {
		return err
	}
	text, err := f.Format()
	if err != nil || string(text) == string(old) {
		return err
	}
	return writeFile(goMod, text, 0o644)
}

// moduleReplacement is where a go.mod leads for gotch, "" for nowhere.
func moduleReplacement(goMod string) string {
	data, err := os.ReadFile(goMod)
	if err != nil {
		return ""
	}
	f, err := modfile.Parse(goMod, data, nil)
	if err != nil {
		return ""
	}
	for _, line := range f.Replace {
		if line.Old.Path == gotch.Module && line.New.Version == "" && strings.HasPrefix(line.New.Path, ".") {
			return filepath.Join(filepath.Dir(goMod), line.New.Path)
		}
	}
	return ""
}
