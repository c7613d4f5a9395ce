package main

import (
	"math"
	"math/rand/v2"

	"github.com/kelvin-ppl/kelvin/examples/internal/classify"
	"github.com/kelvin-ppl/kelvin/examples/internal/digits"
	"github.com/kelvin-ppl/kelvin/examples/internal/mnist"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

const classes = 10

// data are images to train with and to test on, and things that are no digits.
type data struct {
	train, test classify.Set
	images      mnist.Data // those of test, to look at
	strange     torch.Tensor
	what        string // strange things by their name
}

func (d *data) pixels() int { return d.images.Side * d.images.Side }

// read reads MNIST, or the digits that the repository carries.
func read(o options) (*data, error) {
	d := &data{what: "noise"}
	var train mnist.Data
	if o.data == "" {
		all, err := digits.Read()
		if err != nil {
			return nil, err
		}
		train = mnist.Data{Side: 8, Pixels: all.Pixels, Labels: all.Labels}
	} else {
		var err error
		if train, _, err = mnist.Read(o.data); err != nil {
			return nil, err
		}
	}
	// Test images are of the same file, so that the test part of MNIST stays unseen by this page.
	train, rest, err := train.Stratified(o.images, o.seed)
	if err != nil {
		return nil, err
	}
	if d.images, _, err = rest.Stratified(min(o.tests, rest.Len()), o.seed); err != nil {
		return nil, err
	}
	if d.train, err = set(train); err != nil {
		return nil, err
	}
	if d.test, err = set(d.images); err != nil {
		return nil, err
	}
	strange := mnist.Data{Side: d.images.Side, Labels: make([]int, d.images.Len())}
	if o.outliers != "" {
		_, fashion, err := mnist.Read(o.outliers)
		if err != nil {
			return nil, err
		}
		strange, d.what = fashion.First(d.images.Len()), "fashion"
		if strange.Side != d.images.Side {
			if strange, err = strange.Shrink(d.images.Side); err != nil {
				return nil, err
			}
		}
	} else {
		random := rand.New(rand.NewPCG(o.seed, 5))
		for range d.images.Len() * d.pixels() {
			strange.Pixels = append(strange.Pixels, random.Float64())
		}
	}
	s, err := set(strange)
	d.strange = s.X
	return d, err
}

func set(d mnist.Data) (classify.Set, error) {
	x, err := torch.FromSliceOn(torch.CPU, gotch.Float, d.Pixels, d.Len(), d.Side*d.Side)
	return classify.Set{X: x, Labels: d.Labels}, err
}

// turned is an image turned by an angle, in degrees, with pixels between those of the image by their neighbours.
func turned(image []float64, side int, degrees float64) []float64 {
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	middle := float64(side-1) / 2
	at := func(r, c int) float64 {
		if r < 0 || c < 0 || r >= side || c >= side {
			return 0
		}
		return image[r*side+c]
	}
	out := make([]float64, side*side)
	for r := range side {
		for c := range side {
			y, x := float64(r)-middle, float64(c)-middle
			u, v := middle+cos*y+sin*x, middle-sin*y+cos*x
			i, j := int(math.Floor(u)), int(math.Floor(v))
			a, b := u-float64(i), v-float64(j)
			out[r*side+c] = (1-a)*((1-b)*at(i, j)+b*at(i, j+1)) + a*((1-b)*at(i+1, j)+b*at(i+1, j+1))
		}
	}
	return out
}

// angles of the digits that are turned.
func angles() (all []float64) {
	for degrees := 0.0; degrees <= 180; degrees += 15 {
		all = append(all, degrees)
	}
	return all
}
