//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

// Package filelock takes locks on files that end with the process, so that a killed one leaves none behind.
package filelock

import (
	"errors"
	"os"
	"syscall"
)

// Try takes an exclusive lock on an open file and says whether it could: false while another open file of any process has it. Closing the file
// gives it back. A file system without locks counts as unlocked.
func Try(f *os.File) bool {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return !errors.Is(err, syscall.EWOULDBLOCK)
		}
	}
}
