package main

import (
	"context"
	"os"

	"github.com/kelvin-ppl/kelvin/internal/setup"
)

// regressions are the commands of the program that needs libtorch.
var regressions = []string{"fit", "predict", "effects", "hypothesis", "compare", "code"}

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
