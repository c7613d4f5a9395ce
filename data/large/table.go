package large

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"maps"
	"math/bits"
	"os"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/data"
)

// Value is a type of the numbers in a file.
type Value interface {
	float64 | float32 | int64 | int32 | uint8
}

// Column says what a column of a [Table] is.
type Column struct {
	// Name is that under which the file was opened.
	Name string
	// File is its path.
	File string
	// Type is float64, float32, int64, int32 or uint8.
	Type string
	// Shape is that of a row: empty for one number.
	Shape []int64
	// Bytes is what a row takes.
	Bytes int64
}

// Table is a number of columns in files, of as many rows each. Make one with [Open]. Any number of goroutines may read
// it.
type Table struct {
	rows    int64
	columns []column // by name
}

type column struct {
	Column
	file *os.File
	head *header
}

// mostBytes is what one call reads at most.
const mostBytes = 1 << 32

// Open opens columns: the .npy file of each name. A file that is damaged, of another type or order, or of another
// number of rows than the others is an error, a *[data.Error] that says what was expected. Close the table at the end.
func Open(files map[string]string) (*Table, error) {
	if len(files) == 0 {
		return nil, &data.Error{Row: -1, Problem: "there are no files to open: expected a file for each column"}
	}
	t := &Table{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		c, err := openColumn(name, files[name])
		if err != nil {
			_ = t.Close()
			return nil, err
		}
		t.columns = append(t.columns, *c)
		if first := t.columns[0]; c.head.rows != first.head.rows {
			_ = t.Close()
			return nil, c.wrong("it has %d rows: expected %d, as column %q in %s has", c.head.rows, first.head.rows,
				first.Name, first.File)
		}
		t.rows = c.head.rows
	}
	return t, nil
}

func openColumn(name, path string) (*column, error) {
	c := &column{Column: Column{Name: name, File: path}}
	// A named pipe would wait for a writer, so look before opening.
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", c.wrong("expected a .npy file"), err)
	}
	if !info.Mode().IsRegular() {
		return nil, c.wrong("it is no regular file: expected a .npy file")
	}
	if c.file, err = os.Open(path); err != nil {
		return nil, fmt.Errorf("%w: %w", c.wrong("expected a .npy file"), err)
	}
	if info, err = c.file.Stat(); err == nil {
		c.head, err = readHeader(c.file, info.Size())
	}
	if err != nil {
		_ = c.file.Close()
		return nil, c.wrong("%v", err)
	}
	c.Type, c.Shape, c.Bytes = c.head.kind.name, c.head.shape, c.head.row
	return c, nil
}

// wrong is an error about the file of a column.
func (c *column) wrong(problem string, args ...any) *data.Error {
	return &data.Error{Source: c.File, Column: c.Name, Row: -1, Problem: fmt.Sprintf(problem, args...)}
}

// Rows is the number of rows.
func (t *Table) Rows() int {
	if t == nil {
		return 0
	}
	return int(t.rows)
}

// Columns are the columns, by name.
func (t *Table) Columns() []Column {
	if t == nil {
		return nil
	}
	out := make([]Column, len(t.columns))
	for i, c := range t.columns {
		out[i] = c.Column
		out[i].Shape = slices.Clone(c.Shape)
	}
	return out
}

