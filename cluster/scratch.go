package cluster

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// Temporary folders of workers and of servers of this process.
const (
	workerFolder = "kelvin-worker-"
	serverFolder = "kelvin-cluster-"
)

// ownerFile is the file of a temporary folder that is locked as long as its process lives.
const ownerFile = "owner"

// scratch is a temporary folder of this process, which removes those of the same kind that killed ones left behind.
type scratch struct {
	dir  string
	lock *atomicfile.Lock
}

func newScratch(kind string) (*scratch, error) {
	// Under the name that others look for, the folder is locked from the beginning.
	hidden, err := os.MkdirTemp("", "."+kind+"*")
	if err != nil {
		return nil, err
	}
	s := &scratch{dir: filepath.Join(filepath.Dir(hidden), filepath.Base(hidden)[1:])}
	if s.lock, err = atomicfile.TakeLock(filepath.Join(hidden, ownerFile)); err == nil {
		err = os.Rename(hidden, s.dir)
	}
	if err != nil {
		_ = s.lock.Release()
		_ = os.RemoveAll(hidden)
		return nil, err
	}
	// Where the file system has no locks, the living look like the dead.
	second, err := atomicfile.TakeLock(filepath.Join(s.dir, ownerFile))
	if held := (*atomicfile.HeldError)(nil); errors.As(err, &held) {
		sweep(kind)
	}
	if second != nil {
		_ = second.Release()
	}
	return s, nil
}

// remove may be called on nil.
func (s *scratch) remove() {
	if s != nil {
		_ = os.RemoveAll(s.dir)
		_ = s.lock.Release()
	}
}

// sweep removes the folders whose owner is dead. What it may not remove, as another user's, stays.
func sweep(kind string) {
	folders, _ := filepath.Glob(filepath.Join(os.TempDir(), kind+"*"))
	for _, dir := range folders {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			continue
		}
		if lock, err := atomicfile.TakeLock(filepath.Join(dir, ownerFile)); err == nil {
			(&scratch{dir, lock}).remove()
		}
	}
}
