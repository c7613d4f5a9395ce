package vi

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// LowRank is variational inference with a covariance of rank r plus a diagonal, q = N(μ, WWᵀ + diag e^{2s}) with W of
// shape [d, r] (Ong, Nott and Smith 2018). With θ = μ + Wε₁ + e^s⊙ε₂, g the gradient of the log density at θ and
// r = g + TΣ⁻¹(θ − μ), it climbs along the means over samples of
//
//	∇μ = r
//	∇W = rε₁ᵀ
//	∇s = r⊙ε₂⊙e^s
//
// Without sticking the landing the score of log q is subtracted: with u = Σ⁻¹(θ − μ), T times u for μ, uuᵀW − Σ⁻¹W for
// W and e^{2s}⊙(u² − diag Σ⁻¹) for s. Inverse and determinant of Σ are those of r×r matrices (Woodbury 1950); an update
// takes O(Sdr + dr²) operations.
//
// The variational parameters are "mean", μ, and "log_sd", s, of d numbers each, and "factor", W.
type LowRank struct {
	// Optimizer climbs: an infer.GradientMethod without weight decay. nil means optim.Adam, with a learning rate that
	// falls from 0.05 to 0.001 over the first 4000 updates.
	Optimizer   infer.Method
	Rank        int            // r, from 1 to d; 0 means the square root of d, rounded
	Samples     int            // S, samples in an update; 0 means 8
	Temperature infer.Schedule // T; nil means 1, the Bayes posterior
	// KLWeight is λ: the objective is λ(T E_q[log q − log|J|] − E_q[log prior]) − E_q[log likelihood]. nil means 1.
	KLWeight infer.Schedule
	// StickTheLanding leaves the score out of the gradient; nil means true.
	StickTheLanding *bool
	Antithetic      bool // samples in pairs with noise ε and −ε; Samples must be even
	// InitScale is c, the standard deviation at the start, half of its square from W and half from the diagonal; 0
	// means 0.1. The elements of W are drawn from N(0, c²/2r): at W = 0 there is no gradient in it.
	InitScale float64
	// Memory is how many bytes W, [K, d, r], may take; an update takes a dozen times that for a while. 0 means 1 GiB.
	Memory int64
}

// Build checks the configuration and binds it to a target.
func (c LowRank) Build(target infer.Target) (infer.Transform, error) {
	if c.Rank < 0 {
		return nil, &infer.FieldError{Type: "vi.LowRank", Field: "Rank", Value: c.Rank,
			Allowed: "it must be at least 1, or 0 for the square root of the number of parameters"}
	}
	return config{name: "vi.LowRank", optimizer: c.Optimizer, samples: c.Samples, temperature: c.Temperature,
		klWeight: c.KLWeight, stickTheLanding: c.StickTheLanding, antithetic: c.Antithetic, memory: c.Memory,
		scale: c.InitScale, family: lowRank{int64(c.Rank)}}.build(target)
}

// Defaults are 4000 updates in the warm-up, which fit the distribution, and then 1000 draws from it.
func (LowRank) Defaults() infer.Options { return approx.Defaults() }

type lowRank struct{ rank int64 }

// r is the rank for d parameters.
func (f lowRank) r(d int64) int64 {
	if f.rank == 0 {
		return max(1, int64(math.Round(math.Sqrt(float64(d)))))
	}
	return f.rank
}

func (lowRank) name() string { return "low_rank" }

func (f lowRank) sites(d int64) (infer.Shapes, error) {
	if f.rank > d {
		return nil, &infer.FieldError{Type: "vi.LowRank", Field: "Rank", Value: f.rank,
			Allowed: fmt.Sprintf("it must be at most the number of parameters, %d", d)}
	}
	return infer.Shapes{"factor": {d, f.r(d)}, "log_sd": {d}, "mean": {d}}, nil
}

func (f lowRank) noise(d int64) int64 { return f.r(d) + d }

func (f lowRank) matrix(d int64) (what string, columns int64, instead string) {
	return "the factor W", f.r(d), "use a smaller Rank, vi.Diag, or fewer parameters by infer.Subspace"
}

func (f lowRank) start(mean *ts.Tensor, scale float64, streams *torch.Streams) *ts.Tensor {
	k, d := mean.MustSize()[0], mean.MustSize()[1]
	r := f.r(d)
	w := torch.Must(streams.Normal([]int64{d * r}, mean.DType(), torch.Must(torch.DeviceOf(mean))))
	sd := scale * math.Sqrt(0.5)
	w = scaled(sd/math.Sqrt(float64(r)), w).MustReshape([]int64{k, d * r}, false)
	return ts.MustCat([]*ts.Tensor{w, filled(mean, math.Log(sd)), mean}, 1)
}

