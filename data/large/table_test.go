package large_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/data/large"
)

// npy is a file with a header of format 1.0, 2.0 or 3.0 as NumPy writes it, and so many bytes after it.
func npy(major byte, header string, body []byte) []byte {
	header += strings.Repeat(" ", 63) + "\n"
	out := append([]byte("\x93NUMPY"), major, 0)
	if major == 1 {
		out = binary.LittleEndian.AppendUint16(out, uint16(len(header)))
	} else {
		out = binary.LittleEndian.AppendUint32(out, uint32(len(header)))
	}
	return append(append(out, header...), body...)
}

// dict is the header of a shape.
func dict(descr, shape string) string {
	return fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape)
}

func file(t testing.TB, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.npy")
	require.NoError(t, os.WriteFile(path, content, 0o644))
	return path
}

// written is a file of rows that Create makes, with the numbers 0, 1, 2, ...
func written[T large.Value](t testing.TB, rows int, shape ...int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "written.npy")
	w, err := large.Create[T](path, shape...)
	require.NoError(t, err)
	row := make([]T, 1)
	for _, n := range shape {
		row = make([]T, int64(len(row))*n)
	}
	var next T
	for range rows {
		for i := range row {
			row[i] = next
			next++
		}
		require.NoError(t, w.Write(row...))
	}
	require.NoError(t, w.Close())
	return path
}

func open(t testing.TB, files map[string]string) *large.Table {
	t.Helper()
	table, err := large.Open(files)
	require.NoError(t, err)
	t.Cleanup(func() { _ = table.Close() })
	return table
}

// The bytes of np.save('x.npy', np.array([[1.5, -2], [0, 3]], dtype='<f4')), and its like in the other formats, with
// the rows in any order.
func TestFormats(t *testing.T) {
	body := []byte{0, 0, 0xc0, 0x3f, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0x40, 0x40} // IEEE 754, low byte first
	for _, major := range []byte{1, 2, 3} {
		table := open(t, map[string]string{"x": file(t, npy(major, dict("<f4", "(2, 2)"), body))})
		assert.Equal(t, 2, table.Rows())
		c := table.Columns()[0]
		assert.Equal(t, []any{"x", "float32", []int64{2}, int64(8)}, []any{c.Name, c.Type, c.Shape, c.Bytes})
		x, err := large.Gather[float32](table, "x", []int{1, 0, 1, 1})
		require.NoError(t, err)
		assert.Equal(t, []float32{0, 3, 1.5, -2, 0, 3, 0, 3}, x)
	}
	for _, header := range []string{
		`{"shape": (1L,), "descr": "<i8", "fortran_order": False}`, "{'descr':'<i8','fortran_order':False,'shape':(1,),}",
	} {
		table := open(t, map[string]string{"x": file(t, npy(1, header, []byte{0xfe, 255, 255, 255, 255, 255, 255, 255}))})
		x, err := large.Gather[int64](table, "x", []int{0})
		require.NoError(t, err)
		assert.Equal(t, []int64{-2}, x)
	}
}

// What is written is read: each type, rows of several shapes.
func TestWriter(t *testing.T) {
	back[float64](t)
	back[float32](t)
	back[int64](t)
	back[int32](t)
	back[uint8](t)

	path := filepath.Join(t.TempDir(), "x.npy")
	w, err := large.Create[float64](path, 2)
	require.NoError(t, err)
	assert.ErrorContains(t, w.Write(1, 2, 3), path+": 3 numbers are no rows: expected a multiple of 2, of shape [2]")
	require.NoError(t, w.Write(1, 2))
	_, err = large.Open(map[string]string{"x": path}) // not yet closed
	require.Error(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, w.Close())
	assert.ErrorContains(t, w.Write(1, 2), "the writer is closed")
	open(t, map[string]string{"x": path})

	w, err = large.Create[float64](path)
	require.NoError(t, err)
	assert.ErrorContains(t, w.Close(), "it has no rows")
	_, err = large.Create[float64](filepath.Join(path, "below"))
	assert.ErrorContains(t, err, "it cannot be made")
	for _, shape := range [][]int64{{0}, {-1}, {math.MaxInt64, 4}, make([]int64, 64)} {
		_, err := large.Create[float64](path, shape...)
		assert.ErrorContains(t, err, "a row has shape")
	}
}