// Close closes the files. Reads after it are errors.
func (t *Table) Close() error {
	if t == nil {
		return nil
	}
	var all []error
	for _, c := range t.columns {
		if err := c.file.Close(); !errors.Is(err, os.ErrClosed) {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// Gather reads rows of a column, from 0 and in any order, one after another into a new slice. T must be the type of the
// column. A row that is not there, more than 4 GiB in a call, and a file that has become shorter are errors.
func Gather[T Value](t *Table, name string, rows []int) ([]T, error) {
	if t == nil || len(t.columns) == 0 {
		return nil, &data.Error{Row: -1, Column: name, Problem: "the table is empty: expected one that large.Open made"}
	}
	i := slices.IndexFunc(t.columns, func(c column) bool { return c.Name == name })
	if i < 0 {
		names := []string{}
		for _, c := range t.columns {
			names = append(names, c.Name)
		}
		return nil, &data.Error{Row: -1, Column: name, Problem: fmt.Sprintf("no such column: the table has %q", names)}
	}
	c := &t.columns[i]
	var zero T
	if have := fmt.Sprintf("%T", zero); have != c.Type {
		return nil, c.wrong("it has numbers of type %s: expected %s", c.Type, have)
	}
	if high, low := bits.Mul64(uint64(len(rows)), uint64(c.Bytes)); high != 0 || low > mostBytes {
		return nil, c.wrong("%d rows of %d bytes: expected at most %d bytes at once", len(rows), c.Bytes, int64(mostBytes))
	}
	raw := make([]byte, int64(len(rows))*c.Bytes)
	if err := c.read(rows, raw); err != nil {
		return nil, err
	}
	out := make([]T, int64(len(raw))/c.head.kind.bytes)
	if _, err := binary.Decode(raw, binary.LittleEndian, out); err != nil {
		return nil, c.wrong("%v", err)
	}
	return out, nil
}

// read fills raw with rows. Neighbours are read in one call.
func (c *column) read(rows []int, raw []byte) error {
	for from := 0; from < len(rows); {
		first, to := int64(rows[from]), from+1
		if first < 0 || first >= c.head.rows {
			return c.wrong("there is no row %d: expected 0 to %d", first, c.head.rows-1)
		}
		for to < len(rows) && rows[to] == rows[to-1]+1 && int64(rows[to]) < c.head.rows {
			to++
		}
		at := c.head.start + first*c.Bytes
		n, err := c.file.ReadAt(raw[int64(from)*c.Bytes:int64(to)*c.Bytes], at)
		switch {
		case err == io.EOF:
			return c.wrong("it ends at byte %d, and was longer when it was opened: expected %d rows of %d bytes from byte %d",
				at+int64(n), c.head.rows, c.Bytes, c.head.start)
		case err != nil:
			return fmt.Errorf("%w: %w", c.wrong("row %d cannot be read", first), err)
		}
		from = to
	}
	return nil
}

// What a fingerprint reads of a file: so many blocks, evenly spread, with the first and the last.
const (
	blocks     = 64
	blockBytes = 4096
)

// Fingerprint identifies the columns: their names, types, shapes and numbers of rows, and a checksum of the header, of
// the size and of 64 blocks of 4 KiB that are spread evenly over the file. Files of up to 256 KiB are read as a whole;
// in a longer one a change between the blocks goes unseen. Where a file lies and when it was written do not count.
func (t *Table) Fingerprint() (string, error) {
	if t == nil || len(t.columns) == 0 {
		return "", &data.Error{Row: -1, Problem: "the table is empty: expected one that large.Open made"}
	}
	var out strings.Builder
	for i := range t.columns {
		c := &t.columns[i]
		sum, err := c.checksum()
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "%q %s %d×%v %016x ", c.Name, c.Type, c.head.rows, c.Shape, sum)
	}
	return strings.TrimSpace(out.String()), nil
}

func (c *column) checksum() (uint64, error) {
	info, err := c.file.Stat()
	if err != nil {
		return 0, fmt.Errorf("%w: %w", c.wrong("it cannot be read"), err)
	}
	size := info.Size()
	if want := c.head.start + c.head.rows*c.Bytes; size != want {
		return 0, c.wrong("it has %d bytes, and had %d when it was opened", size, want)
	}
	h := crc64.New(crc64.MakeTable(crc64.ECMA))
	_, _ = h.Write(binary.LittleEndian.AppendUint64(slices.Clone(c.head.text), uint64(size)))
	block := make([]byte, blockBytes)
	last, step := max(0, size-blockBytes), int64(blockBytes)
	if size > blocks*blockBytes {
		step = last/(blocks-1) + 1
	}
	for at := int64(0); at < size; at += step {
		n, err := c.file.ReadAt(block, min(at, last))
		if err != nil && err != io.EOF {
			return 0, fmt.Errorf("%w: %w", c.wrong("it cannot be read"), err)
		}
		_, _ = h.Write(block[:n])
	}
	return h.Sum64(), nil
}
