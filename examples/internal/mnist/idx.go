package mnist

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxImages is the largest number of images that a file may claim, so that no header makes the process run out of
// memory.
const maxImages = 1 << 20

// idx reads a file of the IDX format, plain or compressed: a header of bytes 0, 0, 8 (unsigned bytes), the number of
// dimensions, the sizes as big-endian words, and then the bytes of the elements, in row-major order. want are the sizes
// after the first.
func idx(dir, name string, want ...uint32) (data []byte, n int, err error) {
	file := filepath.Join(dir, name)
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		file += ".gz"
		f, err = os.Open(file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, fmt.Errorf("mnist: %s has neither %s nor %s.gz: put the IDX files of MNIST there", dir, name, name)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("mnist: %w", err)
	}
	defer func() { _ = f.Close() }()
	var r io.Reader = bufio.NewReader(f)
	if filepath.Ext(file) == ".gz" {
		if r, err = gzip.NewReader(r); err != nil {
			return nil, 0, fmt.Errorf("mnist: %s: %w", file, err)
		}
	}
	header := make([]byte, 4*(2+len(want)))
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, 0, fmt.Errorf("mnist: %s ends within its header of %d bytes: %w", file, len(header), err)
	}
	if magic, right := binary.BigEndian.Uint32(header), uint32(0x801+len(want)); magic != right {
		return nil, 0, fmt.Errorf("mnist: %s begins with %#x, and a file of its kind with %#x", file, magic, right)
	}
	count := binary.BigEndian.Uint32(header[4:])
	if count == 0 || count > maxImages {
		return nil, 0, fmt.Errorf("mnist: %s claims %d images, expected 1 to %d", file, count, maxImages)
	}
	size := 1
	for i, w := range want {
		if got := binary.BigEndian.Uint32(header[8+4*i:]); got != w {
			return nil, 0, fmt.Errorf("mnist: dimension %d of %s is %d, expected %d", i+1, file, got, w)
		}
		size *= int(w)
	}
	// What is read grows with what is there, not with what the header says.
	whole := int64(size) * int64(count)
	data, err = io.ReadAll(io.LimitReader(r, whole+1))
	if err != nil {
		return nil, 0, fmt.Errorf("mnist: %s: %w", file, err)
	}
	if int64(len(data)) != whole {
		return nil, 0, fmt.Errorf("mnist: %s has %s %d bytes after its header, expected %d of %d images", file,
			map[bool]string{true: "more than", false: "only"}[int64(len(data)) > whole], min(int64(len(data)), whole), whole,
			count)
	}
	return data, int(count), nil
}