func back[T large.Value](t *testing.T) {
	t.Helper()
	table := open(t, map[string]string{"a": written[T](t, 7), "b": written[T](t, 7, 2, 3)})
	a, err := large.Gather[T](table, "a", []int{2, 3, 4, 6, 0})
	require.NoError(t, err)
	assert.Equal(t, []T{2, 3, 4, 6, 0}, a)
	b, err := large.Gather[T](table, "b", []int{6, 0})
	require.NoError(t, err)
	assert.Equal(t, []T{36, 37, 38, 39, 40, 41, 0, 1, 2, 3, 4, 5}, b)
}

// Files that cannot be read are errors that name them and say what was expected.
func TestBadFiles(t *testing.T) {
	eight := make([]byte, 8)
	good := npy(1, dict("<f8", "(1,)"), eight)
	for want, content := range map[string][]byte{
		"no .npy file":                   []byte("x,y\n1,2\n3,4\n"),
		"it is no .npy file: expected":   {},
		"format 4.0":                     npy(4, dict("<f8", "(1,)"), eight),
		"the file has 20: expected":      good[:20],
		"has 7 bytes after it: expected": good[:len(good)-1],
		"has 9 bytes after it: expected": append(good[:len(good):len(good)], 0),
		"claims 4294967295 bytes": append(append([]byte("\x93NUMPY\x02\x00"), 255, 255, 255, 255),
			eight...),
		`its type is ">f8"`:               npy(1, dict(">f8", "(1,)"), eight),
		`its type is "|O"`:                npy(1, dict("|O", "(1,)"), eight),
		"descr is not the name of one":    npy(1, "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}", eight),
		"the order of Fortran":            npy(1, "{'descr': '<f8', 'fortran_order': True, 'shape': (1,)}", eight),
		`its fortran_order is "0"`:        npy(1, "{'descr': '<f8', 'fortran_order': 0, 'shape': (1,)}", eight),
		"a first dimension that counts":   npy(1, dict("<f8", "()"), eight),
		"claims 0 rows":                   npy(1, dict("<f8", "(0,)"), nil),
		"a row has shape [0]":             npy(1, dict("<f8", "(1, 0)"), eight),
		"claims 1152921504606846976 rows": npy(1, dict("|u1", "(1152921504606846976,)"), eight),
		"claims 9223372036854775807 rows": npy(1, dict("<f8", "(9223372036854775807,)"), eight),
		"fewer than 2^62 bytes":           npy(1, dict("<f8", "(1, 4611686018427387904, 4)"), eight),
		`the shape has the size "-1"`:     npy(1, dict("<f8", "(-1,)"), eight),
		"the shape is no tuple":           npy(1, dict("<f8", "1"), eight),
		"more than 64 dimensions":         npy(1, dict("<f8", "("+strings.Repeat("1,", 65)+")"), eight),
		`"shape" comes twice`:             npy(1, "{'shape': (1,), 'shape': (1,)}", eight),
		`unknown key "more"`:              npy(1, "{'more': 1}", eight),
		`it has ["descr"]`:                npy(1, "{'descr': '<f8'}", eight),
		"there is no {":                   npy(1, "", eight),
		"there is no } at the end":        npy(1, "{'descr': '<f8'", eight),
		"follows the }":                   npy(1, dict("<f8", "(1,)")+"x", eight),
		"expected UTF-8":                  npy(3, dict("\xff", "(1,)"), eight),
	} {
		path := file(t, content)
		_, err := large.Open(map[string]string{"age": path})
		require.ErrorContains(t, err, want)
		e := new(data.Error)
		require.True(t, errors.As(err, &e))
		assert.Equal(t, []string{path, "age"}, []string{e.Source, e.Column})
		assert.Contains(t, err.Error(), "expected", want)
	}
}

