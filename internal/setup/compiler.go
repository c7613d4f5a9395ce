package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// Compiler is the C++ compiler that builds gotch's native part.
type Compiler struct {
	CXX     string   `json:"cxx"`     // the command
	Version string   `json:"version"` // the first line of --version
	Env     []string `json:"env"`     // what Go must be told to use it, as NAME=value
}

// errNoCompiler says that no C++ compiler is on the PATH.
var errNoCompiler = errors.New("no C++ compiler (g++, c++, clang++) is on the PATH")

// compiler returns a C++ compiler that works, and installs one if need be and allowed. It also checks that Go uses cgo.
func (j *job) compiler(ctx context.Context) (Compiler, error) {
	c, err := findCompiler(ctx, j.sys, j.project)
	if errors.Is(err, errNoCompiler) {
		if err = j.installCompiler(ctx, err); err == nil {
			c, err = findCompiler(ctx, j.sys, j.project)
		}
	}
	if err != nil {
		return Compiler{}, err
	}
	if len(c.Env) > 0 {
		j.report.Warn(fmt.Sprintf("Go is set to another compiler than the one that works here: `go env -w %s`",
			strings.Join(c.Env, " ")))
	}
	out, err := j.sys.Run(ctx, Command{Name: "go", Args: []string{"env", "CGO_ENABLED"}, Dir: j.project.Dir, Env: c.Env})
	if err != nil {
		return Compiler{}, fail(err, "look at what it says", "Go's settings cannot be read")
	}
	if strings.TrimSpace(out) != "1" {
		return Compiler{}, fail(nil,
			"unset CGO_ENABLED, or set it to 1 (`go env -u CGO_ENABLED` when `go env -w` has set it)",
			"cgo is switched off (CGO_ENABLED=%s), and libtorch is reached through it", strings.TrimSpace(out))
	}
	return c, nil
}

// installCompiler installs a compiler through the package manager. The error names the command to run by hand.
func (j *job) installCompiler(ctx context.Context, missing error) error {
	byHand := "install one: `apt-get install g++` on Debian and Ubuntu, `dnf install gcc-c++` on Fedora, " +
		"`pacman -S gcc` on Arch"
	if j.sys.GOOS == "darwin" {
		return fail(missing, "install Apple's: `xcode-select --install`", "Kelvin needs a C++ compiler")
	}
	m, err := j.pkgs.manager()
	if err != nil || m.compiler == nil {
		return fail(missing, byHand, "Kelvin needs a C++ compiler")
	}
	byHand = fmt.Sprintf("install one: `%s`", j.pkgs.command(m, m.compiler))
	if j.opts.NoInstall {
		return fail(missing, byHand+", or run set-up without --no-install", "Kelvin needs a C++ compiler")
	}
	prefix, err := j.pkgs.rights(ctx, m, true)
	if err == nil {
		j.report.Note(fmt.Sprintf("%v: set-up installs %s", missing, strings.Join(m.compiler, " ")))
		err = j.pkgs.install(ctx, m, prefix, m.compiler)
	}
	if err != nil {
		return fail(err, byHand, "Kelvin needs a C++ compiler, and it cannot be installed")
	}
	return nil
}

// findCompiler returns the first compiler that is there and works: $CXX, what Go is set to, the usual names.
func findCompiler(ctx context.Context, sys *System, project *Project) (Compiler, error) {
	type pair struct{ cxx, cc string }
	pairs := []pair{{project.CXX, project.CC}, {"g++", "gcc"}, {"c++", "cc"}, {"clang++", "clang"}}
	if cxx := sys.Getenv("CXX"); cxx != "" {
		if !sys.has(program(cxx)) {
			return Compiler{}, fail(nil, "set CXX to a compiler that is on the PATH, or unset it",
				"there is no compiler $CXX = %s", cxx)
		}
		pairs = []pair{{cxx, project.CC}}
	}
	broken := error(errNoCompiler)
	for _, p := range pairs {
		if p.cxx == "" || p.cc == "" || !sys.has(program(p.cxx)) || !sys.has(program(p.cc)) {
			continue
		}
		c := Compiler{CXX: p.cxx}
		if p.cxx != project.CXX {
			c.Env = append(c.Env, "CXX="+p.cxx)
		}
		if p.cc != project.CC {
			c.Env = append(c.Env, "CC="+p.cc)
		}
		if err := tryCompiler(ctx, sys, p.cxx); err != nil {
			if ctx.Err() != nil {
				return Compiler{}, ctx.Err()
			}
			if broken == error(errNoCompiler) {
				broken = fail(err,
					"repair it (on Debian and Ubuntu: `apt-get install --reinstall g++ libc6-dev`), or name another with $CXX",
					"the C++ compiler %s cannot build a C++17 program", p.cxx)
			}
			continue
		}
		c.Version = p.cxx
		if out, err := sys.Run(ctx, cxxCommand(p.cxx, "--version")); err == nil {
			c.Version, _, _ = strings.Cut(strings.TrimSpace(out), "\n")
		}
		return c, nil
	}
	return Compiler{}, broken
}

// checkProgram is what a compiler must be able to build.
const checkProgram = `#include <optional>
#include <string>
int main() { std::optional<std::string> s = "kelvin"; return s->empty() ? 1 : 0; }
`

// tryCompiler builds a C++17 program.
func tryCompiler(ctx context.Context, sys *System, cxx string) error {
	dir, err := os.MkdirTemp("", "kelvin-cxx-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	source := filepath.Join(dir, "check.cc")
	if err := atomicfile.Write(source, []byte(checkProgram), 0o644); err != nil {
		return err
	}
	_, err = sys.Run(ctx, cxxCommand(cxx, "-std=c++17", source, "-o", filepath.Join(dir, "check")))
	return err
}

// program returns the first word of a command such as "ccache g++".
func program(command string) string {
	words := strings.Fields(command)
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

// cxxCommand runs a compiler whose command may have arguments of its own.
func cxxCommand(cxx string, args ...string) Command {
	words := slices.Concat(strings.Fields(cxx), args)
	return Command{Name: words[0], Args: words[1:]}
}
