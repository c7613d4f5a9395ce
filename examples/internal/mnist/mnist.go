// Package mnist reads the images of handwritten digits of MNIST (LeCun, Cortes and Burges 1998) for the examples. The
// repository carries none of them: a user names the folder of the four IDX files, plain or compressed, as they have
// been distributed since 1998 (yann.lecun.com/exdb/mnist and its mirrors; many packages have them):
//
//	train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte
package mnist

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// The size of the data.
const (
	Side    = 28
	Classes = 10
)

// Data are images and their digits.
type Data struct {
	Side   int       // of an image, in pixels
	Pixels []float64 // of one image after the other, row by row, [n · Side²], from 0 (background) to 1
	Labels []int     // [n]
}

// Len is the number of images.
func (d Data) Len() int { return len(d.Labels) }

// Image is the pixels of image i.
func (d Data) Image(i int) []float64 { return d.Pixels[i*d.Side*d.Side : (i+1)*d.Side*d.Side] }

// Read reads the training and the test images from the files in dir.
func Read(dir string) (train, test Data, err error) {
	if train, err = read(dir, "train"); err == nil {
		test, err = read(dir, "t10k")
	}
	return train, test, err
}

func read(dir, part string) (Data, error) {
	pixels, n, images, err := idx(dir, part+"-images-idx3-ubyte", "images", Side, Side)
	if err != nil {
		return Data{}, err
	}
	labels, m, digits, err := idx(dir, part+"-labels-idx1-ubyte", "labels")
	if err != nil {
		return Data{}, err
	}
	if n != m {
		return Data{}, fmt.Errorf("mnist: %s has %d images, and %s has %d labels: expected as many", images, n, digits, m)
	}
	d := Data{Side: Side, Pixels: make([]float64, len(pixels)), Labels: make([]int, n)}
	for i, v := range pixels {
		d.Pixels[i] = float64(v) / 255
	}
	for i, v := range labels {
		if v >= Classes {
			return Data{}, fmt.Errorf("mnist: label %d in %s is %d, expected 0 to %d", i, digits, v, Classes-1)
		}
		d.Labels[i] = int(v)
	}
	return d, nil
}

// Shrink is the images with side by side pixels, each the mean over the area that it covers: pixel (i, j) covers rows
// from 28i/side to 28(i+1)/side, where a row that is covered in part counts in part.
func (d Data) Shrink(side int) (Data, error) {
	if side < 1 || side > d.Side {
		return Data{}, fmt.Errorf("mnist: images of %d pixels cannot shrink to %d", d.Side, side)
	}
	weights := make([][]float64, side) // of old pixels in each new one, along one axis
	width := float64(d.Side) / float64(side)
	for i := range weights {
		weights[i] = make([]float64, d.Side)
		low, high := float64(i)*width, float64(i+1)*width
		for j := range weights[i] {
			weights[i][j] = max(0, math.Min(high, float64(j+1))-math.Max(low, float64(j))) / width
		}
	}
	s := Data{Side: side, Pixels: make([]float64, d.Len()*side*side), Labels: d.Labels}
	rows := make([]float64, side*d.Side)
	for n := range d.Len() {
		clear(rows)
		for y, w := range weights {
			for from, share := range w {
				if share == 0 {
					continue
				}
				for x, v := range d.Image(n)[from*d.Side : (from+1)*d.Side] {
					rows[y*d.Side+x] += share * v
				}
			}
		}
		image := s.Image(n)
		for y := range side {
			for x, w := range weights {
				for from, share := range w {
					image[y*side+x] += share * rows[y*d.Side+from]
				}
			}
		}
	}
	return s, nil
}

// Stratified is n images, as many of each digit as of any other, drawn at random by the seed, and all others in their
// order.
func (d Data) Stratified(n int, seed uint64) (chosen, rest Data, err error) {
	if n < Classes || n%Classes != 0 || n > d.Len() {
		return chosen, rest, fmt.Errorf("mnist: %d images cannot be the same number of each of %d digits out of %d", n,
			Classes, d.Len())
	}
	left := [Classes]int{}
	for i := range left {
		left[i] = n / Classes
	}
	taken := make([]bool, d.Len())
	chosen, rest = Data{Side: d.Side}, Data{Side: d.Side}
	for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(d.Len()) {
		if label := d.Labels[i]; left[label] > 0 {
			left[label]--
			taken[i] = true
			chosen.add(d, i)
		}
	}
	for digit, missing := range left {
		if missing > 0 {
			return chosen, rest, fmt.Errorf("mnist: digit %d lacks %d images of %d", digit, missing, n/Classes)
		}
	}
	for i, out := range taken {
		if !out {
			rest.add(d, i)
		}
	}
	return chosen, rest, nil
}

// Join is these images and others after them.
func (d Data) Join(other Data) Data {
	return Data{Side: d.Side, Pixels: append(d.Pixels[:len(d.Pixels):len(d.Pixels)], other.Pixels...),
		Labels: append(d.Labels[:len(d.Labels):len(d.Labels)], other.Labels...)}
}

// First is the first n images.
func (d Data) First(n int) Data {
	n = min(n, d.Len())
	return Data{Side: d.Side, Pixels: d.Pixels[:n*d.Side*d.Side], Labels: d.Labels[:n]}
}

func (d *Data) add(from Data, i int) {
	d.Pixels = append(d.Pixels, from.Image(i)...)
	d.Labels = append(d.Labels, from.Labels[i])
}
