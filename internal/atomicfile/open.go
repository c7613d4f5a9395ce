package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Open opens a regular file that is written in place, as one that grows; flag and mode are those of [os.OpenFile]. A
// symbolic link at path is not followed: it is an error, and so are folders, pipes and devices. O_TRUNC empties a file
// only when it is known to be a regular one. All that writes in place goes through here; whole files go through
// [Replace] and its kin.
func Open(path string, flag int, mode fs.FileMode) (*os.File, error) {
	// O_EXCL follows no link, and says itself that something is there.
	if info, err := os.Lstat(path); err == nil && flag&os.O_EXCL == 0 && !info.Mode().IsRegular() {
		return nil, irregular(path, info.Mode())
	}
	f, err := os.OpenFile(path, flag&^os.O_TRUNC|noFollow, mode)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat() // of what was opened, whatever the name means by now
	if err == nil && !info.Mode().IsRegular() {
		err = irregular(path, info.Mode())
	}
	if err == nil && flag&os.O_TRUNC != 0 {
		err = f.Truncate(0)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Present is an error where the name that f was opened by is no longer that of f: the file was removed or replaced, or
// its folder was, and what is written to f is lost.
func Present(f *os.File) error {
	own, err := f.Stat()
	if err != nil {
		return err
	}
	now, err := os.Lstat(f.Name())
	const advice = "while it was written, so that what was written is lost: leave a file and its folder as they are " +
		"until the end"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s was removed %s: %w", f.Name(), advice, err)
	case err == nil && !os.SameFile(own, now):
		return fmt.Errorf("%s was replaced by another one %s", f.Name(), advice)
	}
	return err
}

// Write is [ReplaceMode] with the whole content.
func Write(path string, data []byte, mode fs.FileMode) error {
	return ReplaceMode(path, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Stream writes to a pipe or a device, also one that a link names, as /dev/stdout does: nothing is lost there. done is
// false, and nothing is written, where something else is at path.
func Stream(path string, write func(io.Writer) error) (done bool, err error) {
	streams := func(info fs.FileInfo, err error) bool {
		return err == nil && !info.Mode().IsRegular() && !info.IsDir()
	}
	if !streams(os.Stat(path)) {
		return false, nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return false, err
	}
	if done = streams(f.Stat()); done {
		err = write(f)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return done, err
}

// replaceable is an error where something is at path, by a link too, that a file cannot take the place of.
func replaceable(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return irregular(path, info.Mode())
	}
	return nil
}

func irregular(path string, mode fs.FileMode) error {
	what := "a device"
	switch mode.Type() {
	case fs.ModeSymlink:
		what = "a symbolic link"
	case fs.ModeDir:
		what = "a folder"
	case fs.ModeNamedPipe:
		what = "a pipe"
	case fs.ModeSocket:
		what = "a socket"
	}
	return fmt.Errorf("%s is %s, which is not written to: name a regular file, or a name that is free", path, what)
}
