package setup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"

	"github.com/kelvin-ppl/kelvin/internal/gotch"
)

// stampName is the file, written last, that says a copy is complete.
const stampName = "kelvin-setup.json"

// Identity is what a copy of gotch depends on. Two equal identities share a copy.
type Identity struct {
	Gotch       string      `json:"gotch"`       // gotch's version
	Fingerprint string      `json:"fingerprint"` // of Kelvin's adaptations
	LibTorch    string      `json:"libtorch"`    // version
	Dir         string      `json:"dir"`
	Library     string      `json:"library"` // size and time of libtorch_cpu
	Flags       gotch.Flags `json:"flags"`
}

// Stamp is what set-up writes into a copy of gotch when it is complete.
type Stamp struct {
	Identity   Identity  `json:"identity"`
	LibTorch   LibTorch  `json:"libtorch"`
	MissingOps []string  `json:"missing_ops"`
	Compiler   string    `json:"compiler"`
	Made       time.Time `json:"made"`
}

// Copy is an adapted copy of gotch.
type Copy struct {
	Dir   string
	Stamp Stamp
	Made  bool // by this run
}

// ensureCopy returns the copy of gotch for l, and makes a missing one.
func (j *job) ensureCopy(ctx context.Context, l *LibTorch, cxx Compiler) (*Copy, error) {
	plain, err := withPlainPaths(l, j.cache)
	if err != nil {
		return nil, err
	}
	mark, err := libraryMark(j.sys, l)
	if err != nil {
		return nil, fail(err, "repair libtorch, or name another with --libtorch DIR", "libtorch's library cannot be read")
	}
	id := Identity{
		Gotch: gotch.Version, Fingerprint: j.parts.Fingerprint(), LibTorch: l.Version, Dir: l.Dir,
		Library: mark, Flags: plain.Flags(j.sys.GOOS),
	}
	dst := filepath.Join(j.cache.Dir, "gotch", gotch.Version+"-"+hash(id))
	if stamp, err := readStamp(dst); err == nil && hash(stamp.Identity) == hash(id) {
		return &Copy{Dir: dst, Stamp: *stamp}, nil
	}
	if err := removeAll(dst); err != nil {
		return nil, j.cache.unwritable(err)
	}
	stamp, err := j.makeCopy(ctx, dst, Stamp{Identity: id, LibTorch: *l, Compiler: cxx.Version, Made: now()}, cxx.CXX)
	if err != nil {
		return nil, err
	}
	return &Copy{Dir: dst, Stamp: *stamp, Made: true}, nil
}

// makeCopy works in a temporary folder and renames it when it is complete, so that an interruption leaves nothing that
// looks done.
func (j *job) makeCopy(ctx context.Context, dst string, stamp Stamp, cxx string) (*Stamp, error) {
	scratch, err := j.cache.scratch(dst + "-source")
	if err != nil {
		return nil, err
	}
	defer removeAll(scratch)
	tmp, err := j.cache.scratch(dst)
	if err != nil {
		return nil, err
	}
	defer removeAll(tmp)

	j.report.Start(fmt.Sprintf("copying and adapting gotch %s", gotch.Version))
	src, err := j.parts.Source(ctx, scratch)
	if err != nil {
		return nil, err
	}
	if err := j.parts.Adapt(src, tmp, stamp.Identity.Flags); err != nil {
		return nil, fail(err, "use a version of Kelvin that fits this gotch, or report this to Kelvin",
			"gotch %s cannot be adapted", gotch.Version)
	}
	j.report.Start("looking for the ops that this libtorch lacks (about half a minute)")
	stamp.MissingOps, err = j.parts.Missing(ctx, tmp, cxx, stamp.Identity.Flags)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("set-up was stopped: %w", ctx.Err())
	}
	if err != nil {
		return nil, fail(err, "check that the headers and the libraries in that folder belong together and are complete, "+
			"or name another libtorch with --libtorch DIR",
			"gotch does not compile against libtorch %s in %s", stamp.LibTorch.Version, stamp.LibTorch.Dir)
	}
	stamp.MissingOps = plainOps(stamp.MissingOps)
	if err := checkCopy(tmp); err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(stamp, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := writeFile(filepath.Join(tmp, stampName), append(data, '\n'), 0o644); err != nil {
		return nil, j.cache.unwritable(err)
	}
	if err := os.Rename(tmp, dst); err != nil {
		return nil, j.cache.unwritable(err)
	}
	return &stamp, nil
}

// plainOps sorts the names of ops and takes the prefix of gotch's C functions off.
func plainOps(names []string) []string {
	ops := make([]string, 0, len(names))
	for _, name := range names {
		ops = append(ops, strings.TrimPrefix(name, "atg_"))
	}
	slices.Sort(ops)
	return ops
}

// checkCopy checks that a go.work can point to the copy.
func checkCopy(dir string) error {
	path := filepath.Join(dir, "go.mod")
	data, err := os.ReadFile(path)
	if err == nil && modfile.ModulePath(data) != gotch.Module {
		err = fmt.Errorf("its module path is %q", modfile.ModulePath(data))
	}
	if err != nil {
		return fail(err, "report this to Kelvin", "the adapted gotch has no usable go.mod")
	}
	return nil
}

// readStamp reads the stamp of the copy in dir. A copy without a stamp, or without its go.mod, is not complete.
func readStamp(dir string) (*Stamp, error) {
	data, err := os.ReadFile(filepath.Join(dir, stampName))
	if err != nil {
		return nil, err
	}
	var s Stamp
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, stampName), err)
	}
	if !exists(filepath.Join(dir, "go.mod")) {
		return nil, errors.New(dir + " has no go.mod")
	}
	return &s, nil
}

// InUse returns the copy that a project's go.work leads to, or its go.mod, with --vendor. When it is there but not
// complete, the error comes with a Copy that has only its folder.
func InUse(p *Project) (*Copy, error) {
	again := "run `" + SetupCommand + "`"
	dir := moduleReplacement(p.GoMod)
	if p.GoWork != "" && exists(p.GoWork) {
		of, err := readReplacement(p.GoWork)
		if err != nil {
			return nil, fail(err, "repair it", "the workspace file %s cannot be read", p.GoWork)
		}
		dir = cmp.Or(of, dir)
		if dir == "" {
			return nil, fail(nil, again+" in "+p.Dir, "set-up has not run here: %s has no replace for %s", p.GoWork,
				gotch.Module)
		}
	}
	if dir == "" {
		return nil, fail(nil, again+" in "+p.Dir, "set-up has not run here: there is no go.work")
	}
	stamp, err := readStamp(dir)
	if err != nil {
		return &Copy{Dir: dir}, fail(err, again, "the adapted gotch in %s is not complete", dir)
	}
	return &Copy{Dir: dir, Stamp: *stamp}, nil
}

// libraryMark tells one build of libtorch from another in the same folder.
func libraryMark(sys *System, l *LibTorch) (string, error) {
	info, err := os.Stat(filepath.Join(l.Lib, sys.library("torch_cpu")))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d bytes, %s", info.Size(), info.ModTime().UTC().Format(time.RFC3339Nano)), nil
}
