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
	Memory int
}

// Build checks the configuration and binds it to a target.
func (c LowRank) Build(target infer.Target) (infer.Transform, error) {
	if c.Rank < 0 {
		return nil, &infer.FieldError{Type: "vi.LowRank", Field: "Rank", Value: c.Rank,
			Allowed: "it must be at least 1, or 0 for the square root of the number of parameters"}
	}
	return config{name: "vi.LowRank", optimizer: c.Optimizer, samples: c.Samples, temperature: c.Temperature,
		klWeight: c.KLWeight, stickTheLanding: c.StickTheLanding, antithetic: c.Antithetic, memory: c.Memory,
		scale: c.InitScale, family: lowRank{c.Rank}}.build(target)
}

// Defaults are 4000 updates in the warm-up, which fit the distribution, and then 1000 draws from it.
func (LowRank) Defaults() infer.Options { return approx.Defaults() }

type lowRank struct{ rank int }

// r is the rank for d parameters.
func (f lowRank) r(d int) int {
	if f.rank == 0 {
		return max(1, int(math.Round(math.Sqrt(float64(d)))))
	}
	return f.rank
}

func (lowRank) name() string { return "low_rank" }

func (f lowRank) sites(d int) (infer.Shapes, error) {
	if f.rank > d {
		return nil, &infer.FieldError{Type: "vi.LowRank", Field: "Rank", Value: f.rank,
			Allowed: fmt.Sprintf("it must be at most the number of parameters, %d", d)}
	}
	return infer.Shapes{"factor": {d, f.r(d)}, "log_sd": {d}, "mean": {d}}, nil
}

func (f lowRank) noise(d int) int { return f.r(d) + d }

func (f lowRank) matrix(d int) (what string, columns int, instead string) {
	return "the factor W", f.r(d), "use a smaller Rank, vi.Diag, or fewer parameters by infer.Subspace"
}

func (f lowRank) start(mean torch.Tensor, scale float64, streams *torch.Streams) torch.Tensor {
	k, d := mean.T().MustSize()[0], mean.T().MustSize()[1]
	r := f.r(int(d))
	w := torch.Must(streams.Normal([]int{int(d) * r}, mean.T().DType(), torch.Must(torch.DeviceOf(mean))))
	sd := scale * math.Sqrt(0.5)
	w = scaled(sd/math.Sqrt(float64(r)), w).Reshape(int(k), int(d)*r)
	return torch.Of(ts.MustCat([]*ts.Tensor{w.T(), filled(mean, math.Log(sd)).T(), mean.T()}, 1))
}

func (f lowRank) at(phi infer.Params) gaussian {
	q := lowRankGaussian{w: phi.Get("factor"), logSD: phi.Get("log_sd").Unsqueeze(1)}
	q.sd = q.logSD.Exp()
	q.v = q.w.Div(q.sd.T().MustTranspose(1, 2, false))
	gram := q.v.T().MustTranspose(1, 2, false).MustMatmul(q.v.T(), false)
	one := ts.MustEye(gram.MustSize()[2], gram.DType(), torch.Must(torch.DeviceOf(torch.Of(gram))))
	// A matrix that has no factor, because it has overflowed, gives numbers that are not finite, and no error.
	factor, _ := gram.MustAdd(one, false).MustLinalgCholeskyEx(false, false, false)
	q.chol = torch.Of(factor)
	return q
}

// lowRankGaussian is W, [K, d, r]; s and e^s, [K, 1, d]; V = W/e^s, [K, d, r]; and the Cholesky factor of M = I + VᵀV,
// [K, r, r].
type lowRankGaussian struct{ w, logSD, sd, v, chol torch.Tensor }

// split is ε₁, [K, S, r], and ε₂, [K, S, d].
func (q lowRankGaussian) split(eps torch.Tensor) (one, two torch.Tensor) {
	r := q.w.T().MustSize()[2]
	return torch.Of(eps.T().MustNarrow(2, 0, r, false)), torch.Of(eps.T().MustNarrow(2, r, eps.T().MustSize()[2]-r, false))
}

