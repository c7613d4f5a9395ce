package vi

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// family is a kind of normal distribution. Its variational parameters are laid out in sites; one is "mean".
type family interface {
	name() string
	// sites are the variational parameters for d parameters of the model.
	sites(d int) (infer.Shapes, error)
	// noise is n, how many standard normal numbers a sample takes.
	noise(d int) int
	// matrix is the largest thing that a state holds, of d rows, and what to do where it is too large. It has 0 columns
	// where nothing is larger than the mean.
	matrix(d int) (what string, columns int, instead string)
	// start is the variational parameters to start with, [K, P], around means [K, d].
	start(mean torch.Tensor, scale float64, streams *torch.Streams) torch.Tensor
	// at is the distribution with variational parameters [K, P].
	at(phi infer.Params) gaussian
	// loops is the distribution of one chain with P variational parameters, for d of the model.
	loops(phi []float64, d int) loops
}

// gaussian is K normal distributions N(μ, FFᵀ). Its functions may panic with errors that torch.Do returns.
type gaussian interface {
	// apply is δ = Fε, [K, S, d], for ε, [K, S, n].
	apply(eps torch.Tensor) torch.Tensor
	// density is log q at μ + δ, [K, S], and u = (FFᵀ)⁻¹δ, [K, S, d].
	density(eps, delta torch.Tensor) (logq, u torch.Tensor)
	// path is the gradient in the variational parameters, [K, P], of a function of the samples with gradients a,
	// [K, S, d]; the mean over samples.
	path(a, eps torch.Tensor) torch.Tensor
	// score is the gradient of log q in the variational parameters, [K, P], at samples that do not move; the mean over
	// samples.
	score(u, eps torch.Tensor) torch.Tensor
	// factor is F, [K, d, n].
	factor() torch.Tensor
	// variance is the diagonal of FFᵀ, [K, d].
	variance() torch.Tensor
}

// objective is −NELBO as a function of the variational parameters φ, with its gradient, for noise that is given:
//
//	(1/S) Σ log p(θ_s)/N + τ log|J(θ_s)| − τ log q(θ_s; φ),  θ_s = μ + Fε_s,  τ = T/N
//
// It is the log density that the optimiser climbs, on the scale of the mean over data, so that steps do not depend on
// N.
type objective struct {
	family   family
	model    infer.Gradient
	layout   *infer.Layout // of the model
	noise    torch.Tensor  // ε, [K, S, n]
	samples  int           // S
	jacobian float64       // what the model's log|J| counts: τ, or the weight of the prior over N
	entropy  float64       // what log q counts: τ, times the weight of the prior
	data     float64       // N
	stick    bool          // leave the score out
	natural  *natural      // the step of [Dense] to return in the place of the gradient; nil returns the gradient

	// Of the first evaluation, before the optimiser has moved: K numbers each.
	evaluation          infer.Evaluation
	logPosterior, nelbo []float64
}

func (o *objective) ValueAndGrad(p infer.Params, b infer.Batch, _ float64) (infer.Evaluation, error) {
	if o.small(p) {
		return o.inLoops(p, b), nil
	}
	return o.inTensors(p, b), nil
}

// inTensors is called inside torch.Do, and so is inLoops: both may panic with errors that it returns.
func (o *objective) inTensors(p infer.Params, b infer.Batch) infer.Evaluation {
	k, s := o.noise.T().MustSize()[0], o.noise.T().MustSize()[1]
	phi := infer.Params{Layout: p.Layout, Flat: rows(p.Flat)}
	at := o.sampled(phi, b, p.Batched())
	a := at.grad
	var score torch.Tensor
	if o.entropy != 0 {
		a = sum(1, a, o.entropy, at.u)
		if !o.stick {
			score = at.q.score(at.u, o.noise)
		}
	}
	grad := at.q.path(a, o.noise)
	if score != (torch.Tensor{}) {
		grad = sum(1, grad, -o.entropy, score)
	}
	e := infer.Evaluation{Value: at.objective, Grad: grad, Aux: shaped(at.aux, int(k), int(s), p.Batched())}
	var err error
	e.Values, e.Norms, err = torch.ValuesAndNorms(e.Value, e.Grad, int(k))
	approx.Try(err)
	if o.natural != nil {
		e.Grad = o.shortened(phi, b, o.natural.step(at.q.(denseGaussian), a, o.noise), e.Value)
	}
	if !p.Batched() {
		e.Value, e.Grad = e.Value.At(0), e.Grad.At(0)
	}
	o.report(e, torch.Must(torch.ToSlice[float64](average(at.logp))))
	return e
}

