package atomicfile

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Lock is a lock on a file that this process holds. It ends with the process, so that a killed one leaves none behind.
type Lock struct{ f *os.File }

// HeldError is the error of a lock that another user of the file holds.
type HeldError struct {
	Path string
	// Process is the number of the process that holds the lock, 0 if it is not known.
	Process int
}

// Error is "PATH is in use by process 123".
func (e *HeldError) Error() string { return e.Path + " is in use by " + e.Holder() }

// Holder names the holder: "process 123", or "another process".
func (e *HeldError) Holder() string {
	if e.Process == 0 {
		return "another process"
	}
	return fmt.Sprintf("process %d", e.Process)
}

// TakeLock locks the file at path, which is made if it is not there, and writes the number of this process into it. If
// another process, or another TakeLock of this one, holds the lock, the error is a [HeldError]. Only a file that serves
// as a lock and nothing else can be taken; see [TryLock] for others. The lock file stays behind, unlocked and empty.
//
// A symbolic link at path is refused. A file system without locks counts as unlocked.
func TakeLock(path string) (*Lock, error) {
	f, err := Open(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if !TryLock(f) {
		held := &HeldError{Path: path, Process: holder(f)}
		_ = f.Close()
		return nil, held
	}
	// The number only helps whoever is refused, so a failure to write it is no failure of the lock.
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &Lock{f}, nil
}

// Release gives the lock back. It may be called on a nil Lock.
func (l *Lock) Release() error {
	if l == nil {
		return nil
	}
	_ = l.f.Truncate(0)
	return l.f.Close()
}

// holder reads the number of the process that has the lock.
func holder(f *os.File) int {
	b := make([]byte, 32)
	n, _ := f.ReadAt(b, 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	if err != nil || pid < 1 {
		return 0
	}
	return pid
}
