package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/svi"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// autoencoder is the model and its guide, with the weights that their networks start from.
type autoencoder struct {
	options
	n     int // images
	start map[string]torch.Tensor
	zero  torch.Tensor // the prior's mean, [latent]
}

func newAutoencoder(o options, n int) (*autoencoder, error) {
	v := &autoencoder{options: o, n: n, start: map[string]torch.Tensor{}}
	r := rand.New(rand.NewPCG(o.seed, 1))
	var err error
	layer := func(name string, in, out int) {
		w, b := make([]float32, in*out), make([]float32, out)
		for i := range w {
			w[i] = float32(r.NormFloat64() * math.Sqrt(1/float64(in)))
		}
		if err == nil {
			v.start[name+".weight"], err = torch.FromSlice(w, in, out)
		}
		if err == nil {
			v.start[name+".bias"], err = torch.FromSlice(b, out)
		}
	}
	layer("encode.hidden", side*side, o.hidden)
	layer("encode.mean", o.hidden, o.latent)
	layer("encode.log_sd", o.hidden, o.latent)
	layer("decode.hidden", o.latent, o.hidden)
	layer("decode.pixels", o.hidden, side*side)
	if err == nil {
		v.zero, err = torch.FromSlice(make([]float32, o.latent))
	}
	return v, err
}

// network gives the weights of a layer, and applies it.
type network func(name string) torch.Tensor

func (w network) linear(layer string, x torch.Tensor) torch.Tensor {
	return x.MatMul(w(layer + ".weight")).Add(w(layer + ".bias"))
}

// encode is the mean and the standard deviation of z for images, both [n, latent].
func (w network) encode(x torch.Tensor) (mean, sd torch.Tensor) {
	h := w.linear("encode.hidden", x).Relu()
	return w.linear("encode.mean", h), w.linear("encode.log_sd", h).Exp()
}

// decode is the log-odds of the pixels for z, [n, side²].
func (w network) decode(z torch.Tensor) torch.Tensor {
	return w.linear("decode.pixels", w.linear("decode.hidden", z).Relu())
}

// weights are the Params of a run.
func (v *autoencoder) weights(c *ppl.Ctx) network {
	return func(name string) torch.Tensor { return c.Param(name, v.start[name], support.Real) }
}

// model draws z for each image, and its pixels.
func (v *autoencoder) model(c *ppl.Ctx) {
	c.Plate("images", v.n, func(c *ppl.Ctx) {
		z := c.Sample("z", dist.Independent(dist.Normal(v.zero, 1), 1))
		pixels := v.weights(c).decode(z)
		c.Observe("x", dist.Independent(dist.BernoulliLogits(pixels), 1), c.Data("x"))
	}, ppl.Minibatch)
}

// guide reads the images.
func (v *autoencoder) guide(c *ppl.Ctx) {
	mean, sd := v.weights(c).encode(c.Data("x"))
	c.Plate("images", v.n, func(c *ppl.Ctx) {
		c.Sample("z", dist.Independent(dist.Normal(mean, sd), 1))
	}, ppl.Minibatch)
}

// fit trains both networks, and prints the bounds of each epoch.
func (v *autoencoder) fit(ctx context.Context, w io.Writer, train, test images) (svi.State, error) {
	all, err := train.tensor(0, train.n)
	if err != nil {
		return svi.State{}, err
	}
	held, err := test.tensor(0, test.n)
	if err != nil {
		return svi.State{}, err
	}
	first, err := train.tensor(0, v.batch)
	if err != nil {
		return svi.State{}, err
	}
	program, err := svi.Compile(v.model, v.guide, first)
	if err != nil {
		return svi.State{}, err
	}
	batches, err := infer.Minibatches(all, infer.MinibatchOptions{Size: v.batch, Seed: v.seed, DropLast: true})
	if err != nil {
		return svi.State{}, err
	}
	epoch := train.n / v.batch
	updates := v.epochs * epoch
	adam := optim.Adam{LR: func(step int) float64 {
		return v.lr * (0.01 + 0.99*0.5*(1+math.Cos(math.Pi*float64(step)/float64(updates))))
	}}
	fmt.Fprintf(w, "%d images, %d updates an epoch, nats an image:\n\nepoch  train   test  seconds\n", train.n, epoch)
	began, mean := time.Now(), 0.0
	var failed error
	observer := infer.ObserverFunc(func(p infer.Progress) {
		mean += p.Info.Stats["nelbo"][0] / float64(v.n) / float64(epoch)
		if p.Step%epoch != 0 || failed != nil {
			return
		}
		state, ok := p.State.(svi.State)
		if !ok {
			return
		}
		var bound float64
		if bound, failed = v.bound(state, svi.MeanField{}, held, 1); failed == nil {
			fmt.Fprintf(w, "%5d %6.2f %6.2f %8.0f\n", p.Step/epoch, mean, -bound, time.Since(began).Seconds())
		}
		mean = 0
	})
	result, err := infer.Run(ctx, program, svi.SVI{ELBO: svi.MeanField{}, Samples: 1, Optimizer: adam}, infer.Options{
		Chains: 1, Warmup: updates, Draws: infer.None, Batches: batches, Seed: v.seed, Observer: observer})
	if err != nil {
		return svi.State{}, err
	}
	return result.State.(svi.State), failed
}

// bound is that of an image, on the mean over images.
func (v *autoencoder) bound(state svi.State, elbo svi.ELBO, x infer.Batch, samples int) (float64, error) {
	values, err := state.Bound(elbo, x, samples, v.seed)
	if err != nil {
		return 0, err
	}
	return values[0] / float64(v.n), nil
}
