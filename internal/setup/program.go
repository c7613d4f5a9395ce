package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// fitProgram is the package of the program that needs libtorch, and its name.
const fitProgram = "kelvin-fit"

// programs is the folder of the cache that has programs which were built, and latest the file that names the last one.
const programs, latest = "programs", "latest"

// FitProgram is the program that fits regressions, for the libtorch and the version of Kelvin of the module in dir. It
// is built on the first call. A folder of no such module has the one that was built last.
func FitProgram(ctx context.Context, sys *System, dir string, report Reporter) (string, error) {
	report = reporterOrSilent(report)
	cache, err := OpenCache(sys, "")
	if err != nil {
		return "", err
	}
	path, project, err := findProgram(ctx, sys, dir, cache)
	if err != nil {
		last, e := os.ReadFile(filepath.Join(cache.Dir, programs, latest))
		if e == nil && exists(string(last)) {
			return string(last), nil
		}
		return "", err
	}
	if project == nil {
		return path, nil
	}
	return path, cache.program(ctx, sys, project, path, report)
}

// findProgram is where the program of a module is, or is to be built: then with the project.
func findProgram(ctx context.Context, sys *System, dir string, cache *Cache) (string, *Project, error) {
	project, err := FindProject(ctx, sys, dir)
	if err != nil {
		problem := err.Error()
		if e := (*Error)(nil); errors.As(err, &e) {
			problem = e.Problem
		}
		return "", nil, fail(nil, "run it first in the folder of a module where `"+SetupCommand+"` (kelvin setup) has run; "+
			"from then on it runs anywhere", "this needs libtorch, and %s", problem)
	}
	adapted, err := InUse(project)
	if err != nil {
		return "", nil, err
	}
	out, err := sys.Run(ctx, Command{Name: "go", Args: []string{"list", "-m", "-f",
		"{{with .Replace}}{{else}}{{$.Version}}{{end}}\n{{.Dir}}", Kelvin}, Dir: project.Dir})
	if err != nil {
		return "", nil, fail(err, "run `go get "+Kelvin+"` in "+project.Dir, "this module does not require Kelvin")
	}
	version, source, _ := strings.Cut(strings.TrimRight(out, "\n"), "\n")
	path := filepath.Join(cache.Dir, programs, hash([]any{project.GoVersion, adapted.Dir, version, source}), fitProgram)
	if version != "" && exists(path) { // a released version does not change
		return path, nil, nil
	}
	return path, project, nil
}

// program builds a program where it is not there, or not of the sources that are there now.
func (c *Cache) program(ctx context.Context, sys *System, project *Project, path string, report Reporter) error {
	release, err := c.Lock(ctx, report)
	if err != nil {
		return err
	}
	defer release()
	scratch, err := c.scratch(filepath.Join(c.Dir, fitProgram))
	if err != nil {
		return err
	}
	defer func() { _ = removeAll(scratch) }()
	begin, fresh := time.Now(), !exists(path)
	made := path // Go leaves one that is up to date as it is
	if fresh {
		made = filepath.Join(scratch, fitProgram)
		report.Start("building the part of kelvin that needs libtorch (a minute, once)")
	}
	if _, err := sys.Run(ctx, Command{Name: "go", Args: []string{"build", "-o", made, Kelvin + "/cmd/" + fitProgram},
		Dir: project.Dir}); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return fail(err, "run `"+SetupCommand+"` in "+project.Dir, "the part of kelvin that needs libtorch does not build")
	}
	if !fresh {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return c.unwritable(err)
	}
	if err := os.Rename(made, path); err != nil {
		return c.unwritable(err)
	}
	if err := atomicfile.Write(filepath.Join(c.Dir, programs, latest), []byte(path), 0o644); err != nil {
		return c.unwritable(err)
	}
	report.Done(fmt.Sprintf("built %s", path), time.Since(begin))
	return nil
}
