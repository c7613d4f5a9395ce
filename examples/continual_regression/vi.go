package main

import (
	"context"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// variational is variational continual learning (Nguyen et al. 2018): the distribution q of the episodes so far, made
// wider by a random walk of the parameters, is the prior of the next.
type variational struct {
	model model
	training
	method func(optimizer infer.Method, temperature infer.Schedule) infer.Method // vi.Diag or vi.Dense
	// standard deviation of the random walk between episodes
	walk  float64
	draws int // of the parameters, for predictions

	at        infer.Params
	state     infer.State
	transform infer.Transform
}

func (v *variational) learn(ctx context.Context, episode series) error {
	prior := logDensity(v.model.firstPrior)
	if v.state != nil {
		var err error
		if prior, err = v.prior(); err != nil {
			return err
		}
	}
	n := len(episode.x)
	method := v.method(v.optimizer, infer.Constant(1/float64(n)))
	result, err := v.run(ctx, method, v.model.target(n, prior), v.at, episode)
	if err != nil {
		return err
	}
	v.transform, v.state, v.at = result.Transform, result.State, result.State.Position()
	return nil
}

// prior is the log density of q after the random walk, without its constant.
func (v *variational) prior() (logDensity, error) {
	q := v.state.(vi.State)
	mean := q.Mean.Flat
	var spread func(delta torch.Tensor) torch.Tensor // Σ^(-1/2) (θ − μ)
	err := torch.Do(func(scope *torch.Scope) error {
		if _, ok := q.Save().Tensors["diag.params"]; ok {
			sd, err := q.SD()
			if err != nil {
				return err
			}
			root := sd.Flat.Square().T().MustAddScalar(ts.FloatScalar(v.walk*v.walk), false).MustRsqrt(false)
			scope.Keep(torch.Of(root))
			spread = func(delta torch.Tensor) torch.Tensor { return delta.Mul(root) }
			return nil
		}
		cov := torch.Must(q.Covariance())
		eye := ts.MustEye(mean.T().MustSize()[0], mean.T().DType(), torch.CPU)
		walk := eye.MustMulScalar(ts.FloatScalar(v.walk*v.walk), false)
		inverse := cov.Add(walk).T().MustInverse(false).MustLinalgCholesky(true, false) // upper: UᵀU = Σ⁻¹
		scope.Keep(torch.Of(inverse))
		spread = func(delta torch.Tensor) torch.Tensor { return torch.Of(inverse).MatMul(delta) }
		return nil
	})
	return func(p infer.Params) torch.Tensor {
		z := spread(p.Flat.Sub(mean))
		return z.Dot(z).Mul(-0.5)
	}, err
}

func (v *variational) predict(x infer.Batch) (prediction, error) {
	streams := torch.NewStreams(v.seed, 1)
	streams.Offset = predictions
	draws, err := v.transform.(infer.Sampler).Sample(v.state, v.draws, &streams)
	if err != nil {
		return prediction{}, err
	}
	return v.model.average(draws, x)
}
