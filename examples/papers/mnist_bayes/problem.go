package main

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/examples/internal/digits"
	"github.com/kelvin-ppl/kelvin/examples/internal/mnist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// problem is a training set, the images that are scored, and the networks for them.
type problem struct {
	name        string // D50, D500, D5000: so many images to train with
	train, test mnist.Data
	networks    map[string]*network
	batch       infer.Batch  // train as tensors
	images      torch.Tensor // test, [n, pixels]
	scored      []int        // labels of test
	source      string       // where the images are from, in words
}

// side is that of the images of the paper, in pixels: 16 x 16 means over areas.
const side = 16

// source reads all images: MNIST from dir, or, where dir is empty, the small set of 8 x 8 digits that the repository
// carries.
func source(dir string) (train, test mnist.Data, words string, err error) {
	if dir != "" {
		if train, test, err = mnist.Read(dir); err != nil {
			return train, test, "", err
		}
		if train, err = train.Shrink(side); err != nil {
			return train, test, "", err
		}
		test, err = test.Shrink(side)
		return train, test, "MNIST, 16 x 16", err
	}
	all, err := digits.Read()
	if err != nil {
		return train, test, "", err
	}
	const half = digits.Images / 2
	part := func(from, to int) mnist.Data {
		return mnist.Data{Side: 8, Pixels: all.Pixels[from*digits.Pixels : to*digits.Pixels], Labels: all.Labels[from:to]}
	}
	return part(0, half), part(half, digits.Images), "digits of 8 x 8 pixels (no -data)", nil
}

// newProblem draws n training images, as many of each digit; the rest joins the test images, as in the paper. Of the
// test images the first ones are scored.
func newProblem(train, test mnist.Data, words string, n, scored int, seed uint64) (*problem, error) {
	p := &problem{name: fmt.Sprintf("D%d", n), source: words}
	chosen, rest, err := train.Stratified(n, seed)
	if err != nil {
		return nil, err
	}
	p.train, p.test = chosen, test.Join(rest).First(scored)
	pixels := train.Side * train.Side
	if p.networks, err = networks(pixels, mnist.Classes); err != nil {
		return nil, err
	}
	x, err := torch.FromSlice(p.train.Pixels, n, pixels)
	if err != nil {
		return nil, err
	}
	y, err := torch.FromSlice(p.train.Labels)
	if err != nil {
		return nil, err
	}
	images, err := torch.FromSlice(p.test.Pixels, p.test.Len(), pixels)
	p.batch, p.images, p.scored = infer.Batch{"x": x, "y": y}, images, p.test.Labels
	return p, err
}
