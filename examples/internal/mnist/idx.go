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
// after the first; what is what there are n of, such as images. It says which file it was, too.
func idx(dir, name, what string, want ...uint32) (data []byte, n int, file string, err error) {
	file = filepath.Join(dir, name)
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		file += ".gz"
		f, err = os.Open(file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, "", fmt.Errorf("mnist: %s has neither %s nor %s.gz: put the IDX files of MNIST there", dir, name, name)
	}
	if err != nil {
		return nil, 0, "", fmt.Errorf("mnist: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, n, err = elements(f, filepath.Ext(file) == ".gz", what, want)
	if err != nil {
		return nil, 0, "", fmt.Errorf("mnist: %s %w", file, err)
	}
	return data, n, file, nil
}

// elements are those of an open file, and how many there are along the first dimension. An error goes on after the name
// of the file.
func elements(r io.Reader, packed bool, what string, want []uint32) ([]byte, int, error) {
	header, size := make([]byte, 4*(2+len(want))), 1
	for _, w := range want {
		size *= int(w)
	}
	r = bufio.NewReader(r)
	if packed {
		unpacked, err := gzip.NewReader(r)
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return nil, 0, fmt.Errorf("is cut: it ends before its first byte of data: expected a header of %d bytes, and %s of "+
				"%d bytes each: %w", len(header), what, size, err)
		case err != nil:
			return nil, 0, fmt.Errorf("is no file of gzip: expected one, or a file whose name does not end in .gz: %w", err)
		}
		r = unpacked
	}
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, 0, fmt.Errorf("ends within its header of %d bytes: %w", len(header), err)
	}
	if magic, right := binary.BigEndian.Uint32(header), uint32(0x801+len(want)); magic != right {
		return nil, 0, fmt.Errorf("begins with %#x, and a file of its kind with %#x", magic, right)
	}
	count := binary.BigEndian.Uint32(header[4:])
	if count == 0 || count > maxImages {
		return nil, 0, fmt.Errorf("claims %d %s, expected 1 to %d", count, what, maxImages)
	}
	for i, w := range want {
		if got := binary.BigEndian.Uint32(header[8+4*i:]); got != w {
			return nil, 0, fmt.Errorf("has %d as its dimension %d, expected %d", got, i+1, w)
		}
	}
	// What is read grows with what is there, not with what the header says.
	whole := size * int(count)
	data, err := io.ReadAll(io.LimitReader(r, int64(whole+1)))
	n := len(data)
	expected := fmt.Sprintf("expected %d bytes, %d %s of %d", whole, count, what, size)
	read := fmt.Sprintf("its header and %d bytes, %d whole %s", n, n/size, what)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, 0, fmt.Errorf("is cut: it ends after %s: %s: %w", read, expected, err)
	case err != nil:
		return nil, 0, fmt.Errorf("is damaged after %s: %s: %w", read, expected, err)
	case n > whole:
		return nil, 0, fmt.Errorf("has more than %d bytes after its header: %s", whole, expected)
	case n < whole:
		return nil, 0, fmt.Errorf("has only %s: %s", read, expected)
	}
	return data, int(count), nil
}