func (q lowRankGaussian) apply(eps torch.Tensor) torch.Tensor {
	one, two := q.split(eps)
	return one.MatMul(q.w.T().MustTranspose(1, 2, false)).Add(two.Mul(q.sd))
}

// density is log q = −½δᵀΣ⁻¹δ − Σs − ½ log|M| − (d/2) log 2π, and u = Σ⁻¹δ = (x − VM⁻¹Vᵀx)/e^s with x = δ/e^s.
func (q lowRankGaussian) density(_, delta torch.Tensor) (logq, u torch.Tensor) {
	d := delta.T().MustSize()[2]
	x := delta.Div(q.sd).T()
	// y is M⁻¹Vᵀx, [K, r, S], and half ½ log|M|, [K, 1].
	y := x.MustMatmul(q.v.T(), false).MustTranspose(1, 2, false).MustCholeskySolve(q.chol.T(), false, false)
	rest := x.MustSub(q.v.MatMul(y).T().MustTranspose(1, 2, false), false)
	half := last(torch.Of(q.chol.T().MustDiagonal(0, 1, 2, false).MustLog(false))).Unsqueeze(1).T()
	logq = torch.Must(torch.Combine(torch.Term{Coeff: -0.5, Tensor: last(torch.Of(x.MustMul(rest, false)))},
		torch.Term{Coeff: -1, Tensor: last(q.logSD)}, torch.Term{Coeff: -1, Tensor: torch.Of(half)}))
	logq = torch.Of(logq.T().MustSubScalar(ts.FloatScalar(0.5*float64(d)*math.Log(2*math.Pi)), false))
	return logq, torch.Of(rest.MustDiv(q.sd.T(), false))
}

func (q lowRankGaussian) path(a, eps torch.Tensor) torch.Tensor {
	one, two := q.split(eps)
	w := scaled(1/float64(a.T().MustSize()[1]), torch.Of(a.T().MustTranspose(1, 2, false).MustMatmul(one.T(), false)))
	logSD := average(a.Mul(two)).Mul(q.sd.T().MustSelect(1, 0, false)).T()
	return q.join(w, torch.Of(logSD), average(a))
}

func (q lowRankGaussian) score(u, _ torch.Tensor) torch.Tensor {
	// VM⁻¹, [K, d, r]; divided by e^s it is Σ⁻¹W.
	inverse := q.v.T().MustTranspose(1, 2, false).MustCholeskySolve(q.chol.T(), false, false).MustTranspose(1, 2, false)
	sd := q.sd.T().MustSelect(1, 0, false)
	uw := u.MatMul(q.w).T() // [K, S, r]
	w := sum(1/float64(u.T().MustSize()[1]), torch.Of(u.T().MustTranspose(1, 2, false).MustMatmul(uw, false)),
		-1, torch.Of(inverse.MustDiv(sd.MustUnsqueeze(2, false), false)))
	// e^{2s} diag Σ⁻¹ = 1 − diag VM⁻¹Vᵀ
	logSD := average(u.Mul(q.sd).Square()).Add(last(torch.Of(inverse.MustMul(q.v.T(), false)))).T()
	return q.join(w, torch.Of(logSD.MustSubScalar(ts.FloatScalar(1), false)), average(u))
}

// join puts parameters, or gradients in them, in the order of the layout.
func (q lowRankGaussian) join(w, logSD, mean torch.Tensor) torch.Tensor {
	return torch.Of(ts.MustCat([]*ts.Tensor{w.Reshape(w.Shape()[0], -1).T(), logSD.T(), mean.T()}, 1))
}

func (q lowRankGaussian) factor() torch.Tensor {
	return torch.Of(ts.MustCat([]*ts.Tensor{q.w.T(), q.sd.T().MustSelect(1, 0, false).MustDiagEmbed(0, -2, -1, false)}, 2))
}

func (q lowRankGaussian) variance() torch.Tensor {
	return last(q.w.Square()).Add(q.sd.T().MustSelect(1, 0, false).MustSquare(false))
}
