// Command wheeltest runs Kelvin's tests with the libtorch of a PyTorch wheel: it sets the checkout up with that
// libtorch in a folder outside of it, with caches and a go.work of its own, so that the checkout's own set-up stays as
// it is.
//
//	go run ./internal/wheeltest -version 2.5.1
//
// It prints a table of packages and keeps the results beside the libtorch. With -page it writes the table of packages
// and versions of docs/versions.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "wheeltest:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("wheeltest", flag.ContinueOnError)
	version := flags.String("version", "", "`VERSION` of PyTorch, such as 2.5.1")
	dir := flags.String("dir", "", "folder for libtorch and the caches (default kelvin-libtorch in the user's cache "+
		"folder)")
	own := flags.Bool("own", false, "test with the libtorch that the checkout is set up with, which -version only names")
	write := flags.String("page", "", "write the table of packages and versions to `FILE`, of all that have run")
	clean := flags.Bool("clean", false, "remove that folder at the end, but for the results")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *version == "" && *write == "" {
		return errors.New("no version was given: make test-libtorch VERSION=2.5.1")
	}
	packages := flags.Args()
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	if *dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("the user has no cache folder, name one with -dir: %w", err)
		}
		*dir = filepath.Join(user, "kelvin-libtorch")
	}
	if *write != "" {
		return page(*dir, *write)
	}
	at := place(filepath.Join(*dir, *version))
	if err := os.MkdirAll(string(at), 0o755); err != nil {
		return err
	}
	if *clean {
		defer at.clean()
	}
	if *own {
		return at.test(ctx, os.Environ(), *version, packages)
	}
	if err := at.setUp(ctx, *version); err != nil {
		return err
	}
	return at.test(ctx, at.environment(), *version, packages)
}

// place is the folder of one version.
type place string

func (p place) in(name string) string { return filepath.Join(string(p), name) }

// environment leads Go and Kelvin to the folder. Tests are small models, which threads of an operation slow down.
func (p place) environment() []string {
	env := append(os.Environ(), "KELVIN_CACHE="+p.in("kelvin"), "GOCACHE="+p.in("go"), "GOWORK="+p.in("go.work"))
	for _, name := range []string{"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"} {
		if os.Getenv(name) == "" {
			env = append(env, name+"=1")
		}
	}
	return env
}

// setUp brings the libtorch of a wheel, and compiles with it.
func (p place) setUp(ctx context.Context, version string) error {
	// The program is built without a go.work, which set-up makes.
	build := exec.CommandContext(ctx, "go", "build", "-o", p.in("kelvin-setup"), "./cmd/kelvin")
	build.Env = append(p.environment(), "GOWORK=off")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building cmd/kelvin: %w", err)
	}
	// Set-up keeps the modules that a go.work uses. Those of another checkout are of no use here.
	if err := os.Remove(p.in("go.work")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	set := exec.CommandContext(ctx, p.in("kelvin-setup"), "setup", "--wheel", version)
	set.Env = p.environment()
	set.Stdout, set.Stderr = os.Stderr, os.Stderr
	if err := set.Run(); err != nil {
		return fmt.Errorf("setting up with libtorch %s: %w", version, err)
	}
	return nil
}

// test runs the tests and writes what they say. Tests that fail are an error, behind the table.
func (p place) test(ctx context.Context, env []string, version string, packages []string) error {
	commit, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return fmt.Errorf("asking git for the commit: %w", err)
	}
	tests := exec.CommandContext(ctx, "go", append([]string{"test", "-json", "-timeout", "60m"}, packages...)...)
	tests.Env = env
	tests.Stderr = os.Stderr
	out, err := tests.StdoutPipe()
	if err != nil {
		return err
	}
	if err := tests.Start(); err != nil {
		return err
	}
	results, err := read(out, os.Stderr)
	if err != nil {
		_ = tests.Process.Kill()
	}
	ended := tests.Wait()
	if err != nil {
		return err
	}
	now := saved{Version: version, Commit: strings.TrimSpace(string(commit)),
		Date: time.Now().UTC().Format(time.DateOnly), Packages: results}
	fmt.Print(table([]saved{now}))
	if err := p.save(now); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("the table has what was tested until the interruption: %w", ctx.Err())
	}
	var failed *exec.ExitError
	if errors.As(ended, &failed) {
		return fmt.Errorf("tests fail with libtorch %s: %w", version, ended)
	}
	return ended
}

// clean leaves the results alone.
func (p place) clean() {
	entries, err := os.ReadDir(string(p))
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "results.") {
			err = errors.Join(err, os.RemoveAll(p.in(e.Name())))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "wheeltest:", err)
	}
}
