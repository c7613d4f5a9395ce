package setup

import (
	"context"
	"errors"
	"fmt"
)

// libtorch finds a libtorch or, unless the user forbids it, gets one.
func (j *job) libtorch(ctx context.Context) (*LibTorch, error) {
	if j.opts.Wheel != "" {
		if j.opts.LibTorch != "" || j.opts.CUDA || j.opts.NoInstall {
			return nil, fail(nil, "leave it out; for CUDA, `pip install torch` and name its folder with --libtorch DIR",
				"--wheel takes a libtorch for the CPU, and does not go with --libtorch, --cuda or --no-install")
		}
		return j.wheel(ctx, j.opts.Wheel)
	}
	if l := j.kept(ctx); l != nil {
		return j.preferOpenBLAS(ctx, l), nil
	}
	l, err := Locate(ctx, j.sys, j.request())
	var none *NotFound
	switch {
	case err == nil:
	case !errors.As(err, &none):
		return nil, err
	case j.opts.NoInstall:
		return nil, fail(err, j.howToGet(), "--no-install was given and there is nothing to use")
	default:
		if l, err = j.get(ctx, none); err != nil {
			return nil, err
		}
	}
	return j.preferOpenBLAS(ctx, l), nil
}

// kept is the libtorch that the module is set up with already, if it is still there and the user names no other: a
// set-up that somebody ran with --libtorch is not undone by the next one without.
func (j *job) kept(ctx context.Context) *LibTorch {
	if j.opts.LibTorch != "" || j.sys.Getenv("LIBTORCH") != "" {
		return nil
	}
	used, err := InUse(j.project)
	if err != nil {
		return nil
	}
	l, err := use(ctx, j.sys, place{used.Stamp.LibTorch.Dir, used.Stamp.LibTorch.Source}, j.request())
	if err != nil {
		return nil
	}
	return l
}

// request returns what to look for.
func (j *job) request() Request {
	return Request{Dir: j.opts.LibTorch, Cache: j.cache, CUDA: j.opts.CUDA}
}

// howToGet tells a user who wants nothing installed how to get libtorch.
func (j *job) howToGet() string {
	how := "name a libtorch with --libtorch DIR or $LIBTORCH, install PyTorch (pip install torch), " +
		"or run set-up without --no-install"
	if m, err := j.pkgs.manager(); err == nil && !j.opts.CUDA {
		how = fmt.Sprintf("`%s`, or %s", j.pkgs.command(m, m.libtorch[0]), how)
	}
	return how
}

// get installs a libtorch through the package manager or, when that does not do, from PyTorch's archive. The package
// managers' libtorch has no CUDA as a rule, so that for CUDA the archive comes first.
func (j *job) get(ctx context.Context, none *NotFound) (*LibTorch, error) {
	for _, u := range none.Looked {
		if !u.Absent {
			j.report.Note(u.Error())
		}
	}
	var installErr error
	if !j.opts.CUDA {
		l, err := j.installLibTorch(ctx)
		if err == nil {
			return l, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		installErr = err
		j.report.Note(fmt.Sprintf("libtorch does not come from a package (%v); PyTorch's archive comes next", err))
	}
	l, err := j.download(ctx)
	if err != nil && ctx.Err() == nil && !j.opts.CUDA && j.opts.SHA256 == "" {
		if _, pipErr := j.pip(ctx); pipErr == nil {
			j.report.Note(fmt.Sprintf("PyTorch's archive does not do (%v); its Python package comes next", err))
			return j.wheel(ctx, wheelVersion)
		}
	}
	if err != nil && installErr != nil && errors.Is(err, errNoArchive) {
		return nil, fail(err,
			"install PyTorch (pip install torch) or a libtorch of your own (--libtorch DIR), then run set-up again",
			"libtorch cannot be installed here: %v", installErr)
	}
	return l, err
}

// installLibTorch installs libtorch's packages and looks for it again.
func (j *job) installLibTorch(ctx context.Context) (*LibTorch, error) {
	m, err := j.pkgs.manager()
	if err != nil {
		return nil, err
	}
	prefix, err := j.pkgs.rights(ctx, m, true)
	if err != nil {
		return nil, err
	}
	j.pkgs.update(ctx, m, prefix)
	names, err := j.pkgs.libtorch(ctx, m)
	if err != nil {
		return nil, err
	}
	if err := j.pkgs.install(ctx, m, prefix, names); err != nil {
		return nil, err
	}
	return Locate(ctx, j.sys, j.request())
}

// preferOpenBLAS installs OpenBLAS beside a libtorch that uses the reference BLAS, which is many times slower. It never
// fails: libtorch works without.
func (j *job) preferOpenBLAS(ctx context.Context, l *LibTorch) *LibTorch {
	if l.BLAS != referenceBLAS {
		return l
	}
	const slow = "libtorch uses the reference BLAS here, which is many times slower than OpenBLAS: "
	m, err := j.pkgs.manager()
	if err != nil || m.openBLAS == nil {
		j.report.Warn(slow + "install OpenBLAS and make it the system's libblas.so.3")
		return l
	}
	if !exists(j.sys.path("usr/lib", triplet(j.sys.GOARCH), "openblas-pthread/libblas.so.3")) {
		prefix, err := j.pkgs.rights(ctx, m, false)
		if err == nil && j.opts.NoInstall {
			err = errors.New("--no-install was given")
		}
		if err == nil {
			err = j.pkgs.install(ctx, m, prefix, m.openBLAS)
		}
		if err != nil {
			j.report.Warn(fmt.Sprintf("%s`%s` (not done by set-up: %v)", slow, j.pkgs.command(m, m.openBLAS), err))
			return l
		}
		if again, err := inspect(j.sys, l.Dir, l.Source); err == nil {
			l.BLAS = again.BLAS
		}
	}
	if l.BLAS == referenceBLAS {
		j.report.Warn(fmt.Sprintf("%sOpenBLAS is installed, but not chosen: `update-alternatives --config libblas.so.3-%s`",
			slow, triplet(j.sys.GOARCH)))
	}
	return l
}
