package setup

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// exists says whether there is a file or folder at path.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// reason returns what the system says about a failed file operation, without the path.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// writeFile writes a file so that an interruption leaves either the old content or the new one.
func writeFile(path string, data []byte, mode fs.FileMode) error {
	return atomicfile.ReplaceMode(path, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// removeAll removes a folder even when folders inside it are read-only.
func removeAll(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o755)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// sameFile says whether two paths name the same file or folder.
func sameFile(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}
