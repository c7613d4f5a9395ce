// Package cifar reads the images of CIFAR-10 (Krizhevsky 2009, www.cs.toronto.edu/~kriz/cifar.html) for the examples.
// The repository carries none of them: a user names the folder of the binary version, with data_batch_1.bin to
// data_batch_5.bin, of which the first few are enough, and test_batch.bin.
package cifar

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// The size of the data.
const (
	Side     = 32
	Channels = 3
	Classes  = 10
	record   = 1 + Channels*Side*Side // a label, and the red, green and blue pixels row by row
)

// Data are images and their classes.
type Data struct {
	Side   int
	Pixels []float32 // of one image after the other, [n, 3, side, side], from −1 to 1
	Labels []int     // [n]
}

// Len is the number of images.
func (d Data) Len() int { return len(d.Labels) }

// files is how many parts the training images have.
const files = 5

// expected says what a folder must hold.
const expected = "expected the binary version of CIFAR-10: data_batch_1.bin to data_batch_5.bin and test_batch.bin, " +
	"or make them from an archive of images with -convert ZIP"

// Read reads the training and the test images from the files in dir. The last parts of the training images may be
// missing, as Convert leaves them. A part in the middle may not: a copy that broke off would pass for less data.
func Read(dir string) (train, test Data, err error) {
	last := 1
	for i := files; i > 1 && last == 1; i-- {
		switch _, err := os.Stat(batch(dir, i)); {
		case err == nil:
			last = i
		case !errors.Is(err, fs.ErrNotExist):
			return train, test, fmt.Errorf("cifar: %w", err)
		}
	}
	for i := range last {
		part, err := read(batch(dir, i+1))
		if err != nil && i > 0 && errors.Is(err, fs.ErrNotExist) {
			return train, test, fmt.Errorf("%w, but %s is there: %s", err, filepath.Base(batch(dir, last)), expected)
		}
		if err != nil {
			return train, test, explained(err)
		}
		train.Side = Side
		train.Pixels, train.Labels = append(train.Pixels, part.Pixels...), append(train.Labels, part.Labels...)
	}
	test, err = read(filepath.Join(dir, "test_batch.bin"))
	return train, test, explained(err)
}

// batch is the path of a part of the training images.
func batch(dir string, i int) string { return filepath.Join(dir, fmt.Sprintf("data_batch_%d.bin", i)) }

// explained says of a missing file what is expected.
func explained(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", err, expected)
	}
	return err
}

func read(path string) (Data, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Data{}, fmt.Errorf("cifar: %w", err)
	}
	if len(raw) == 0 || len(raw)%record != 0 {
		return Data{}, fmt.Errorf("cifar: %s has %d bytes: expected a multiple of %d above 0, the size of an image and its "+
			"class; a file of CIFAR-10 has %d", path, len(raw), record, 10000*record)
	}
	n := len(raw) / record
	d := Data{Side: Side, Pixels: make([]float32, 0, n*(record-1)), Labels: make([]int, n)}
	for i := range n {
		image := raw[i*record : (i+1)*record]
		if image[0] >= Classes {
			return Data{}, fmt.Errorf("cifar: the class of image %d in %s is %d: expected 0 to %d", i, path, image[0],
				Classes-1)
		}
		d.Labels[i] = int(image[0])
		for _, v := range image[1:] {
			d.Pixels = append(d.Pixels, float32(v)/127.5-1)
		}
	}
	return d, nil
}

// Write writes images as Read reads them.
func Write(path string, d Data) error {
	if d.Side != Side {
		return fmt.Errorf("cifar: images of side %d: expected %d", d.Side, Side)
	}
	out := make([]byte, 0, d.Len()*record)
	for i, label := range d.Labels {
		out = append(out, byte(label))
		for _, v := range d.Pixels[i*(record-1) : (i+1)*(record-1)] {
			out = append(out, byte(min(max((v+1)*127.5+0.5, 0), 255)))
		}
	}
	return atomicfile.Write(path, out, 0o644)
}

// Part are the images from one to before another.
func (d Data) Part(from, to int) Data {
	size := Channels * d.Side * d.Side
	return Data{Side: d.Side, Pixels: d.Pixels[from*size : to*size], Labels: d.Labels[from:to]}
}

// Shuffled are n of the images in a random order.
func (d Data) Shuffled(n int, seed uint64) (Data, error) {
	if n < 1 || n > d.Len() {
		return Data{}, fmt.Errorf("cifar: %d images: expected from 1 to the %d that there are", n, d.Len())
	}
	s, size := Data{Side: d.Side}, Channels*d.Side*d.Side
	for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(d.Len())[:n] {
		s.Pixels, s.Labels = append(s.Pixels, d.Pixels[i*size:(i+1)*size]...), append(s.Labels, d.Labels[i])
	}
	return s, nil
}

// Halved are the images with every two by two pixels averaged.
func (d Data) Halved() Data {
	half := d.Side / 2
	h := Data{Side: half, Pixels: make([]float32, 0, len(d.Pixels)/4), Labels: d.Labels}
	for plane := range d.Len() * Channels {
		p := d.Pixels[plane*d.Side*d.Side:]
		for r := range half {
			for c := range half {
				at := 2*r*d.Side + 2*c
				h.Pixels = append(h.Pixels, (p[at]+p[at+1]+p[at+d.Side]+p[at+d.Side+1])/4)
			}
		}
	}
	return h
}

// Synthetic makes n images without data, to try things out: each class has a pattern of its own under noise. The
// patterns are the same for every seed.
func Synthetic(n, side int, seed uint64) Data {
	size := Channels * side * side
	patterns := make([][]float32, Classes)
	fixed := rand.New(rand.NewPCG(10, 0))
	for k := range patterns {
		patterns[k] = make([]float32, size)
		for c := range Channels {
			x, y := fixed.IntN(side/2), fixed.IntN(side/2)
			for r := y; r < y+side/2; r++ {
				for q := x; q < x+side/2; q++ {
					patterns[k][(c*side+r)*side+q] = 1
				}
			}
		}
	}
	random := rand.New(rand.NewPCG(seed, 1))
	d := Data{Side: side, Pixels: make([]float32, 0, n*size), Labels: make([]int, n)}
	for i := range n {
		d.Labels[i] = i % Classes
		for _, v := range patterns[d.Labels[i]] {
			d.Pixels = append(d.Pixels, v-0.5+0.7*float32(random.NormFloat64()))
		}
	}
	return d
}
