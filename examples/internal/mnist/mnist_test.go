package mnist

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// write makes a folder of the four files with n images each, image i of which has pixels i + row and digit i mod 10.
func write(t *testing.T, n int, packed bool) string {
	t.Helper()
	dir := t.TempDir()
	for _, part := range []string{"train", "t10k"} {
		images := binary.BigEndian.AppendUint32(nil, 0x803)
		labels := binary.BigEndian.AppendUint32(nil, 0x801)
		labels = binary.BigEndian.AppendUint32(labels, uint32(n))
		for _, v := range []int{n, Side, Side} {
			images = binary.BigEndian.AppendUint32(images, uint32(v))
		}
		for i := range n {
			labels = append(labels, byte(i%Classes))
			for p := range Side * Side {
				images = append(images, byte(i+p/Side))
			}
		}
		for name, data := range map[string][]byte{part + "-images-idx3-ubyte": images, part + "-labels-idx1-ubyte": labels} {
			if packed {
				var b bytes.Buffer
				w := gzip.NewWriter(&b)
				_, err := w.Write(data)
				require.NoError(t, err)
				require.NoError(t, w.Close())
				name, data = name+".gz", b.Bytes()
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
		}
	}
	return dir
}

func TestRead(t *testing.T) {
	for _, packed := range []bool{false, true} {
		train, test, err := Read(write(t, 30, packed))
		require.NoError(t, err)
		require.Equal(t, 30, train.Len())
		require.Equal(t, train, test)
		assert.Equal(t, 3, train.Labels[23])
		assert.InDelta(t, (23.0+5)/255, train.Image(23)[5*Side+9], 1e-15)
	}
}

// What is wrong with a folder is said with the file, what was found and what was expected.
func TestBadFolders(t *testing.T) {
	const images, labels = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
	for _, c := range []struct {
		name, file string
		change     func([]byte) []byte
		want       string
	}{
		{"no file", labels, nil, "neither train-labels-idx1-ubyte nor"},
		{"another format", images, func(b []byte) []byte { b[3] = 1; return b }, "with 0x801, and"},
		{"another size", images, func(b []byte) []byte { b[11] = 32; return b }, "has 32 as its dimension 1, expected 28"},
		{"no images", images, func(b []byte) []byte { b[7] = 0; return b }, "claims 0 images"},
		{"too many images", images, func(b []byte) []byte { b[4] = 255; return b }, "expected 1 to"},
		{"truncated", images, func(b []byte) []byte { return b[:1000] }, "only its header and 984 bytes, 1 whole " +
			"images: expected 23520 bytes, 30 images of 784"},
		{"longer", images, func(b []byte) []byte { return append(b, 0) }, "more than 23520"},
		{"a short header", labels, func(b []byte) []byte { return b[:6] }, "ends within its header of 8 bytes"},
		{"a label", labels, func(b []byte) []byte { b[8+4] = 10; return b }, "label 4 in FILE is 10, expected 0 to 9"},
		{"fewer labels", labels, func(b []byte) []byte { b[7] = 29; return b[:len(b)-1] }, "train-images-idx3-ubyte has " +
			"30 images, and FILE has 29 labels: expected as many"},
	} {
		dir := write(t, 30, false)
		file := filepath.Join(dir, c.file)
		if c.change == nil {
			require.NoError(t, os.Remove(file))
		} else {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, c.change(data), 0o600))
		}
		_, _, err := Read(dir)
		assert.ErrorContains(t, err, strings.ReplaceAll(c.want, "FILE", file), c.name)
		if c.change != nil {
			assert.ErrorContains(t, err, file, c.name)
		} else {
			assert.ErrorContains(t, err, dir, c.name)
		}
	}
}

