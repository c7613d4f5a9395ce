package command

import (
	"io"
	"os"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// Picture writes a file of a picture, and makes its folder if that is missing. The file appears when it is whole.
func Picture(path string, draw func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.Replace(path, draw)
}
