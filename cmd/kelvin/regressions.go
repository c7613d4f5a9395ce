package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/internal/setup"
)

// regressions are the commands of the program that needs libtorch.
var regressions = []string{"fit", "predict", "effects", "hypothesis", "compare", "code", "export"}

// regression runs such a command: that program takes the place of this one, with its signals, terminal and exit code.
func (a *app) regression(ctx context.Context, args []string) int {
	console := newConsole(a.err, a.terminal)
	program, err := setup.FitProgram(ctx, a.sys, "", console)
	console.clear()
	if err != nil {
		return a.fail(err)
	}
	return a.fail(a.exec(program, append([]string{program}, args...), os.Environ()))
}

// exported is the file of an exported model that the folder of a fit has. Where it has none it is made, by the program
// that needs libtorch.
func (a *app) exported(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "model.kelvin")
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	if _, err := os.Stat(filepath.Join(dir, "model.json")); err != nil {
		return "", fmt.Errorf("%s has no model.kelvin, and is not the folder of a fit, which kelvin fit makes: %w", dir, err)
	}
	console := newConsole(a.err, a.terminal)
	program, err := setup.FitProgram(ctx, a.sys, "", console)
	console.clear()
	if err != nil {
		return "", err
	}
	said, err := a.sys.Run(ctx, setup.Command{Name: program, Args: []string{"export", dir}})
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, said)
	}
	return path, nil
}
