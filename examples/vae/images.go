package main

import (
	"math"
	"math/rand/v2"

	"github.com/kelvin-ppl/kelvin/examples/internal/mnist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// side is that of an image, in pixels.
const side = mnist.Side

// images are n images of pixels 0 and 1, one after the other, row by row.
type images struct {
	n      int
	pixels []float32
}

// tensor is the images from to to, of shape [n, side²].
func (x images) tensor(from, to int) (infer.Batch, error) {
	t, err := torch.FromSlice(x.pixels[from*side*side:to*side*side], to-from, side*side)
	return infer.Batch{"x": t}, err
}

// read gives the images to learn from and those to test with.
func read(dir string, seed uint64) (train, test images, err error) {
	r := rand.New(rand.NewPCG(seed, 0))
	if dir == "" {
		return rings(r, 2000), rings(r, 500), nil
	}
	a, b, err := mnist.Read(dir)
	if err != nil {
		return train, test, err
	}
	return binarised(r, a), binarised(r, b), nil
}

// binarised draws each pixel with its grey as the probability of 1.
func binarised(r *rand.Rand, d mnist.Data) images {
	x := images{n: d.Len(), pixels: make([]float32, len(d.Pixels))}
	for i, grey := range d.Pixels {
		if r.Float64() < grey {
			x.pixels[i] = 1
		}
	}
	return x
}

// rings are images of a ring each, with a random centre and radius: three numbers make an image.
func rings(r *rand.Rand, n int) images {
	x := images{n: n, pixels: make([]float32, n*side*side)}
	for i := range n {
		radius := 4 + 5*r.Float64()
		cx, cy := side/2+4*(r.Float64()-0.5), side/2+4*(r.Float64()-0.5)
		for row := range side {
			for column := range side {
				if d := math.Hypot(float64(column)-cx, float64(row)-cy); math.Abs(d-radius) < 1.2 {
					x.pixels[(i*side+row)*side+column] = 1
				}
			}
		}
	}
	return x
}
