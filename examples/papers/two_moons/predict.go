package main

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kelvin-ppl/kelvin/diag/score"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// prediction is what a method says of points: logits of label 1 under each draw, [draw][point], the probability p of
// label 1, and its logit z, which has digits where p is 1 to the last one.
type prediction struct {
	logits [][]float64
	p, z   []float64
}

// predictor evaluates a method at points of shape [n, 2].
type predictor func(x torch.Tensor) (prediction, error)

const atOnce = 1000 // points that are evaluated at once, which bounds memory

// parts calls f for the points, some at a time.
func parts(x torch.Tensor, f func(part torch.Tensor) error) error {
	shape, err := torch.Shape(x)
	if err != nil {
		return err
	}
	for from := 0; from < shape[0]; from += atOnce {
		if err := torch.Do(func(*torch.Scope) error {
			return f(torch.Of(x.T().MustNarrow(0, int64(from), int64(min(atOnce, shape[0]-from)),
				false)))
		}); err != nil {
			return err
		}
	}
	return nil
}

// predictWith collects logits, of shape [S, n, 1], and averages the probabilities.
func predictWith(x torch.Tensor, logits func(part torch.Tensor) (torch.Tensor, error)) (prediction, error) {
	var out prediction
	err := parts(x, func(part torch.Tensor) error {
		z, err := logits(part)
		if err != nil {
			return err
		}
		draws, flat := z.Shape()[0], z.Values()
		if out.logits == nil {
			out.logits = make([][]float64, draws)
		}
		n := len(flat) / draws
		for s := range out.logits {
			out.logits[s] = append(out.logits[s], flat[s*n:(s+1)*n]...)
		}
		return nil
	})
	if err != nil {
		return out, err
	}
	return out.averaged()
}

// averaged is the prediction with the mean of the probabilities of its draws.
func (p prediction) averaged() (prediction, error) {
	mean, err := p.predictive()
	if err != nil {
		return p, err
	}
	p.p, p.z = nil, nil
	for _, l := range mean.LogMean() {
		p.p, p.z = append(p.p, math.Exp(l[1])), append(p.z, l[1]-l[0])
	}
	return p, nil
}

func (p prediction) predictive() (*score.Predictive, error) {
	mean, err := score.NewPredictive(len(p.logits[0]), 2)
	if err != nil {
		return nil, err
	}
	for _, z := range p.logits {
		if err := mean.AddBinaryLogits(z); err != nil {
			return nil, err
		}
	}
	return mean, nil
}

// at is the logits of the draws at one point.
func (p prediction) at(point int) []float64 {
	out := make([]float64, len(p.logits))
	for s, z := range p.logits {
		out[s] = z[point]
	}
	return out
}

// probabilities are those of label 1 under each draw at one point.
func (p prediction) probabilities(point int) []float64 {
	out := p.at(point)
	for s, z := range out {
		out[s] = sigmoid(z)
	}
	return out
}

// spread is the standard deviation of the probability over the draws, and the epistemic part of the
// entropy, at each point.
func (p prediction) spread() (sd, epistemic []float64, err error) {
	for i := range p.p {
		v, err := score.BernoulliVarianceOf(p.probabilities(i))
		if err != nil {
			return nil, nil, err
		}
		sd = append(sd, math.Sqrt(v.Epistemic))
	}
	mean, err := p.predictive()
	if err != nil {
		return nil, nil, err
	}
	for _, u := range mean.Uncertainty() {
		epistemic = append(epistemic, u.Epistemic)
	}
	return sd, epistemic, nil
}

// network is the predictor of draws of the parameters, of shape [S, d] or [d].
func (t *task) network(draws infer.Params) predictor { return networkAt(t.model.net, draws) }

func networkAt(net *nn.Network, draws infer.Params) predictor {
	return func(x torch.Tensor) (prediction, error) {
		return predictWith(x, func(part torch.Tensor) (torch.Tensor, error) {
			z, err := net.Predict(draws, part, nil)
			if err != nil || draws.Batched() {
				return z, err
			}
			return z.Unsqueeze(0), nil
		})
	}
}

// undecided is the predictor of a run without draws: logits of 0.
func undecided(draws int) predictor {
	return func(x torch.Tensor) (prediction, error) {
		shape, err := torch.Shape(x)
		if err != nil {
			return prediction{}, err
		}
		out := prediction{logits: make([][]float64, draws)}
		for s := range out.logits {
			out.logits[s] = make([]float64, shape[0])
		}
		return out.averaged()
	}
}

// gaussianLogits is the predictor of a method that has a normal law of each logit: the draws are that law's quantiles
// at the middle of equal parts, and the probability is the given one.
func gaussianLogits(draws int, law func(part torch.Tensor) (mean, variance, p torch.Tensor, err error)) predictor {
	return func(x torch.Tensor) (prediction, error) {
		out := prediction{logits: make([][]float64, draws)}
		err := parts(x, func(part torch.Tensor) error {
			mean, variance, p, err := law(part)
			if err != nil {
				return err
			}
			m, v, probability := torch.Must(torch.ToSlice[float64](mean)), torch.Must(torch.ToSlice[float64](variance)),
				torch.Must(torch.ToSlice[float64](p))
			for _, p := range probability {
				out.p, out.z = append(out.p, p), append(out.z, math.Log(p/(1-p)))
			}
			for s := range out.logits {
				z := distuv.UnitNormal.Quantile((float64(s) + 0.5) / float64(draws))
				for i := range m {
					out.logits[s] = append(out.logits[s], m[i]+z*math.Sqrt(v[i]))
				}
			}
			return nil
		})
		return out, err
	}
}

func sigmoid(z float64) float64 { return 1 / (1 + math.Exp(-z)) }
