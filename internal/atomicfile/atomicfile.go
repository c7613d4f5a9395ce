// Package atomicfile writes files in one move.
package atomicfile

import (
	"bufio"
	"io"
	"os"
)

// Sync waits for the disk. Tests that write thousands of files put another one in its place.
var Sync = (*os.File).Sync

// Replace writes a file in one move: what write makes goes beside it, and takes its name when it is on the disk. A
// failure leaves the old file as it was.
func Replace(path string, write func(io.Writer) error) (err error) {
	// One name for all: what a killed run leaves is overwritten by the next.
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
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
	return os.Rename(f.Name(), path)
}
