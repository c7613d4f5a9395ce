package vi

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"gonum.org/v1/gonum/floats"
)

// loops is one normal distribution N(μ, FFᵀ) in plain numbers: what a gaussian is in tensors, for one sample at a time.
// An operation on tensors takes a microsecond for a few numbers as for a thousand.
type loops interface {
	// apply sets δ = Fε.
	apply(eps, delta []float64)
	// density is log q at μ + δ, and sets u = (FFᵀ)⁻¹δ.
	density(eps, delta, u []float64) float64
	// path adds c times the gradient in the variational parameters of a function with gradient a at the sample.
	path(c float64, a, eps, grad []float64)
	// score adds c times the gradient of log q in the variational parameters at a sample that does not move.
	score(c float64, u, eps, grad []float64)
}

// mostLoops bounds the variational parameters, times samples and chains, of an update in loops. For more numbers the
// cost of starting an operation on tensors does not matter.
const mostLoops = 1 << 13

// small says whether an update is made in loops: float64 in main memory, and few numbers.
func (o *objective) small(p infer.Params) bool {
	return o.natural == nil && torch.Must(torch.DTypeOfTensor(p.Flat)) == gotch.Double &&
		torch.Must(torch.DeviceOf(p.Flat)) == torch.CPU && p.Layout.Dim()*o.samples*p.Chains() <= mostLoops
}

// inLoops is ValueAndGrad without tensors but for the noise and the model.
func (o *objective) inLoops(p infer.Params, b infer.Batch) infer.Evaluation {
	phi, eps := torch.Must(torch.ToSlice[float64](p.Flat)), torch.Must(torch.ToSlice[float64](o.noise))
	k, s, d, width := p.Chains(), o.samples, o.layout.Dim(), p.Layout.Dim()
	n := len(eps) / (k * s)
	site, _ := p.Layout.Site("mean")
	chains := make([]loops, k)
	delta, theta := make([]float64, k*s*d), make([]float64, k*s*d)
	for i := range chains {
		own := phi[i*width:][:width]
		chains[i] = o.family.loops(own, d)
		for row := i * s; row < (i+1)*s; row++ {
			chains[i].apply(eps[row*n:][:n], delta[row*d:][:d])
			floats.AddTo(theta[row*d:][:d], own[site.Offset:][:d], delta[row*d:][:d])
		}
	}
	shape, lead := []int{k * s, d}, []int{k}
	if !p.Batched() {
		lead = []int{}
		if s == 1 {
			shape = shape[1:] // one point does not need vmap
		}
	}
	at := infer.Params{Layout: o.layout, Flat: torch.New(theta, shape...)}
	model, err := o.model.ValueAndGrad(at, b, o.jacobian)
	approx.Try(err)
	slopes := torch.Must(torch.ToSlice[float64](model.Grad))
	e := infer.Evaluation{Values: make([]float64, k), Norms: make([]float64, k),
		Aux: shaped(model.Aux, k, s, p.Batched())}
	logp, grad, u, share := make([]float64, k), make([]float64, k*width), make([]float64, d), 1/float64(s)
	for i, q := range chains {
		own := grad[i*width:][:width]
		for row := i * s; row < (i+1)*s; row++ {
			value, a, noise := model.Values[row], slopes[row*d:][:d], eps[row*n:][:n]
			logp[i] += share * value
			// Where it has no weight log q does not count, and must not: it is infinite where the scale is gone.
			if o.entropy != 0 {
				value -= o.entropy * q.density(noise, delta[row*d:][:d], u)
				floats.AddScaled(a, o.entropy, u)
				if !o.stick {
					q.score(-o.entropy*share, u, noise, own)
				}
			}
			e.Values[i] += share * value
			q.path(share, a, noise, own)
		}
		e.Norms[i] = floats.Norm(own, 2)
	}
	e.Value = torch.New(e.Values, lead...)
	e.Grad = torch.New(grad, append(lead, width)...)
	o.report(e, logp)
	return e
}

// standardLog is −½|ε|² − (d/2) log 2π.
func standardLog(eps []float64) float64 {
	return -0.5 * (floats.Dot(eps, eps) + float64(len(eps))*math.Log(2*math.Pi))
}

// exps are e^x.
func exps(x []float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = math.Exp(v)
	}
	return out
}

// diagLoops is s and e^s of a [Diag].
type diagLoops struct{ logSD, sd []float64 }

func (diag) loops(phi []float64, d int) loops { return diagLoops{logSD: phi[:d], sd: exps(phi[:d])} }

func (q diagLoops) apply(eps, delta []float64) { floats.MulTo(delta, q.sd, eps) }

func (q diagLoops) density(eps, _, u []float64) float64 {
	floats.DivTo(u, eps, q.sd)
	return standardLog(eps) - floats.Sum(q.logSD)
}

func (q diagLoops) path(c float64, a, eps, grad []float64) {
	d := len(a)
	for i, v := range a {
		grad[i] += c * v * eps[i] * q.sd[i]
		grad[d+i] += c * v
	}
}

func (q diagLoops) score(c float64, u, eps, grad []float64) {
	d := len(u)
	for i, v := range u {
		grad[i] += c * (eps[i]*eps[i] - 1)
		grad[d+i] += c * v
	}
}

// denseLoops is log L_ii and the rows of L of a [Dense].
type denseLoops struct {
	logDiag []float64
	l       [][]float64 // row i has i + 1 numbers
}

func (dense) loops(phi []float64, d int) loops {
	q := denseLoops{logDiag: phi[:d], l: make([][]float64, d)}
	lower, all := phi[d:], make([]float64, 0, d*(d+1)/2)
	for i := range d {
		from := len(all)
		all = append(append(all, lower[:i]...), math.Exp(q.logDiag[i]))
		q.l[i], lower = all[from:len(all):len(all)], lower[i:]
	}
	return q
}

func (q denseLoops) apply(eps, delta []float64) {
	for i, row := range q.l {
		delta[i] = floats.Dot(row, eps[:i+1])
	}
}

// density solves Lᵀu = ε from the last row on.
func (q denseLoops) density(eps, _, u []float64) float64 {
	copy(u, eps)
	for i := len(u) - 1; i >= 0; i-- {
		u[i] /= q.l[i][i]
		floats.AddScaled(u[:i], -u[i], q.l[i][:i])
	}
	return standardLog(eps) - floats.Sum(q.logDiag)
}

func (q denseLoops) path(c float64, a, eps, grad []float64) {
	d := len(a)
	lower := grad[d:]
	for i, v := range a {
		grad[i] += c * v * eps[i] * q.l[i][i]
		floats.AddScaled(lower[:i], c*v, eps[:i])
		lower = lower[i:]
	}
	floats.AddScaled(lower, c, a)
}

func (q denseLoops) score(c float64, u, eps, grad []float64) {
	q.path(c, u, eps, grad)
	floats.AddConst(-c, grad[:len(u)])
}
