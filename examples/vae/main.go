// Command vae fits a variational autoencoder (Kingma and Welling 2014) to images: a model in which z of a few normal
// numbers makes an image by a network, and an amortised guide, a network from an image to the normal distribution of
// its z. Minibatches, divergences in closed form, Adam at a step that falls along a cosine. After each epoch the
// evidence lower bound of images that were held out is printed, in nats an image.
//
// The pixels of MNIST are drawn once as 0 or 1 with their grey as the probability (Salakhutdinov and Murray 2008; the
// draws are our own). Without a folder of MNIST the images are rings of random place and size, made here.
//
//	go run ./examples/vae                 rings: some seconds; pictures in out/vae
//	go run ./examples/vae -data DIR       the four IDX files of MNIST in DIR, plain or compressed
//	go run ./examples/vae -epochs 5       a shorter run
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/examples/internal/command"
)

func main() {
	var o options
	flag.StringVar(&o.data, "data", "", "folder of MNIST's IDX files; empty for rings")
	flag.StringVar(&o.out, "out", filepath.Join("out", "vae"), "folder for the pictures")
	flag.IntVar(&o.epochs, "epochs", 20, "passes over the images")
	flag.IntVar(&o.batch, "batch", 128, "images in a minibatch")
	flag.IntVar(&o.hidden, "hidden", 400, "units of the hidden layers")
	flag.IntVar(&o.latent, "latent", 20, "numbers of z")
	flag.Float64Var(&o.lr, "lr", 2e-3, "step of Adam at the start")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the pixels, the start, the shuffles and the draws")
	command.Main("vae", func(ctx context.Context) error { return run(ctx, os.Stdout, o) })
}

type options struct {
	data, out                     string
	epochs, batch, hidden, latent int
	lr                            float64
	seed                          uint64
}

func run(ctx context.Context, w io.Writer, o options) error {
	for name, v := range map[string]int{"epochs": o.epochs, "batch": o.batch, "hidden": o.hidden, "latent": o.latent} {
		if v < 1 {
			return fmt.Errorf("%s is %d, it must be at least 1", name, v)
		}
	}
	if !(o.lr > 0) {
		return fmt.Errorf("lr is %g, it must be greater than 0", o.lr)
	}
	train, test, err := read(o.data, o.seed)
	if err != nil {
		return err
	}
	if o.batch > train.n {
		return fmt.Errorf("batch is %d, and there are %d images", o.batch, train.n)
	}
	v, err := newAutoencoder(o, train.n)
	if err != nil {
		return err
	}
	state, err := v.fit(ctx, w, train, test)
	if err != nil {
		return err
	}
	return v.pictures(w, state, test)
}
