package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/internal/ccompiler"
	"github.com/kelvin-ppl/kelvin/internal/setup"
)

const compileUsage = `usage: kelvin compile [-into DIR] [package [arguments...]]

Builds and runs a program, by default the one in this folder, and writes the C of all gradients that it compiles into
the folder of its package. The next build links them: such a binary needs no C compiler where it runs. The program
should get arguments that make it short; its models and the shapes of its data must be those that it will have.
C of an earlier call is replaced. An interrupt ends the program; what it has compiled by then is kept.

`

// compile runs `kelvin compile`.
func (a *app) compile(ctx context.Context, args []string) int {
	var into string
	flags := flag.NewFlagSet("compile", flag.ContinueOnError)
	flags.StringVar(&into, "into", "", "write into the Go package in `DIR`, which the program must import")
	flags.Usage = func() {
		fmt.Fprint(a.err, compileUsage)
		flags.PrintDefaults()
	}
	flags.SetOutput(a.err)
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	}
	pkg, rest := ".", flags.Args()
	if len(rest) > 0 {
		pkg, rest = rest[0], rest[1:]
	}
	n, dir, err := a.compileProgram(ctx, pkg, into, rest)
	if err != nil {
		return a.fail(err)
	}
	fmt.Fprintf(a.err, "%s has the C of %d functions; the next build links them.\n", dir, n)
	return exitOK
}

// compileProgram returns how many functions it wrote, and where.
func (a *app) compileProgram(ctx context.Context, pkg, into string, args []string) (n int, dir string, err error) {
	scratch, err := os.MkdirTemp("", "kelvin-compile-")
	if err != nil {
		return 0, "", err
	}
	defer os.RemoveAll(scratch)
	name, dir, err := a.mainPackage(ctx, pkg)
	if err != nil {
		return 0, "", err
	}
	made := filepath.Join(scratch, "main")
	if into != "" {
		if dir, err = filepath.Abs(into); err != nil {
			return 0, "", err
		}
		// A new package is called after its folder; one that is there keeps its name.
		made = filepath.Join(scratch, filepath.Base(dir))
		name = ""
		if out, err := a.sys.Run(ctx, setup.Command{Name: "go", Args: []string{"list", "-f", "{{.Name}}", "."},
			Dir: dir}); err == nil {
			name = strings.TrimSpace(out)
		}
	}
	if err := os.Mkdir(made, 0o700); err != nil {
		return 0, "", err
	}
	if name != "" {
		if err := atomicfile.Write(filepath.Join(made, "package.go"), []byte("package "+name+"\n"), 0o600); err != nil {
			return 0, "", err
		}
	}
	program := filepath.Join(scratch, "program")
	if _, err := a.sys.Run(ctx, setup.Command{Name: "go", Args: []string{"build", "-o", program, pkg}}); err != nil {
		return 0, "", err
	}
	_, err = a.sys.Run(ctx, setup.Command{Name: program, Args: args, Env: []string{ccompiler.Variable + "=" + made},
		Log: a.err, Terminal: true})
	if err != nil && ctx.Err() == nil {
		var failed *setup.CommandError
		if errors.As(err, &failed) { // what it printed was shown
			err = fmt.Errorf("the program failed (%w); nothing was changed", failed.Err)
		}
		return 0, "", err
	}
	n, err = replaceLinked(made, dir)
	return n, dir, err
}

// mainPackage is the name and the folder of a program's package.
func (a *app) mainPackage(ctx context.Context, pkg string) (name, dir string, err error) {
	out, err := a.sys.Run(ctx, setup.Command{Name: "go", Args: []string{"list", "-f", "{{.Name}}\n{{.Dir}}", pkg}})
	if err != nil {
		return "", "", err
	}
	name, dir, _ = strings.Cut(strings.TrimSpace(out), "\n")
	if name != "main" {
		return "", "", fmt.Errorf("%s is the package %s, not a program: compile runs a program that samples with your "+
			"models; -into writes into another package", pkg, name)
	}
	return name, dir, nil
}

// replaceLinked moves the C that a program wrote to a package, in the place of older C.
func replaceLinked(from, to string) (n int, err error) {
	files, err := ccompiler.Files(from)
	if err != nil {
		return 0, err
	}
	if len(files) == 0 {
		return 0, errors.New("the program compiled no gradient, so nothing was changed: the attribute \"gradient\" of its " +
			"draws says why")
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return 0, err
	}
	old, err := ccompiler.Files(to)
	if err != nil {
		return 0, err
	}
	kept := map[string]bool{}
	var batch atomicfile.Batch
	defer batch.Discard()
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			return 0, err
		}
		if err := batch.Add(filepath.Join(to, filepath.Base(path)), data); err != nil {
			return 0, err
		}
		kept[filepath.Base(path)] = true
	}
	if err := batch.Commit(); err != nil {
		return 0, err
	}
	for _, path := range old {
		if !kept[filepath.Base(path)] {
			if err := os.Remove(path); err != nil {
				return 0, err
			}
		}
	}
	return len(files) - 1, nil // one is the Go file
}
