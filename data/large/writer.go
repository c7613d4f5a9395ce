package large

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math/bits"
	"os"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// Writer writes a .npy file row by row. Make one with [Create].
type Writer[T Value] struct {
	path   string
	file   *os.File
	buffer *bufio.Writer
	shape  []int64
	row    int64 // numbers in a row
	rows   int64
	failed error
}

// headerBytes is the length of each header that is written, magic included: a multiple of 64, as the format asks for.
const headerBytes = 1024

// Create makes a file, in the place of one that is there, for rows of a shape; without a shape a row is one number. A
// symbolic link at path is an error.
// Until Close the header says that there are no rows, so that [Open] refuses a file that was left behind half-written.
func Create[T Value](path string, shape ...int64) (*Writer[T], error) {
	w := &Writer[T]{path: path, shape: slices.Clone(shape), row: 1}
	for _, n := range shape {
		high, low := bits.Mul64(uint64(w.row), uint64(n))
		if n < 1 || high != 0 || low > mostBytes || len(shape) > mostDims-1 {
			return nil, w.wrong("a row has shape %v: expected at most %d dimensions of at least 1, and 2^32 numbers", shape,
				mostDims-1)
		}
		w.row = int64(low)
	}
	var err error
	if w.file, err = atomicfile.Open(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666); err != nil {
		return nil, fmt.Errorf("%w: %w", w.wrong("it cannot be made"), err)
	}
	w.buffer = bufio.NewWriterSize(w.file, 1<<16)
	if _, err := w.buffer.Write(w.header(0)); err != nil {
		_ = w.file.Close()
		return nil, fmt.Errorf("%w: %w", w.wrong("it cannot be written"), err)
	}
	return w, nil
}

func (w *Writer[T]) wrong(problem string, args ...any) *data.Error {
	return &data.Error{Source: w.path, Row: -1, Problem: fmt.Sprintf(problem, args...)}
}

// header is the beginning of a file of so many rows, in format 1.0.
func (w *Writer[T]) header(rows int64) []byte {
	var zero T
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == fmt.Sprintf("%T", zero) })
	shape := fmt.Sprintf("%d,", rows)
	for _, n := range w.shape {
		shape += fmt.Sprintf(" %d,", n)
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", kinds[i].descr, shape)
	text += strings.Repeat(" ", headerBytes-10-1-len(text)) + "\n"
	out := binary.LittleEndian.AppendUint16([]byte(magic+"\x01\x00"), uint16(len(text)))
	return append(out, text...)
}

// Write appends rows: the numbers of one or more, in the order of C. After an error nothing more is written.
func (w *Writer[T]) Write(values ...T) error {
	if w == nil || w.file == nil {
		return &data.Error{Row: -1, Problem: "the writer is closed: expected one that large.Create made"}
	}
	if w.failed != nil {
		return w.failed
	}
	if int64(len(values))%w.row != 0 {
		return w.wrong("%d numbers are no rows: expected a multiple of %d, of shape %v", len(values), w.row, w.shape)
	}
	if err := binary.Write(w.buffer, binary.LittleEndian, values); err != nil {
		w.failed = fmt.Errorf("%w: %w", w.wrong("it cannot be written"), err)
		return w.failed
	}
	w.rows += int64(len(values)) / w.row
	return nil
}

// Close writes how many rows there are, and closes the file. No row at all is an error, and so is what failed before.
func (w *Writer[T]) Close() error {
	if w == nil || w.file == nil {
		return nil
	}
	err := w.failed
	if err == nil && w.rows == 0 {
		err = w.wrong("it has no rows: expected at least one")
	}
	if err == nil {
		if err = w.buffer.Flush(); err == nil {
			_, err = w.file.WriteAt(w.header(w.rows), 0)
		}
		if err == nil {
			err = atomicfile.Present(w.file)
		}
		if err != nil {
			err = fmt.Errorf("%w: %w", w.wrong("it cannot be written"), err)
		}
	}
	if e := w.file.Close(); err == nil && e != nil {
		err = fmt.Errorf("%w: %w", w.wrong("it cannot be written"), e)
	}
	w.file = nil
	return err
}
