package cifar

import (
	"archive/zip"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An image of one colour for each class, in an archive, becomes binary files that are read as it was.
func TestConvertAndRead(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "images.zip")
	write := func(names ...string) {
		file, err := os.Create(archive)
		require.NoError(t, err)
		z := zip.NewWriter(file)
		for _, name := range names {
			w, err := z.Create(name)
			require.NoError(t, err)
			picture := image.NewRGBA(image.Rect(0, 0, Side, Side))
			for r := range Side {
				for c := range Side {
					picture.Set(c, r, color.RGBA{255, uint8(r), uint8(c), 255})
				}
			}
			require.NoError(t, png.Encode(w, picture))
		}
		require.NoError(t, z.Close())
		require.NoError(t, file.Close())
	}
	write("train/3/a.png", "train/0/b.png", "test/9/c.png", "notes.txt/x/y/z")
	require.NoError(t, Convert(archive, dir))
	train, test, err := Read(dir)
	require.NoError(t, err)
	assert.Equal(t, []int{3, 0}, train.Labels)
	assert.Equal(t, []int{9}, test.Labels)
	pixel := func(channel, r, c int) float64 { return float64(train.Pixels[(channel*Side+r)*Side+c]) }
	assert.InDelta(t, 1, pixel(0, 5, 7), 1e-6)
	assert.InDelta(t, 5/127.5-1, pixel(1, 5, 7), 1e-6)
	assert.InDelta(t, 7/127.5-1, pixel(2, 5, 7), 1e-6)
	half := train.Halved()
	require.Equal(t, 16, half.Side)
	assert.InDelta(t, 10.5/127.5-1, float64(half.Pixels[(1*16+5)*16+3]), 1e-6, "the mean of rows 10 and 11")

	write("train/10/a.png")
	require.ErrorContains(t, Convert(archive, dir), "train/10/a.png in "+archive+": expected a class from 0 to 9")
	write("train/1/a.png")
	require.ErrorContains(t, Convert(archive, dir), "has no images in test: expected test/<class>/<name>")

	whole, err := os.ReadFile(archive)
	require.NoError(t, err)
	for _, part := range [][]byte{nil, whole[:len(whole)/2], []byte("no archive")} {
		require.NoError(t, os.WriteFile(archive, part, 0o644))
		require.EqualError(t, Convert(archive, dir), "cifar: "+archive+": zip: not a valid zip file: expected a whole "+
			"archive, with images of 32 by 32 pixels as train/<class>/<name> and test/<class>/<name>")
	}
	none := filepath.Join(dir, "none.zip")
	require.EqualError(t, Convert(none, dir), "cifar: open "+none+": no such file or directory")

	path := filepath.Join(dir, "test_batch.bin")
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	raw[0] = 10
	require.NoError(t, os.WriteFile(path, raw, 0o644))
	_, _, err = Read(dir)
	require.ErrorContains(t, err, "the class of image 0 in "+path+" is 10: expected 0 to 9")
	require.NoError(t, os.WriteFile(path, raw[1:], 0o644))
	_, _, err = Read(dir)
	require.ErrorContains(t, err, path+" has 3072 bytes: expected a multiple of 3073 above 0")
	require.ErrorContains(t, err, "a file of CIFAR-10 has 30730000")
	require.NoError(t, os.Remove(path))
	_, _, err = Read(dir)
	require.ErrorContains(t, err, path)
}

// Parts that follow each other are read, however many. One that is missing before others is an error that names it, and
// so is a first part or a test part that is not there.
func TestMissingFiles(t *testing.T) {
	const version = "expected the binary version of CIFAR-10: data_batch_1.bin to data_batch_5.bin and test_batch.bin, " +
		"or make them from an archive of images with -convert ZIP"
	dir := t.TempDir()
	write := func(name string) { require.NoError(t, Write(filepath.Join(dir, name), Synthetic(3, Side, 1))) }
	refused := func(name string) {
		_, _, err := Read(dir)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorContains(t, err, filepath.Join(dir, name))
		require.ErrorContains(t, err, version)
	}
	refused("data_batch_1.bin")
	write("data_batch_1.bin")
	refused("test_batch.bin")
	write("test_batch.bin")
	for n := 1; n <= 5; n++ {
		write(fmt.Sprintf("data_batch_%d.bin", n))
		train, test, err := Read(dir)
		require.NoError(t, err)
		require.Equal(t, 3*n, train.Len())
		require.Equal(t, 3, test.Len())
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "data_batch_3.bin")))
	refused("data_batch_3.bin")
	_, _, err := Read(dir)
	require.ErrorContains(t, err, "but data_batch_5.bin is there")
	write("data_batch_3.bin")
	require.NoError(t, os.Remove(filepath.Join(dir, "data_batch_1.bin")))
	refused("data_batch_1.bin")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data_batch_1.bin"), nil, 0o644))
	_, _, err = Read(dir)
	require.ErrorContains(t, err, "data_batch_1.bin has 0 bytes: expected a multiple of 3073")
}

func TestShuffledAndSynthetic(t *testing.T) {
	d := Synthetic(30, 8, 1)
	require.Equal(t, d, Synthetic(30, 8, 1))
	require.NotEqual(t, d.Pixels, Synthetic(30, 8, 2).Pixels)
	s, err := d.Shuffled(20, 1)
	require.NoError(t, err)
	require.Equal(t, 20, s.Len())
	require.Equal(t, s.Labels[5:10], s.Part(5, 10).Labels)
	require.Len(t, s.Part(5, 10).Pixels, 5*3*64)
	_, err = d.Shuffled(31, 1)
	require.ErrorContains(t, err, "31 images: expected from 1 to the 30")
}
