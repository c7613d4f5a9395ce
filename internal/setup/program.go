package setup

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// fitProgram is the name of the program that needs libtorch, and of its package. The folder of programs in the cache
// has those that were built, and a file that names the last one.
const fitProgram, programs, latest = "kelvin-fit", "programs", "latest"

// FitProgram is the program that fits regressions, for the libtorch and the version of Kelvin of the module in dir. It
// is built on the first call. A folder of no such module has the one that was built last.
func FitProgram(ctx context.Context, sys *System, dir string, report Reporter) (string, error) {
	cache, err := OpenCache(sys, "")
	if err != nil {
		return "", err
	}
	last := filepath.Join(cache.Dir, programs, latest)
	path, project, err := findProgram(ctx, sys, dir, cache)
	if err != nil {
		if old, e := os.ReadFile(last); e == nil && exists(string(old)) {
			return string(old), nil
		}
		return "", fail(err, "run `"+SetupCommand+"` (kelvin setup) in the folder of a module that requires Kelvin; "+
			"from then on this runs anywhere", "this needs libtorch")
	}
	if project == nil {
		return path, nil
	}
	release, err := cache.Lock(ctx, report)
	if err != nil {
		return "", err
	}
	defer release()
	made, fresh := path, !exists(path) // Go leaves a program that is up to date as it is
	if fresh {
		made += temporary
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", cache.unwritable(err)
		}
		report.Start("building the part of kelvin that needs libtorch (a minute, once)")
	}
	if _, err := sys.Run(ctx, Command{Name: "go", Args: []string{"build", "-o", made, Kelvin + "/cmd/" + fitProgram},
		Dir: project.Dir}); err != nil {
		return "", fail(err, "run `"+SetupCommand+"` in "+project.Dir, "%s does not build", fitProgram)
	}
	if fresh {
		if err = os.Rename(made, path); err == nil {
			err = atomicfile.Write(last, []byte(path), 0o644)
		}
		if err != nil {
			return "", cache.unwritable(err)
		}
	}
	return path, nil
}

// findProgram is where the program of a module is; with the project where it may have to be built.
func findProgram(ctx context.Context, sys *System, dir string, cache *Cache) (string, *Project, error) {
	project, err := FindProject(ctx, sys, dir)
	if err != nil {
		return "", nil, err
	}
	adapted, err := InUse(project)
	if err != nil {
		return "", nil, err
	}
	out, err := sys.Run(ctx, Command{Name: "go", Args: []string{"list", "-m", "-f",
		"{{with .Replace}}{{else}}{{$.Version}}{{end}}\n{{.Dir}}", Kelvin}, Dir: project.Dir})
	if err != nil {
		return "", nil, err
	}
	version, source, _ := strings.Cut(strings.TrimSpace(out), "\n")
	path := filepath.Join(cache.Dir, programs, hash([]any{project.GoVersion, adapted.Dir, version, source}), fitProgram)
	if source != "" && exists(path) { // a released version does not change; a checkout has none
		return path, nil, nil
	}
	return path, project, nil
}