// A compressed file that a download left incomplete says so: how much of it is there, and how much should be.
func TestCutFiles(t *testing.T) {
	const n = 30
	dir := write(t, n, true)
	for name, size := range map[string]int{"images-idx3-ubyte": Side * Side, "labels-idx1-ubyte": 1} {
		path := filepath.Join(dir, "train-"+name+".gz")
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		what := name[:6]
		header := map[bool]int{true: 8, false: 16}[size == 1]
		of := func(file []byte) string {
			require.NoError(t, os.WriteFile(path, file, 0o600))
			_, _, err := Read(dir)
			require.ErrorContains(t, err, "mnist: "+path)
			return err.Error()
		}
		all := fmt.Sprintf("its header and %d bytes, 30 whole %s: expected %d bytes, 30 %s of %d", n*size, what, n*size,
			what, size)
		assert.Contains(t, of(nil), fmt.Sprintf(" is cut: it ends before its first byte of data: expected a header of %d "+
			"bytes, and %s of %d bytes each: EOF", header, what, size))
		assert.Contains(t, of(whole[:5]), " is cut: it ends before its first byte of data")
		assert.Contains(t, of(whole[:len(whole)-3]), " is cut: it ends after "+all+": unexpected EOF")
		changed := slices.Clone(whole)
		changed[len(changed)-8] ^= 1 // of the checksum
		assert.Contains(t, of(changed), " is damaged after "+all)
		assert.Contains(t, of([]byte("it is no gzip")), " is no file of gzip: expected one")
		require.NoError(t, os.WriteFile(path, whole, 0o600))
	}
}

// A constant image stays constant, the mean of an image stays what it is, and a row that lies within two new ones is
// shared by their areas: 28 rows to 16 are 1.75 each, so that new row 0 is (row 0 + 0.75 row 1)/1.75.
func TestShrink(t *testing.T) {
	d := Data{Side: Side, Pixels: make([]float64, Side*Side), Labels: []int{1}}
	for i := range d.Pixels {
		d.Pixels[i] = float64(i/Side) + 0.01*float64(i%Side)
	}
	s, err := d.Shrink(16)
	require.NoError(t, err)
	mean := func(x []float64) (m float64) {
		for _, v := range x {
			m += v / float64(len(x))
		}
		return m
	}
	assert.InDelta(t, mean(d.Pixels), mean(s.Pixels), 1e-12)
	assert.InDelta(t, (0+0.75*1)/1.75*1.01, s.Pixels[0], 1e-12)
	assert.InDelta(t, (0.25*1+2*1+0.5*3)/1.75, s.Pixels[16]-0.01*0.75/1.75, 1e-12)
	same, err := d.Shrink(Side)
	require.NoError(t, err)
	assert.InDeltaSlice(t, d.Pixels, same.Pixels, 1e-15)
	_, err = d.Shrink(29)
	assert.Error(t, err)
	assert.False(t, math.IsNaN(s.Pixels[255]))
}

// A stratified choice has the same number of each digit, is disjoint from the rest, and is another with another seed.
func TestStratified(t *testing.T) {
	train, _, err := Read(write(t, 100, false))
	require.NoError(t, err)
	chosen, rest, err := train.Stratified(50, 1)
	require.NoError(t, err)
	counts := [Classes]int{}
	for _, l := range chosen.Labels {
		counts[l]++
	}
	assert.Equal(t, [Classes]int{5, 5, 5, 5, 5, 5, 5, 5, 5, 5}, counts)
	assert.Equal(t, 50, rest.Len())
	seen := map[float64]int{} // the first pixel tells the images apart
	for _, d := range []Data{chosen, rest} {
		for i := range d.Len() {
			seen[d.Image(i)[0]]++
		}
	}
	assert.Len(t, seen, 100)
	other, _, err := train.Stratified(50, 2)
	require.NoError(t, err)
	assert.NotEqual(t, chosen.Pixels, other.Pixels)
	_, _, err = train.Stratified(55, 1)
	assert.ErrorContains(t, err, "55 images")
	_, _, err = train.First(20).Stratified(50, 1)
	assert.Error(t, err)
	assert.Equal(t, 70, rest.Join(train.First(20)).Len())
}
