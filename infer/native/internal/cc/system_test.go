//go:build unix

package cc

import (
	"os"
	"syscall"
)

func replaceByPipe(path string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return syscall.Mkfifo(path, 0o600)
}
