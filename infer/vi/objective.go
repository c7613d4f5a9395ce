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
	sites(d int64) (infer.Shapes, error)
	// noise is n, how many standard normal numbers a sample takes.
	noise(d int64) int64
	// matrix is the largest thing that a state holds, of d rows, and what to do where it is too large. It has 0 columns
	// where nothing is larger than the mean.
	matrix(d int64) (what string, columns int64, instead string)
	// start is the variational parameters to start with, [K, P], around means [K, d].
	start(mean *ts.Tensor, scale float64, streams *torch.Streams) *ts.Tensor
	// at is the distribution with variational parameters [K, P].
	at(phi infer.Params) gaussian
	// loops is the distribution of one chain with P variational parameters, for d of the model.
	loops(phi []float64, d int) loops
}

// gaussian is K normal distributions N(μ, FFᵀ). Its functions may panic with errors that torch.Do returns.
type gaussian interface {
	// apply is δ = Fε, [K, S, d], for ε, [K, S, n].
	apply(eps *ts.Tensor) *ts.Tensor
	// density is log q at μ + δ, [K, S], and u = (FFᵀ)⁻¹δ, [K, S, d].
	density(eps, delta *ts.Tensor) (logq, u *ts.Tensor)
	// path is the gradient in the variational parameters, [K, P], of a function of the samples with gradients a,
	// [K, S, d]; the mean over samples.
	path(a, eps *ts.Tensor) *ts.Tensor
	// score is the gradient of log q in the variational parameters, [K, P], at samples that do not move; the mean over
	// samples.
	score(u, eps *ts.Tensor) *ts.Tensor
	// factor is F, [K, d, n].
	factor() *ts.Tensor
	// variance is the diagonal of FFᵀ, [K, d].
	variance() *ts.Tensor
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
	noise    *ts.Tensor    // ε, [K, S, n]
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
	k, s := o.noise.MustSize()[0], o.noise.MustSize()[1]
	phi := infer.Params{Layout: p.Layout, Flat: rows(p.Flat)}
	at := o.sampled(phi, b, p.Batched())
	a := at.grad
	var score *ts.Tensor
	if o.entropy != 0 {
		a = sum(1, a, o.entropy, at.u)
		if !o.stick {
			score = at.q.score(at.u, o.noise)
		}
	}
	grad := at.q.path(a, o.noise)
	if score != nil {
		grad = sum(1, grad, -o.entropy, score)
	}
	e := infer.Evaluation{Value: at.objective, Grad: grad, Aux: shaped(at.aux, k, s, p.Batched())}
	var err error
	e.Values, e.Norms, err = torch.ValuesAndNorms(e.Value, e.Grad, int(k))
	approx.Try(err)
	if o.natural != nil {
		e.Grad = o.shortened(phi, b, o.natural.step(at.q.(denseGaussian), a, o.noise), e.Value)
	}
	if !p.Batched() {
		e.Value, e.Grad = e.Value.MustSelect(0, 0, false), e.Grad.MustSelect(0, 0, false)
	}
	o.report(e, torch.Must(torch.ToSlice[float64](average(at.logp))))
	return e
}

// sampled is the distribution with variational parameters φ, [K, P], and the model at its samples.
type sampled struct {
	q         gaussian
	logp      *ts.Tensor // log p(θ)/N + τ log|J(θ)|, [K, S]
	grad      *ts.Tensor // its gradient, [K, S, d]
	u         *ts.Tensor // (FFᵀ)⁻¹δ, [K, S, d]; nil where log q does not count
	objective *ts.Tensor // [K]
	aux       infer.Aux
}

func (o *objective) sampled(phi infer.Params, b infer.Batch, batched bool) sampled {
	shape := o.noise.MustSize()
	k, s, d := shape[0], shape[1], int64(o.layout.Dim())
	at := sampled{q: o.family.at(phi)}
	delta := at.q.apply(o.noise)
	theta := delta.MustAdd(phi.Get("mean").T().MustUnsqueeze(1, false), false).MustReshape([]int64{k * s, d}, false)
	if !batched && s == 1 {
		theta = theta.MustSelect(0, 0, false) // one point does not need vmap
	}
	model, err := o.model.ValueAndGrad(infer.Params{Layout: o.layout, Flat: theta}, b, o.jacobian)
	approx.Try(err)
	at.aux = model.Aux
	at.logp, at.grad = model.Value.MustReshape([]int64{k, s}, false), model.Grad.MustReshape([]int64{k, s, d}, false)
	objective := at.logp
	// Where it has no weight log q does not count, and must not: it is infinite where the scale is gone.
	if o.entropy != 0 {
		var logq *ts.Tensor
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
func shaped(aux infer.Aux, k, s int64, batched bool) infer.Aux {
	if aux == nil {
		return nil
	}
	out := infer.Aux{}
	for name, x := range aux {
		own := x.MustSize()
		lead := []int64{s}
		if batched {
			lead = []int64{k, s}
		}
		if batched || s > 1 {
			own = own[1:]
		}
		out[name] = x.MustReshape(append(lead, own...), false)
	}
	return out
}

// average is the mean over the samples, the second dimension.
func average(x *ts.Tensor) *ts.Tensor { return x.MustMeanDim([]int64{1}, false, x.DType(), false) }

// last is the sum over the last dimension.
func last(x *ts.Tensor) *ts.Tensor { return x.MustSumDimIntlist([]int64{-1}, false, x.DType(), false) }

// scaled is c·x.
func scaled(c float64, x *ts.Tensor) *ts.Tensor {
	return torch.Must(torch.Combine(torch.Term{Coeff: c, Tensor: x}))
}

// filled is c for each element of x.
func filled(x *ts.Tensor, c float64) *ts.Tensor {
	return scaled(0, x).MustAddScalar(ts.FloatScalar(c), false)
}

// sum is a·x + b·y.
func sum(a float64, x *ts.Tensor, b float64, y *ts.Tensor) *ts.Tensor {
	return torch.Must(torch.Combine(torch.Term{Coeff: a, Tensor: x}, torch.Term{Coeff: b, Tensor: y}))
}

// weighted is a target with a weighted prior, its Jacobian with it: λ log p(θ) + log p(y|θ).
func weighted(t infer.Target, lambda float64) infer.Target {
	return t.Weighted(infer.Weights{Prior: lambda, Likelihood: 1, Jacobian: lambda})
}
