package vi

import (
	"math"
	"sync"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// Dense is variational inference with any covariance, q = N(μ, LLᵀ) with L lower triangular (Titsias and
// Lázaro-Gredilla 2014). With θ = μ + Lε, g the gradient of the log density at θ and r = g + TL⁻ᵀε, it climbs along the
// means over samples of
//
//	∇μ = r
//	∇L = tril(rεᵀ)
//
// and, without sticking the landing, of ∇μ = g and ∇L = tril(gεᵀ) + T diag(1/L_ii). The parameter of the diagonal of L
// is its logarithm, so that L is the Cholesky factor of the covariance; it is never factorised anew. An update takes
// O(Sd²) operations.
//
// Without an Optimizer, where T > 0, the first 350 of its 900 updates match scores in closed form, and the others are
// steps along the natural gradient (see natural.go), of O(d³) operations: steps of single elements of L add noise that
// grows with d. Normal distributions of 500 dimensions are found so. A step that makes the ELBO of its samples worse by
// d nats or more is made shorter, at the price of a second evaluation in each update.
//
// The variational parameters are "mean", μ, of d numbers; "log_diag", log L_ii, of d numbers; and for d > 1 "lower",
// the elements of L below the diagonal, row by row, of d(d−1)/2.
type Dense struct {
	// Optimizer climbs: an infer.GradientMethod without weight decay. nil means natural steps, and at T = 0 optim.Adam,
	// with a learning rate that falls from 0.05 to 0.001 over the first 4000 updates.
	Optimizer   infer.Method
	Samples     int            // S, samples in an update; 0 means 16, and from 512 dimensions on d/32; 8 with an Optimizer
	Temperature infer.Schedule // T; nil means 1, the Bayes posterior
	// KLWeight is λ: the objective is λ(T E_q[log q − log|J|] − E_q[log prior]) − E_q[log likelihood]. nil means 1.
	KLWeight infer.Schedule
	// StickTheLanding leaves the score out of the gradient; nil means true.
	StickTheLanding *bool
	Antithetic      bool    // samples in pairs with noise ε and −ε; Samples must be even
	InitScale       float64 // L is InitScale·I at the start; 0 means 0.1
	// Memory is how many bytes L, [K, d, d], may take; an update takes a dozen times that for a while. 0 means 1 GiB.
	Memory int
}

// Build checks the configuration and binds it to a target.
func (c Dense) Build(target infer.Target) (infer.Transform, error) {
	return config{name: "vi.Dense", optimizer: c.Optimizer, samples: c.Samples, temperature: c.Temperature,
		klWeight: c.KLWeight, stickTheLanding: c.StickTheLanding, antithetic: c.Antithetic, memory: c.Memory,
		scale: c.InitScale, family: dense{&lower{}}}.build(target)
}

// Defaults are 900 updates in the warm-up, which fit the distribution, and then 1000 draws from it; with an Optimizer,
// or at T = 0, 4000 updates.
func (c Dense) Defaults() infer.Options {
	defaults := approx.Defaults()
	if takesNatural(dense{}, c.Optimizer, c.Temperature) {
		defaults.Warmup = naturalUpdates
	}
	return defaults
}

type dense struct{ lower *lower }

func (dense) name() string { return "dense" }

func (dense) sites(d int) (infer.Shapes, error) {
	shapes := infer.Shapes{"log_diag": {d}, "mean": {d}}
	if d > 1 {
		shapes["lower"] = []int{d * (d - 1) / 2}
	}
	return shapes, nil
}

func (dense) noise(d int) int { return d }

func (dense) matrix(d int) (what string, columns int, instead string) {
	return "the scale factor L", d, "use vi.Diag, vi.LowRank, or fewer parameters by infer.Subspace"
}

func (dense) start(mean torch.Tensor, scale float64, _ *torch.Streams) torch.Tensor {
	k, d := mean.T().MustSize()[0], mean.T().MustSize()[1]
	parts := []torch.Tensor{filled(mean, math.Log(scale)), mean}
	if d > 1 {
		lower := ts.MustZeros([]int64{int64(k), int64(d * (d - 1) / 2)}, mean.T().DType(), torch.Must(torch.DeviceOf(mean)))
		parts = []torch.Tensor{parts[0], torch.Of(lower), mean}
	}
	return torch.Cat(1, parts)
}

func (f dense) at(phi infer.Params) gaussian {
	q := denseGaussian{logDiag: phi.Get("log_diag")}
	q.diag = q.logDiag.Exp()
	q.l = torch.Of(q.diag.T().MustDiagEmbed(0, -2, -1, false))
	shape := q.diag.T().MustSize()
	k, d := shape[0], shape[1]
	if d > 1 {
		q.below = f.lower.places(int(d), torch.Must(torch.DeviceOf(q.diag)))
		flat := q.l.Reshape(int(k), int(d*d)).T().MustIndexCopy(1, q.below.T(), phi.Get("lower").T(), false)
		q.l = torch.Of(flat.MustReshape([]int64{int64(k), int64(d), int64(d)}, false))
	}
	return q
}

// lower is where the elements of a matrix [d, d] below the diagonal are among its d², row by row. It remembers them for
// the last d and device: to find them takes longer than the rest of a small update.
type lower struct {
	mutex  sync.Mutex
	d      int
	device gotch.Device
	known  torch.Tensor // [d(d−1)/2]
}

func (l *lower) places(d int, device gotch.Device) torch.Tensor {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.known == (torch.Tensor{}) || l.d != d || l.device != device {
		at := ts.MustTrilIndices(int64(d), int64(d), -1, torch.DTypeOf[int](), device)
		places := at.MustSelect(0, 0, false).MustMulScalar(ts.IntScalar(int64(d)), false).MustAdd(at.MustSelect(0, 1, false),
			false)
		torch.Detach(torch.Of(places)) // it outlives the scope of the update that happens to need it first
		l.d, l.device, l.known = d, device, torch.Of(places)
	}
	return l.known
}

// denseGaussian is log L_ii and L_ii, [K, d], L, [K, d, d], and where in its d² elements those below the diagonal are,
// nil for d = 1.
type denseGaussian struct{ logDiag, diag, l, below torch.Tensor }

func (q denseGaussian) apply(eps torch.Tensor) torch.Tensor {
	return eps.MatMul(q.l.T().MustTranspose(1, 2, false))
}

// density is log q = −½|ε|² − Σ log L_ii − (d/2) log 2π, and u = L⁻ᵀε, whose rows solve uL = ε.
func (q denseGaussian) density(eps, _ torch.Tensor) (logq, u torch.Tensor) {
	return standard(eps, last(q.logDiag).Unsqueeze(1)), torch.Of(q.l.T().MustLinalgSolveTriangular(eps.T(), false, false,
		false, false))
}

func (q denseGaussian) path(a, eps torch.Tensor) torch.Tensor {
	shape := a.T().MustSize()
	k, s, d := shape[0], shape[1], shape[2]
	l := scaled(1/float64(s), torch.Of(a.T().MustTranspose(1, 2, false).MustMatmul(eps.T(), false))) // [K, d, d]
	parts := []torch.Tensor{torch.Of(l.T().MustDiagonal(0, 1, 2, false).MustMul(q.diag.T(), false))}
	if d > 1 {
		parts = append(parts, torch.Of(l.Reshape(int(k), int(d*d)).T().MustIndexSelect(1, q.below.T(), false)))
	}
	return torch.Cat(1, append(parts, average(a)))
}

// score is u for μ and tril(uεᵀ) − diag(1/L_ii) for L: what reaches the parameters through the samples, and −1 for
// log L_ii.
func (q denseGaussian) score(u, eps torch.Tensor) torch.Tensor {
	through := q.path(u, eps)
	d := q.diag.T().MustSize()[1]
	logDiag := through.T().MustNarrow(1, 0, d, false).MustSubScalar(ts.FloatScalar(1), false)
	return torch.Of(ts.MustCat([]*ts.Tensor{logDiag, through.T().MustNarrow(1, d, through.T().MustSize()[1]-d, false)}, 1))
}

func (q denseGaussian) factor() torch.Tensor { return q.l }

func (q denseGaussian) variance() torch.Tensor { return last(q.l.Square()) }
