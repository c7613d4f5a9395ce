// Package atomicfile writes files and folders in one move. A reader sees the old content or the new one, never a part,
// also after a kill or a loss of power. The temporary name is random and made exclusively, so no link is followed and
// no other file is overwritten.
package atomicfile

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kelvin-ppl/kelvin/internal/parallel"
)

// Sync waits for the disk. Tests that write thousands of files put another function in its place.
var Sync = (*os.File).Sync

// Step is called before each change of the disk. Tests put a function in its place that stops there, as a kill would.
var Step = func() {}

// Remove removes a file. One that is not there counts as removed.
func Remove(path string) error {
	Step()
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func rename(from, to string) error {
	Step()
	return os.Rename(from, to)
}

// Replace writes a file that everybody may read, as far as the user's umask allows. A failure leaves the old file as it
// was. If path is a symbolic link, the link is replaced, not the file that it names. A folder, pipe or device there,
// also one that a link names, is an error.
func Replace(path string, write func(io.Writer) error) error { return ReplaceMode(path, 0o644, write) }

// ReplacePrivate is [Replace] for a file that only the user may read, such as a checkpoint.
func ReplacePrivate(path string, write func(io.Writer) error) error {
	return ReplaceMode(path, 0o600, write)
}

// ReplaceMode is [Replace] with the given permissions, before the umask.
func ReplaceMode(path string, mode fs.FileMode, write func(io.Writer) error) (err error) {
	if err := replaceable(path); err != nil {
		return err
	}
	sweep(path)
	f, err := create(path, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	b := bufio.NewWriterSize(f, 1<<16)
	if err = write(b); err != nil {
		return err
	}
	if err = b.Flush(); err != nil {
		return err
	}
	if err = Sync(f); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = rename(f.Name(), path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// Batch replaces many files of many folders and waits for the disk once. Each file is replaced in one move, but not all
// of them together.
type Batch struct{ from, to []string }

// Add writes a file under a temporary name. Its folder is made if it is not there.
func (b *Batch) Add(path string, data []byte) error {
	if err := replaceable(path); err != nil {
		return err
	}
	sweep(path)
	f, err := create(path, 0o644)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			f, err = create(path, 0o644)
		}
	}
	if err != nil {
		return err
	}
	b.from, b.to = append(b.from, f.Name()), append(b.to, path)
	_, err = f.Write(data)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// Commit waits until the files are on the disk, gives them their names, and waits for their
// folders.
func (b *Batch) Commit() error {
	if err := each(b.from, syncFile); err != nil {
		return err
	}
	dirs := map[string]bool{}
	for i, from := range b.from {
		if err := rename(from, b.to[i]); err != nil {
			return err
		}
		dir := filepath.Dir(b.to[i])
		dirs[dir], dirs[filepath.Dir(dir)] = true, true // the folder may be new in the one above
	}
	b.from, b.to = nil, nil
	return each(slices.Collect(maps.Keys(dirs)), SyncDir)
}

// Discard removes the files that are not committed.
func (b *Batch) Discard() {
	for _, from := range b.from {
		_ = os.Remove(from)
	}
	b.from, b.to = nil, nil
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = Sync(f)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// each calls f for all names, a few at a time: a disk that waits once for many files is faster.
func each(names []string, f func(string) error) error {
	errs := make([]error, len(names))
	var all parallel.Group
	slots := make(chan struct{}, 16)
	for i, name := range names {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			errs[i] = f(name)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// Folder makes a folder in one move: write fills a temporary one, which then takes the name path. If there is something
// at path already, the error is [fs.ErrExist] and nothing is written.
func Folder(path string, write func(dir string) error) (err error) {
	if _, err := os.Lstat(path); err == nil {
		return &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
	sweep(path)
	var dir string
	for {
		dir = temporary(path)
		if err = os.Mkdir(dir, 0o755); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	if err = write(dir); err != nil {
		return err
	}
	if err = rename(dir, path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir waits until the names in a folder are on the disk. A system that cannot wait for folders counts as done.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return nil // a folder that may be written but not read
	}
	err = Sync(f)
	if e := f.Close(); err == nil {
		err = e
	}
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// suffix ends every temporary name.
const suffix = ".new"

// temporary is a random name beside path.
func temporary(path string) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	dir, base := filepath.Split(path)
	return dir + "." + base + "." + hex.EncodeToString(b[:]) + suffix
}

// create opens a new file beside path. O_EXCL refuses a name that is taken, be it by a file or by a link.
func create(path string, mode fs.FileMode) (*os.File, error) {
	Step()
	for {
		f, err := os.OpenFile(temporary(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

// swept are the folders whose leftovers this process has removed.
var swept sync.Map

// stale is the age from which a temporary file is a leftover of a killed process.
const stale = time.Hour

// sweep removes what killed processes left in the folder of path, once in a process.
func sweep(path string) {
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return
	}
	if _, done := swept.LoadOrStore(dir, true); done {
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !leftover(e.Name()) {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > stale {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}

// leftover says whether a name is one that temporary makes: .NAME.0123456789abcdef.new
func leftover(name string) bool {
	rest, ok := strings.CutSuffix(name, suffix)
	if !ok || len(rest) < 18 || rest[0] != '.' {
		return false
	}
	random := rest[len(rest)-16:]
	return rest[len(rest)-17] == '.' && strings.Trim(random, "0123456789abcdef") == ""
}