func (f lowRank) at(phi infer.Params) gaussian {
	q := lowRankGaussian{w: phi.Get("factor").T(), logSD: phi.Get("log_sd").T().MustUnsqueeze(1, false)}
	q.sd = q.logSD.MustExp(false)
	q.v = q.w.MustDiv(q.sd.MustTranspose(1, 2, false), false)
	gram := q.v.MustTranspose(1, 2, false).MustMatmul(q.v, false)
	one := ts.MustEye(gram.MustSize()[2], gram.DType(), torch.Must(torch.DeviceOf(gram)))
	// A matrix that has no factor, because it has overflowed, gives numbers that are not finite, and no error.
	q.chol, _ = gram.MustAdd(one, false).MustLinalgCholeskyEx(false, false, false)
	return q
}

// lowRankGaussian is W, [K, d, r]; s and e^s, [K, 1, d]; V = W/e^s, [K, d, r]; and the Cholesky factor of M = I + VᵀV,
// [K, r, r].
type lowRankGaussian struct{ w, logSD, sd, v, chol *ts.Tensor }

// split is ε₁, [K, S, r], and ε₂, [K, S, d].
func (q lowRankGaussian) split(eps *ts.Tensor) (one, two *ts.Tensor) {
	r := q.w.MustSize()[2]
	return eps.MustNarrow(2, 0, r, false), eps.MustNarrow(2, r, eps.MustSize()[2]-r, false)
}

func (q lowRankGaussian) apply(eps *ts.Tensor) *ts.Tensor {
	one, two := q.split(eps)
	return one.MustMatmul(q.w.MustTranspose(1, 2, false), false).MustAdd(two.MustMul(q.sd, false), false)
}

// density is log q = −½δᵀΣ⁻¹δ − Σs − ½ log|M| − (d/2) log 2π, and u = Σ⁻¹δ = (x − VM⁻¹Vᵀx)/e^s with x = δ/e^s.
func (q lowRankGaussian) density(_, delta *ts.Tensor) (logq, u *ts.Tensor) {
	d := delta.MustSize()[2]
	x := delta.MustDiv(q.sd, false)
	// y is M⁻¹Vᵀx, [K, r, S], and half ½ log|M|, [K, 1].
	y := x.MustMatmul(q.v, false).MustTranspose(1, 2, false).MustCholeskySolve(q.chol, false, false)
	rest := x.MustSub(q.v.MustMatmul(y, false).MustTranspose(1, 2, false), false)
	half := last(q.chol.MustDiagonal(0, 1, 2, false).MustLog(false)).MustUnsqueeze(1, false)
	logq = torch.Must(torch.Combine(torch.Term{Coeff: -0.5, Tensor: last(x.MustMul(rest, false))},
		torch.Term{Coeff: -1, Tensor: last(q.logSD)}, torch.Term{Coeff: -1, Tensor: half}))
	logq = logq.MustSubScalar(ts.FloatScalar(0.5*float64(d)*math.Log(2*math.Pi)), false)
	return logq, rest.MustDiv(q.sd, false)
}

func (q lowRankGaussian) path(a, eps *ts.Tensor) *ts.Tensor {
	one, two := q.split(eps)
	w := scaled(1/float64(a.MustSize()[1]), a.MustTranspose(1, 2, false).MustMatmul(one, false))
	logSD := average(a.MustMul(two, false)).MustMul(q.sd.MustSelect(1, 0, false), false)
	return q.join(w, logSD, average(a))
}

func (q lowRankGaussian) score(u, _ *ts.Tensor) *ts.Tensor {
	// VM⁻¹, [K, d, r]; divided by e^s it is Σ⁻¹W.
	inverse := q.v.MustTranspose(1, 2, false).MustCholeskySolve(q.chol, false, false).MustTranspose(1, 2, false)
	sd := q.sd.MustSelect(1, 0, false)
	uw := u.MustMatmul(q.w, false) // [K, S, r]
	w := sum(1/float64(u.MustSize()[1]), u.MustTranspose(1, 2, false).MustMatmul(uw, false),
		-1, inverse.MustDiv(sd.MustUnsqueeze(2, false), false))
	// e^{2s} diag Σ⁻¹ = 1 − diag VM⁻¹Vᵀ
	logSD := average(u.MustMul(q.sd, false).MustSquare(false)).MustAdd(last(inverse.MustMul(q.v, false)), false)
	return q.join(w, logSD.MustSubScalar(ts.FloatScalar(1), false), average(u))
}

// join puts parameters, or gradients in them, in the order of the layout.
func (q lowRankGaussian) join(w, logSD, mean *ts.Tensor) *ts.Tensor {
	return ts.MustCat([]*ts.Tensor{w.MustReshape([]int64{w.MustSize()[0], -1}, false), logSD, mean}, 1)
}

func (q lowRankGaussian) factor() *ts.Tensor {
	return ts.MustCat([]*ts.Tensor{q.w, q.sd.MustSelect(1, 0, false).MustDiagEmbed(0, -2, -1, false)}, 2)
}

func (q lowRankGaussian) variance() *ts.Tensor {
	return last(q.w.MustSquare(false)).MustAdd(q.sd.MustSelect(1, 0, false).MustSquare(false), false)
}
