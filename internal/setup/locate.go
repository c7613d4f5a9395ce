package setup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Request says which libtorch to look for.
type Request struct {
	Dir   string // what --libtorch says; empty when it was not given
	Cache *Cache // where an earlier download may be
	CUDA  bool   // take none without CUDA
}

// NotFound is the error of Locate when no place has a libtorch that Kelvin can use.
type NotFound struct {
	Looked []*Unusable
	CUDA   bool
}

// Error says what was found that does not do, if anything was.
func (e *NotFound) Error() string {
	var b strings.Builder
	b.WriteString("no libtorch was found")
	if e.CUDA {
		b.WriteString(" that has CUDA")
	}
	for _, u := range e.Looked {
		if !u.Absent {
			fmt.Fprintf(&b, "\n  %s: %s", u.Dir, u.Reason)
		}
	}
	return b.String()
}

// Locate finds a libtorch: the one that the user names, then $LIBTORCH, a Python torch package, the system's packages,
// an earlier download. A folder that the user or $LIBTORCH names and that does not do is an error; the others are
// passed over. If no place has a libtorch, the error is a *NotFound.
func Locate(ctx context.Context, sys *System, want Request) (*LibTorch, error) {
	if want.Dir != "" {
		return locateNamed(ctx, sys, want, want.Dir, FromFlag, "--libtorch",
			"give --libtorch the folder that has libtorch's include and lib, or leave it out")
	}
	if dir := sys.Getenv("LIBTORCH"); dir != "" {
		return locateNamed(ctx, sys, want, dir, FromEnvironment, "$LIBTORCH",
			"set LIBTORCH to the folder that has libtorch's include and lib, or unset it")
	}
	missing := &NotFound{CUDA: want.CUDA}
	for _, find := range []func() []place{
		func() []place { return pythonPlaces(ctx, sys) },
		func() []place { return systemPlaces(sys) },
		func() []place { return downloadPlaces(want.Cache) },
	} {
		for _, p := range find() {
			l, err := use(ctx, sys, p, want)
			if err == nil {
				return l, nil
			}
			var u *Unusable
			if errors.As(err, &u) {
				missing.Looked = append(missing.Looked, u)
			}
		}
	}
	return nil, missing
}

// locateNamed checks the folder that the user names by a flag or by the environment.
func locateNamed(ctx context.Context, sys *System, want Request, dir string, source Source, name,
	remedy string) (*LibTorch, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fail(err, remedy, "%s %s", name, dir)
	}
	l, err := use(ctx, sys, place{abs, source}, want)
	if err != nil {
		return nil, fail(err, remedy, "%s cannot be used", name)
	}
	return l, nil
}

// use returns the libtorch in a place if it is what is wanted. The error is an *Unusable.
func use(ctx context.Context, sys *System, p place, want Request) (*LibTorch, error) {
	l, err := inspect(sys, p.dir, p.source)
	if err != nil {
		return nil, err
	}
	usePackageVersion(ctx, sys, l)
	if want.CUDA && !l.CUDA {
		return nil, &Unusable{Dir: l.Dir, Source: l.Source,
			Reason: fmt.Sprintf("it is libtorch %s for the CPU only, and --cuda was given", l.Version)}
	}
	return l, nil
}

// systemPlaces returns where the packages of Debian, Ubuntu, Fedora, Arch and Homebrew put libtorch.
func systemPlaces(sys *System) []place {
	var dirs []string
	if sys.GOOS != "darwin" {
		dirs = append(dirs, sys.path("usr"), sys.path("usr/local"))
	}
	for _, brew := range []string{"opt/homebrew/opt", "usr/local/opt", "home/linuxbrew/.linuxbrew/opt"} {
		for _, formula := range []string{"pytorch", "libtorch"} {
			dir := sys.path(brew, formula)
			inside, _ := filepath.Glob(filepath.Join(dir, "libexec/lib/python*/site-packages/torch"))
			dirs = append(append(dirs, dir), inside...)
		}
	}
	var places []place
	for _, dir := range dirs {
		if exists(dir) {
			places = append(places, place{dir, FromSystem})
		}
	}
	return places
}

// usePackageVersion takes the version from Debian's package: its header has the one of the first release of a series.
func usePackageVersion(ctx context.Context, sys *System, l *LibTorch) {
	if l.Dir != sys.path("usr") || !sys.has("dpkg-query") {
		return
	}
	if out, err := sys.Run(ctx, Command{Name: "dpkg-query", Args: []string{"-W", "-f", "${Version}",
		"libtorch-dev"}}); err == nil {
		useVersion(l, out)
	}
}

// downloadPlaces returns the archives that set-up has unpacked, newest version first and CPU before CUDA.
func downloadPlaces(c *Cache) []place {
	if c == nil {
		return nil
	}
	dirs, _ := filepath.Glob(filepath.Join(c.Dir, "libtorch", "*"))
	slices.SortFunc(dirs, func(a, b string) int {
		_, x, _ := parseVersion(filepath.Base(a))
		_, y, _ := parseVersion(filepath.Base(b))
		cuda := func(dir string) int { return strings.Count(filepath.Base(dir), "-cu") }
		return cmp.Or(cmp.Compare(y.major, x.major), cmp.Compare(y.minor, x.minor), cmp.Compare(cuda(a), cuda(b)),
			cmp.Compare(b, a))
	})
	var places []place
	for _, dir := range dirs {
		if strings.Contains(dir, temporary) {
			continue
		}
		if wheel := filepath.Join(dir, "torch"); exists(wheel) {
			dir = wheel
		}
		places = append(places, place{dir, FromDownload})
	}
	return places
}

// torchQuery makes Python tell where its torch package is. It does not import the package, which takes seconds. A
// folder that merely has the name torch has no origin.
const torchQuery = `import importlib.util, json, sys

try:
    spec = importlib.util.find_spec("torch")
except Exception:
    spec = None
found = spec is not None and spec.origin is not None
print(json.dumps({
    "dirs": list(spec.submodule_search_locations or []) if found else [],
    "prefix": sys.prefix,
}))`

// place is a folder in which libtorch may be.
type place struct {
	dir    string
	source Source
}

// pythonPlaces returns the folders in which the Pythons on the PATH keep their torch package. Some distributions
// (conda) put the headers and libraries below the prefix of their Python instead.
func pythonPlaces(ctx context.Context, sys *System) []place {
	var places []place
	for _, name := range []string{"python3", "python"} {
		if !sys.has(name) {
			continue
		}
		out, err := sys.Run(ctx, Command{Name: name, Args: []string{"-c", torchQuery}, Dir: os.TempDir(),
			Env: []string{"PYTHONSAFEPATH=1"}})
		if err != nil {
			continue
		}
		var answer struct {
			Dirs   []string `json:"dirs"`
			Prefix string   `json:"prefix"`
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if json.Unmarshal([]byte(lines[len(lines)-1]), &answer) != nil || len(answer.Dirs) == 0 {
			continue
		}
		for _, dir := range append(answer.Dirs, answer.Prefix) {
			p := place{dir, FromPython}
			if dir != "" && dir != sys.path("usr") && !slices.Contains(places, p) {
				places = append(places, p)
			}
		}
	}
	return places
}