// What does not fit together, is not there or is no file, is an error too.
func TestOpenErrors(t *testing.T) {
	three, four := written[float64](t, 3), written[float32](t, 4)
	_, err := large.Open(map[string]string{"x": three, "y": four})
	assert.ErrorContains(t, err, four+`, column "y": it has 4 rows: expected 3, as column "x" in `+three+" has")
	_, err = large.Open(map[string]string{"x": "/nowhere/x.npy"})
	assert.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, "/nowhere/x.npy")
	_, err = large.Open(map[string]string{"x": t.TempDir()})
	assert.ErrorContains(t, err, "it is no regular file")
	_, err = large.Open(nil)
	assert.ErrorContains(t, err, "expected a file for each column")

	table := open(t, map[string]string{"x": three, "y": three})
	_, err = large.Gather[float64](table, "z", []int{0})
	assert.ErrorContains(t, err, `column "z": no such column: the table has ["x" "y"]`)
	_, err = large.Gather[int64](table, "x", []int{0})
	assert.ErrorContains(t, err, `it has numbers of type float64: expected int64`)
	for _, row := range []int{-1, 3, math.MaxInt64, math.MinInt64} {
		_, err = large.Gather[float64](table, "x", []int{0, row})
		assert.ErrorContains(t, err, "expected 0 to 2")
	}
	_, err = large.Gather[float64](table, "x", []int{2, 3})
	assert.ErrorContains(t, err, "there is no row 3")
	none, err := large.Gather[float64](table, "x", nil)
	require.NoError(t, err)
	assert.Empty(t, none)
	_, err = large.Gather[float64](new(large.Table), "x", nil)
	assert.ErrorContains(t, err, "the table is empty")
	_, err = new(large.Table).Fingerprint()
	assert.ErrorContains(t, err, "the table is empty")
	require.NoError(t, table.Close())
	require.NoError(t, table.Close())
	_, err = large.Gather[float64](table, "x", []int{0})
	assert.ErrorIs(t, err, os.ErrClosed)
}

// A file that becomes shorter while it is open is an error of the rows that are gone, and of the fingerprint.
func TestShrinks(t *testing.T) {
	path := written[float64](t, 10000)
	table := open(t, map[string]string{"x": path})
	require.NoError(t, os.Truncate(path, 40000))
	_, err := large.Gather[float64](table, "x", []int{0, 9999})
	assert.ErrorContains(t, err, path+`, column "x": it ends at byte`)
	x, err := large.Gather[float64](table, "x", []int{4000})
	require.NoError(t, err)
	assert.Equal(t, []float64{4000}, x)
	_, err = table.Fingerprint()
	assert.ErrorContains(t, err, "it has 40000 bytes, and had 81024 when it was opened")
}

// A fingerprint is that of the content, wherever it lies; it sees each byte of a small file, the ends and the length of
// a large one, and the names and kinds of the columns.
func TestFingerprint(t *testing.T) {
	print := func(files map[string]string) string {
		table, err := large.Open(files)
		require.NoError(t, err)
		out, err := table.Fingerprint()
		require.NoError(t, err)
		require.NoError(t, table.Close())
		return out
	}
	for _, rows := range []int{1, 511, 512, 513, 30000, 32640, 32641, 100000} {
		path := written[float64](t, rows)
		want := print(map[string]string{"x": path})
		assert.Equal(t, want, print(map[string]string{"x": written[float64](t, rows)}))
		assert.NotEqual(t, want, print(map[string]string{"z": path}))
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, at := range []int{1024, len(content) - 1, 1024 + (len(content)-1025)/3} {
			if rows > 32640 && at != 1024 && at != len(content)-1 {
				continue // above 256 KiB some blocks are read
			}
			content[at] ^= 1
			require.NoError(t, os.WriteFile(path, content, 0o644))
			assert.NotEqual(t, want, print(map[string]string{"x": path}), "rows %d, byte %d", rows, at)
			content[at] ^= 1
		}
	}
	assert.NotEqual(t, print(map[string]string{"x": written[int64](t, 5)}),
		print(map[string]string{"x": written[float64](t, 5)}))
}