// sampled is the distribution with variational parameters φ, [K, P], and the model at its samples.
type sampled struct {
	q         gaussian
	logp      torch.Tensor // log p(θ)/N + τ log|J(θ)|, [K, S]
	grad      torch.Tensor // its gradient, [K, S, d]
	u         torch.Tensor // (FFᵀ)⁻¹δ, [K, S, d]; nil where log q does not count
	objective torch.Tensor // [K]
	aux       infer.Aux
}

func (o *objective) sampled(phi infer.Params, b infer.Batch, batched bool) sampled {
	shape := o.noise.T().MustSize()
	k, s, d := shape[0], shape[1], o.layout.Dim()
	at := sampled{q: o.family.at(phi)}
	delta := at.q.apply(o.noise)
	theta := delta.Add(phi.Get("mean").Unsqueeze(1).T()).Reshape(int(k*s), d).T()
	if !batched && s == 1 {
		theta = theta.MustSelect(0, 0, false) // one point does not need vmap
	}
	model, err := o.model.ValueAndGrad(infer.Params{Layout: o.layout, Flat: torch.Of(theta)}, b, o.jacobian)
	approx.Try(err)
	at.aux = model.Aux
	at.logp, at.grad = model.Value.Reshape(int(k), int(s)), model.Grad.Reshape(int(k), int(s), d)
	objective := at.logp
	// Where it has no weight log q does not count, and must not: it is infinite where the scale is gone.
	if o.entropy != 0 {
		var logq torch.Tensor
		logq, at.u = at.q.density(o.noise, delta)
		objective = sum(1, objective, -o.entropy, logq)
	}
	at.objective = average(objective)
	return at
}

// report keeps what Info tells of the first evaluation, whose samples have log densities of the mean logp. The NELBO is
// on the scale of the sum over data, in nats.
func (o *objective) report(e infer.Evaluation, logp []float64) {
	if o.nelbo != nil {
		return
	}
	o.nelbo = make([]float64, len(e.Values))
	for i, v := range e.Values {
		o.nelbo[i] = -v * o.data
	}
	o.evaluation, o.logPosterior = e, logp
}

// shaped gives aux of single samples the dimensions of the chains, where there is one, and of the samples.
func shaped(aux infer.Aux, k, s int, batched bool) infer.Aux {
	if aux == nil {
		return nil
	}
	out := infer.Aux{}
	for name, x := range aux {
		own := x.T().MustSize()
		lead := []int{s}
		if batched {
			lead = []int{k, s}
		}
		if batched || s > 1 {
			own = own[1:]
		}
		out[name] = x.Reshape(append(lead, torch.Ints(own)...)...)
	}
	return out
}

// average is the mean over the samples, the second dimension.
func average(x torch.Tensor) torch.Tensor {
	return torch.Of(x.T().MustMeanDim([]int64{1}, false, x.T().DType(), false))
}

// last is the sum over the last dimension.
func last(x torch.Tensor) torch.Tensor {
	return torch.Of(x.T().MustSumDimIntlist([]int64{-1}, false, x.T().DType(), false))
}

// scaled is c·x.
func scaled(c float64, x torch.Tensor) torch.Tensor {
	return torch.Must(torch.Combine(torch.Term{Coeff: c, Tensor: x}))
}

// filled is c for each element of x.
func filled(x torch.Tensor, c float64) torch.Tensor {
	return torch.Of(scaled(0, x).T().MustAddScalar(ts.FloatScalar(c), false))
}

// sum is a·x + b·y.
func sum(a float64, x torch.Tensor, b float64, y torch.Tensor) torch.Tensor {
	return torch.Must(torch.Combine(torch.Term{Coeff: a, Tensor: x}, torch.Term{Coeff: b, Tensor: y}))
}

// weighted is a target with a weighted prior, its Jacobian with it: λ log p(θ) + log p(y|θ).
func weighted(t infer.Target, lambda float64) infer.Target {
	return t.Weighted(infer.Weights{Prior: lambda, Likelihood: 1, Jacobian: lambda})
}
