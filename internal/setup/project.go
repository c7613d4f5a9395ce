package setup

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

// Kelvin is Kelvin's module path.
const Kelvin = "github.com/kelvin-ppl/kelvin"

// SetupCommand is the command by which a user runs set-up, in Kelvin's checkout and elsewhere.
const SetupCommand = "go run " + Kelvin + "/cmd/kelvin setup"

// Project is the module or workspace that is set up.
type Project struct {
	Dir       string // folder in which Go's commands run: the module's, else the workspace's
	GoMod     string // the module's go.mod; empty in a workspace's folder outside its modules
	GoWork    string // the go.work in force; empty without one
	Module    string // the module's path
	ModuleGo  string // the go line of go.mod; empty when it has none
	GoVersion string // Go's own version, such as go1.26.0
	CC, CXX   string // the compilers that Go is set to
}

// Checkout says whether the module is Kelvin's own.
func (p *Project) Checkout() bool { return p.Module == Kelvin }

// FindProject asks Go which module and workspace dir belongs to.
func FindProject(ctx context.Context, sys *System, dir string) (*Project, error) {
	if sys.GOOS != "linux" && sys.GOOS != "darwin" {
		return nil, fail(nil, "use Linux (or WSL) or macOS", "Kelvin's set-up does not know %s", sys.GOOS)
	}
	dir = cmp.Or(dir, ".")
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(abs); err != nil || !info.IsDir() {
		return nil, fail(err, "name the folder of a Go module", "%s is not a folder", abs)
	}
	out, err := sys.Run(ctx, Command{
		Name: "go", Dir: abs,
		Args: []string{"env", "-json", "GOMOD", "GOWORK", "GOVERSION", "GOFLAGS", "CC", "CXX"},
	})
	if isNotFound(err) {
		return nil, fail(nil, "install Go (https://go.dev/dl) and put it on the PATH", "the command go is not on the PATH")
	}
	if err != nil {
		return nil, fail(err, "look at what Go says", "Go's settings cannot be read in %s", abs)
	}
	var env map[string]string
	if err := json.Unmarshal([]byte(out), &env); err != nil {
		return nil, fmt.Errorf("what `go env -json` prints cannot be read: %w", err)
	}
	p := &Project{GoMod: env["GOMOD"], GoWork: env["GOWORK"], GoVersion: env["GOVERSION"], CC: env["CC"], CXX: env["CXX"]}
	if err := p.check(env["GOFLAGS"], abs); err != nil {
		return nil, err
	}
	return p, p.readModule()
}

// check refuses settings with which a go.work does not work.
func (p *Project) check(goflags, dir string) error {
	if p.GoMod == os.DevNull {
		p.GoMod = ""
	}
	if p.GoWork == "off" {
		return fail(nil, "unset GOWORK (`go env -u GOWORK` when `go env -w` has set it), then run set-up again",
			"workspaces are switched off (GOWORK=off), and Kelvin reaches its copy of gotch through go.work")
	}
	for _, flag := range strings.Fields(goflags) {
		name, value, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		if name == "modfile" || name == "mod" && value != "readonly" {
			return fail(nil, "take it out of GOFLAGS (`go env -u GOFLAGS` when `go env -w` has set it)",
				"GOFLAGS has %s, which Go does not allow together with go.work", flag)
		}
	}
	switch {
	case p.GoMod != "":
		p.Dir = filepath.Dir(p.GoMod)
	case p.GoWork != "" && exists(p.GoWork):
		p.Dir = filepath.Dir(p.GoWork)
	default:
		return fail(nil, "run `go mod init NAME` there, or run set-up in the folder of your module",
			"%s is not in a Go module", dir)
	}
	return nil
}

// readModule reads the module's path and its go line.
func (p *Project) readModule() error {
	if p.GoMod == "" {
		return nil
	}
	data, err := os.ReadFile(p.GoMod)
	if err != nil {
		return fail(err, "make it readable", "the module's go.mod")
	}
	f, err := modfile.ParseLax(p.GoMod, data, nil)
	if err != nil {
		return fail(err, "repair it", "the module's go.mod cannot be read")
	}
	if f.Module == nil {
		return fail(nil, "give it one: `go mod edit -module NAME`", "%s has no module line", p.GoMod)
	}
	p.Module = f.Module.Mod.Path
	if f.Go != nil {
		p.ModuleGo = f.Go.Version
	}
	return nil
}

// requiresKelvin says whether the packages of Kelvin can be built in the project.
func requiresKelvin(ctx context.Context, sys *System, p *Project) (bool, error) {
	if p.Checkout() {
		return true, nil
	}
	_, err := sys.Run(ctx, Command{Name: "go", Args: []string{"list", "-m", Kelvin}, Dir: p.Dir})
	switch {
	case err == nil:
		return true, nil
	case strings.Contains(err.Error(), "not a known dependency"):
		return false, nil
	}
	return false, fail(err, "look at what Go says: set-up itself is done but for the build",
		"Go cannot read the modules of %s", p.Dir)
}
