package cifar

import (
	"archive/zip"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // the formats of the images
	_ "image/png"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Convert makes the binary files from an archive of images by class, train/3/name.jpg and test/3/name.png, as copies of
// CIFAR-10 are often passed on. The training images go to one file.
func Convert(archive, dir string) error {
	reader, err := zip.OpenReader(archive)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cifar: %w", err)
	}
	if err != nil {
		return fmt.Errorf("cifar: %s: %w: expected a whole archive, with images of %d by %d pixels as train/<class>/<name> "+
			"and test/<class>/<name>", archive, err, Side, Side)
	}
	defer reader.Close()
	parts := map[string]*Data{"train": {Side: Side}, "test": {Side: Side}}
	for _, file := range reader.File {
		names := strings.Split(file.Name, "/")
		if file.FileInfo().IsDir() || len(names) != 3 || parts[names[0]] == nil {
			continue
		}
		class, err := strconv.Atoi(names[1])
		if err != nil || class < 0 || class >= Classes {
			return fmt.Errorf("cifar: %s in %s: expected a class from 0 to %d", file.Name, archive, Classes-1)
		}
		if err := parts[names[0]].add(file, class); err != nil {
			return fmt.Errorf("cifar: %s in %s: %w", file.Name, archive, err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, d := range parts {
		if d.Len() == 0 {
			return fmt.Errorf("cifar: %s has no images in %s: expected %s/<class>/<name>", archive, name, name)
		}
		to := map[string]string{"train": "data_batch_1.bin", "test": "test_batch.bin"}[name]
		if err := Write(filepath.Join(dir, to), *d); err != nil {
			return err
		}
	}
	return nil
}

// add reads one image.
func (d *Data) add(file *zip.File, class int) error {
	open, err := file.Open()
	if err != nil {
		return err
	}
	defer open.Close()
	picture, _, err := image.Decode(open)
	if err != nil {
		return err
	}
	b := picture.Bounds()
	if b.Dx() != Side || b.Dy() != Side {
		return fmt.Errorf("%d by %d pixels: expected %d by %d", b.Dx(), b.Dy(), Side, Side)
	}
	at := len(d.Pixels)
	d.Pixels = append(d.Pixels, make([]float32, Channels*Side*Side)...)
	for r := range Side {
		for c := range Side {
			red, green, blue, _ := picture.At(b.Min.X+c, b.Min.Y+r).RGBA()
			for k, v := range []uint32{red, green, blue} {
				d.Pixels[at+(k*Side+r)*Side+c] = float32(v>>8)/127.5 - 1
			}
		}
	}
	d.Labels = append(d.Labels, class)
	return nil
}
