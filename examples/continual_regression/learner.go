package main

import (
	"context"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// learner is a method of continual learning: it sees one episode after another, and none again.
type learner interface {
	learn(ctx context.Context, episode series) error
	predict(x infer.Batch) (prediction, error)
}

// prediction is the mean and the standard deviation of the function at some inputs, without the noise of observations.
type prediction struct {
	mean, sd []float64
}

// training says how a method climbs to the mode, or fits a distribution.
type training struct {
	optimizer infer.Method
	epochs    int
	batch     int
	seed      uint64 // of the order of the data, and of the samples of variational inference
}

// run trains on an episode, from a point.
func (t training) run(ctx context.Context, method infer.Method, target infer.Target, start infer.Params,
	data series) (*infer.Result, error) {
	batch, err := data.batch()
	if err != nil {
		return nil, err
	}
	n := len(data.x)
	size := min(t.batch, n)
	batches, err := infer.Minibatches(batch, infer.MinibatchOptions{Size: size, Seed: t.seed})
	if err != nil {
		return nil, err
	}
	steps := t.epochs * ((n + size - 1) / size)
	return infer.Run(ctx, infer.Handwritten(target, start, batch), method, infer.Options{Chains: 1, Warmup: steps,
		Draws: infer.None, Seed: t.seed, Batches: batches, Observer: infer.Silent})
}

// mode is the maximum of the posterior under a prior.
func (t training) mode(ctx context.Context, m model, prior logDensity, start infer.Params, data series) (infer.Params,
	error) {
	result, err := t.run(ctx, t.optimizer, m.target(len(data.x), prior), start, data)
	if err != nil {
		return infer.Params{}, err
	}
	return result.State.Position(), nil
}

// sequential goes from the mode of one episode to that of the next, always with the first prior: it has nothing to
// remember with.
type sequential struct {
	model model
	training
	at infer.Params
}

func (s *sequential) learn(ctx context.Context, episode series) (err error) {
	s.at, err = s.mode(ctx, s.model, s.model.firstPrior, s.at, episode)
	return err
}

func (s *sequential) predict(x infer.Batch) (prediction, error) { return s.model.point(s.at, x) }

// offline keeps the data of all episodes, and begins anew with all of them at each.
type offline struct {
	model model
	training
	start, at infer.Params
	seen      series
}

func (o *offline) learn(ctx context.Context, episode series) (err error) {
	o.seen = series{x: append(o.seen.x, episode.x...), y: append(o.seen.y, episode.y...)}
	o.at, err = o.mode(ctx, o.model, o.model.firstPrior, o.start, o.seen)
	return err
}

func (o *offline) predict(x infer.Batch) (prediction, error) { return o.model.point(o.at, x) }

// point predicts with one point, without any doubt.
func (m model) point(at infer.Params, x infer.Batch) (p prediction, err error) {
	err = torch.Do(func(*torch.Scope) error {
		p.mean, err = torch.ToSlice[float64](m.forward(at, x))
		p.sd = make([]float64, len(p.mean))
		return err
	})
	return p, err
}

// average predicts with draws of the parameters, of shape [S, d].
func (m model) average(draws infer.Params, x infer.Batch) (p prediction, err error) {
	err = torch.Do(func(*torch.Scope) error {
		out, err := torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
			return []torch.Tensor{m.forward(infer.Params{Layout: draws.Layout, Flat: in[0]}, x)}, nil
		}, []torch.Tensor{draws.Flat}, nil)
		if err != nil {
			return err
		}
		if p.mean, err = torch.ToSlice[float64](torch.Of(out[0].T().MustMeanDim([]int64{0}, false, out[0].T().DType(),
			false))); err != nil {
			return err
		}
		p.sd, err = torch.ToSlice[float64](torch.Of(out[0].T().MustStdDim([]int64{0}, true, false, false)))
		return err
	})
	return p, err
}

// gaussian makes a prediction of means [n, 1] and covariances [n, 1, 1].
func gaussian(mean, cov torch.Tensor) (p prediction, err error) {
	if p.mean, err = torch.ToSlice[float64](mean); err != nil {
		return p, err
	}
	if p.sd, err = torch.ToSlice[float64](cov); err != nil {
		return p, err
	}
	for i, v := range p.sd {
		p.sd[i] = math.Sqrt(v)
	}
	return p, nil
}
