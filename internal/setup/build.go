package setup

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/kelvin-ppl/kelvin/internal/gotch"
)

// BuildOrder says what set-up compiles, so that the user's first build is quick.
type BuildOrder struct {
	Project  *Project
	Copy     string // the adapted gotch
	Kelvin   bool   // the project can build Kelvin's packages
	Compiler Compiler
	Record   string    // folder in which finished builds are recorded
	Log      io.Writer // receives what the compiler prints; nil means nobody
	Report   Reporter
}

// what names what is compiled, for a report.
func (o BuildOrder) what() string {
	if o.Kelvin {
		return Kelvin + "/torch"
	}
	return gotch.Module + "/ts"
}

// dir returns the folder to build in, and the environment. A module that does not require Kelvin does not know gotch:
// then the copy is built by itself.
func (o BuildOrder) dir() (string, []string) {
	if o.Kelvin {
		return o.Project.Dir, o.Compiler.Env
	}
	return o.Copy, append([]string{"GOWORK=off"}, o.Compiler.Env...)
}

// record returns the file that says this was built.
func (o BuildOrder) record() string {
	return filepath.Join(o.Record, hash([]any{o.Project.GoVersion, o.Compiler, o.Copy, o.Project.Dir, o.Kelvin})+".json")
}

// buildOnce compiles what the order names unless an earlier run did, with the same Go and compiler, and Go's build
// cache still has it. It returns false when there was nothing to do.
func buildOnce(ctx context.Context, sys *System, o BuildOrder) (bool, error) {
	dir, env := o.dir()
	if exists(o.record()) {
		out, err := sys.Run(ctx, Command{
			Name: "go", Args: []string{"list", "-f", "{{.Stale}}", gotch.Module + "/libtch"}, Dir: dir, Env: env,
		})
		if err == nil && strings.TrimSpace(out) == "false" {
			return false, nil
		}
	}
	o.Report.Start("compiling gotch for this libtorch (some minutes, the first time)")
	if _, err := sys.Run(ctx, goBuild(o, dir, env, o.what())); err != nil {
		return false, buildError(ctx, err, o)
	}
	o.Report.Start("linking and running a program with this libtorch")
	probe := Command{Name: "go", Args: []string{"run", probeProgram}, Dir: dir, Env: env}
	if _, err := sys.Run(ctx, probe); err != nil {
		return false, probeError(ctx, err, o)
	}
	if o.Project.Checkout() {
		if err := buildCheckout(ctx, sys, o, dir, env); err != nil {
			if ctx.Err() != nil {
				return false, err
			}
			o.Report.Warn(fmt.Sprintf("not all packages of this checkout build: %v", err))
		}
	}
	return true, o.writeRecord()
}

// probeProgram is the program of the adapted gotch that differentiates a sum.
const probeProgram = gotch.Module + "/probe"

// probeError explains that what was compiled does not link or run.
func probeError(ctx context.Context, err error, o BuildOrder) error {
	if ctx.Err() != nil {
		return err
	}
	remedy := "check that libtorch's libraries are complete and belong to its headers, or name another libtorch with " +
		"--libtorch DIR"
	if missing := missingLibrary.FindStringSubmatch(err.Error()); missing != nil {
		remedy = "install the package that has " + missing[1] + " (a PyTorch wheel for CUDA takes it from a package of " +
			"NVIDIA's beside it: `pip install torch` brings all), or name another libtorch with --libtorch DIR"
	}
	return fail(err, remedy, "a program with this libtorch does not link or does not run")
}

// missingLibrary finds the first library that the linker or the loader asks for in vain.
var missingLibrary = regexp.MustCompile(`(lib[\w+-]+\.so[.\d]*)` +
	`(?:: cannot open shared object|, needed by \S+, not found)`)

// buildCheckout compiles Kelvin's other packages, without the programs, whose linking nobody would profit from,
// and without the folders that have tests alone, which Go does not build.
func buildCheckout(ctx context.Context, sys *System, o BuildOrder, dir string, env []string) error {
	o.Report.Start("compiling Kelvin's other packages")
	out, err := sys.Run(ctx, Command{
		Name: "go", Args: []string{"list", "-f", `{{if and .GoFiles (ne .Name "main")}}{{.ImportPath}}{{end}}`,
			"./..."}, Dir: dir, Env: env,
	})
	if err != nil {
		return err
	}
	_, err = sys.Run(ctx, goBuild(o, dir, env, strings.Fields(out)...))
	return err
}

// goBuild returns a build of packages.
func goBuild(o BuildOrder, dir string, env []string, packages ...string) Command {
	args := []string{"build"}
	if o.Log != nil {
		args = append(args, "-v")
	}
	return Command{Name: "go", Args: append(args, packages...), Dir: dir, Env: env, Log: o.Log}
}

// buildError explains a failed build.
func buildError(ctx context.Context, err error, o BuildOrder) error {
	if ctx.Err() != nil {
		return err
	}
	remedy := "read the compiler's message; `" + SetupCommand + " -v` shows all of it"
	if text := err.Error(); strings.Contains(text, "Killed") || strings.Contains(text,
		"signal: killed") || strings.Contains(text, "cc1plus: out of memory") {
		remedy = "the compiler ran out of memory: free some (it needs about 3 GB), then run set-up again"
	}
	return fail(err, remedy, "%s does not build", o.what())
}

// writeRecord notes that the order is done.
func (o BuildOrder) writeRecord() error {
	data, err := json.MarshalIndent(struct {
		What     string `json:"what"`
		Project  string `json:"project"`
		Copy     string `json:"copy"`
		Go       string `json:"go"`
		Compiler string `json:"compiler"`
	}{o.what(), o.Project.Dir, o.Copy, o.Project.GoVersion, o.Compiler.Version}, "", "  ")
	if err != nil {
		return err
	}
	cache := &Cache{Dir: filepath.Dir(o.Record)}
	if err := os.MkdirAll(o.Record, 0o755); err != nil {
		return cache.unwritable(err)
	}
	if err := writeFile(o.record(), append(data, '\n'), 0o644); err != nil {
		return cache.unwritable(err)
	}
	return nil
}
