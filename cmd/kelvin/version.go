package main

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/kelvin-ppl/kelvin/internal/gotch"
	"github.com/kelvin-ppl/kelvin/internal/setup"
)

// version shows what this is: for a report of a mistake.
func (a *app) version(ctx context.Context, args []string) int {
	if code, ok := a.parse(flag.NewFlagSet("version", flag.ContinueOnError), args); !ok {
		return code
	}
	libtorch := "not set up here"
	if project, err := setup.FindProject(ctx, a.sys, ""); err == nil {
		if c, err := setup.InUse(project); err == nil {
			libtorch = strings.TrimPrefix(c.Stamp.LibTorch.String(), "libtorch ")
		}
	}
	info, _ := debug.ReadBuildInfo()
	own, commit := identify(info)
	fmt.Fprintf(a.out, "kelvin   %s\ncommit   %s\ngotch    %s\nlibtorch %s\ngo       %s %s/%s\n", own, commit,
		gotch.Version, libtorch, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return exitOK
}

// unknown is what is said of a build that does not know.
const unknown = "(devel)"

// version is Kelvin's own version.
func version() string {
	info, _ := debug.ReadBuildInfo()
	own, _ := identify(info)
	return own
}

// identify finds Kelvin's version and commit in what a binary knows of its build; nil is a binary that knows nothing.
// Kelvin is the main module, or one that it requires: then the version alone is known.
func identify(info *debug.BuildInfo) (version, commit string) {
	version, commit = unknown, "unknown"
	if info == nil {
		return version, commit
	}
	for _, dep := range info.Deps {
		if dep.Path == setup.Kelvin && dep.Version != "" {
			version = dep.Version
		}
	}
	if info.Main.Path != setup.Kelvin {
		return version, commit
	}
	if info.Main.Version != "" {
		version = info.Main.Version
	}
	modified := ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				modified = ", with changes"
			}
		}
	}
	return version, commit + modified
}
