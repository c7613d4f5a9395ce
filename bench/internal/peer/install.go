// Package peer runs other libraries beside Kelvin: their Python environments, the programs that serve them, and the
// posteriors as Stan programs.
package peer

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// Programs are the peers' sides and the packages that they need, in py, and Stan's programs, in stan.
//
//go:embed py stan
var Programs embed.FS

// Group is peers that share a virtual environment and a process: NAME.txt has its packages, NAME_peer.py its program.
type Group struct {
	Name  string
	Peers []string
	needs string // a command besides Python
}

// Groups are all there are; that of Stan is the first.
var Groups = []Group{
	{"stan", []string{"Stan", "PyStan", "nutpie"}, "g++"},
	{"jax", []string{"NumPyro", "BlackJAX"}, ""},
	{"torch", []string{"Pyro", "posteriors"}, ""},
}

// Environments are the virtual environments and what is compiled with them, in one folder:
//
//	NAME/  NAME.installed    an environment, and the packages that it was made for
//	programs/                the peers' programs
//	cache/                   compiled models
type Environments struct {
	root, python string
	messages     io.Writer
}

// pythons are tried one after the other. PyStan's newest version and JAX need Python 3.12.
func pythons() []string {
	out := []string{"python3.13", "python3.12", "python3"}
	home, err := os.UserHomeDir()
	if err != nil {
		return out
	}
	for _, pattern := range []string{".pyenv/versions/3.12*/bin/python3", ".pyenv/versions/3.13*/bin/python3"} {
		found, _ := filepath.Glob(filepath.Join(home, pattern))
		out = append(out, found...)
	}
	return out
}

// findPython is the first Python that is new enough.
func findPython(ctx context.Context, wanted string) (string, error) {
	candidates := pythons()
	if wanted != "" {
		candidates = []string{wanted}
	}
	const check = "import sys, venv; sys.exit(sys.version_info[:2] not in ((3, 12), (3, 13)))"
	for _, c := range candidates {
		if exec.CommandContext(ctx, c, "-c", check).Run() == nil {
			return c, nil
		}
	}
	return "", fmt.Errorf("there is no Python 3.12 or 3.13 among %s: name one with -python",
		strings.Join(candidates, ", "))
}

// Prepare writes the peers' programs and finds Python. An empty root is kelvin/peers in the user's cache folder.
func Prepare(ctx context.Context, root, python string, messages io.Writer) (*Environments, error) {
	if root == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, err
		}
		root = filepath.Join(cache, "kelvin", "peers")
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	e := &Environments{root: root, messages: messages}
	for _, dir := range []string{"programs", "cache"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return nil, err
		}
	}
	files, err := Programs.ReadDir("py")
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		text, err := Programs.ReadFile("py/" + f.Name())
		if err != nil {
			return nil, err
		}
		to := filepath.Join(root, "programs", f.Name())
		if have, err := os.ReadFile(to); err == nil && bytes.Equal(have, text) {
			continue // its time stays, and what was compiled of it
		}
		if err := atomicfile.Write(to, text, 0o644); err != nil {
			return nil, err
		}
	}
	e.python, err = findPython(ctx, python)
	return e, err
}

// Install makes the environment of a group, unless it is there.
func (e *Environments) Install(ctx context.Context, g Group) error {
	if g.needs != "" {
		if _, err := exec.LookPath(g.needs); err != nil {
			return fmt.Errorf("there is no %s", g.needs)
		}
	}
	packages, err := Programs.ReadFile("py/" + g.Name + ".txt")
	if err != nil {
		return err
	}
	marker := filepath.Join(e.root, g.Name+".installed")
	if have, err := os.ReadFile(marker); err == nil && bytes.Equal(have, packages) {
		return nil
	}
	fmt.Fprintf(e.messages, "installing %s\n", strings.Join(strings.Fields(string(packages)), ", "))
	dir := filepath.Join(e.root, g.Name)
	for _, command := range [][]string{
		{e.python, "-m", "venv", "--clear", dir},
		{e.interpreter(g), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r",
			filepath.Join(e.root, "programs", g.Name+".txt")},
	} {
		out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
		if err != nil {
			return errors.New(lastLine(out, err))
		}
	}
	return atomicfile.Write(marker, packages, 0o644)
}

func (e *Environments) interpreter(g Group) string {
	return filepath.Join(e.root, g.Name, "bin", "python")
}

// lastLine is what a command said last, or its error.
func lastLine(out []byte, err error) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return last
	}
	return err.Error()
}
