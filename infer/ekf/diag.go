package ekf

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Diag is the diagonal extended Kalman filter: independent normals N(μ_j, v_j), updated with the mean gradient of the
// batch and the diagonal of its empirical Fisher matrix (Ollivier 2018, with the Fisher matrix taken at the observed
// data):
//
//	v_pred = v + q²
//	1/v'   = 1/v_pred + ε (1/n) Σ g_i²
//	μ'     = μ + ε v' (1/n) Σ g_i
//
// where g_i is the gradient of log p(y_i|θ) at μ. Both sums are means: at ε = 1 a batch counts as one datum, and ε = n,
// the default, counts each of its n data in full: the Bayes posterior.
//
// The likelihood is that of the target's parts, and the prior is the Gaussian to start with. A target without parts is
// taken for a log likelihood. Info.LogPosterior is the mean log likelihood of the batch at μ, and Info.GradNorm the
// norm of its gradient.
type Diag struct {
	LR           infer.Schedule // ε; nil means n, the number of data in the batch: the Bayes posterior
	TransitionSD infer.Schedule // q; nil means 0, or 1 with TransitionSDs
	// TransitionSDs multiply q, one factor for each parameter, of shape [d]; nil means 1.
	TransitionSDs torch.Tensor
	// InitSD is the standard deviation of each parameter to start with. 0 means the target's prior: its mean and its
	// covariance, or for one that is not Gaussian its mode and curvature on unconstrained space; and 1 for a target
	// without parts.
	InitSD float64
	// InitSDs are standard deviations for each parameter, of shape [d] or that of the params, in place of InitSD; nil for
	// none.
	InitSDs torch.Tensor
	// PerDatum gives the log likelihoods of the data of a batch at once, of shape [n]. nil means the likelihood of the
	// target, of one datum at a time.
	PerDatum curvature.PerDatum
	Memory   int // bytes that the gradients of a block of data may take; 0 is the default of curvature.Options
}

// DiagState is the state of [Diag].
type DiagState struct {
	Params   infer.Params // μ, of shape [d] or [K, d]
	Variance torch.Tensor // v, of the same shape
	Step     int          // updates so far
}

// Build checks the configuration and binds it to a target.
func (c Diag) Build(target infer.Target) (infer.Transform, error) {
	o, err := options{name: "ekf.Diag", target: target, perDatum: c.PerDatum, lr: c.LR, memory: c.Memory,
		walk: walk{c.TransitionSD, c.TransitionSDs}, sd: c.InitSD, sds: c.InitSDs}.checked()
	if err != nil {
		return nil, err
	}
	return &filter[DiagState]{options: o, update: o.diagonal,
		init: func(start infer.Params) DiagState {
			return DiagState{Params: start, Variance: o.initialVariance(start)}
		},
		restore: func(p infer.Params, saved infer.Saved) (DiagState, error) {
			v, err := saved.Tensor("variance")
			return DiagState{Params: p, Variance: v, Step: saved.Steps}, err
		}}, nil
}

// Defaults are 1000 draws after one pass over the data.
func (Diag) Defaults() infer.Options { return infer.Options{Draws: 1000} }

// diagonal is an update of independent normals.
func (o *options) diagonal(s DiagState, each curvature.PerDatum, b infer.Batch, lr, q float64) (DiagState,
	infer.Info) {
	limits := o.limits()
	limits.Normalize = true
	var e infer.Evaluation
	var grads, squares []torch.Tensor
	for k := range s.Params.Chains() {
		value, grad, square, err := curvature.GradientSums(each, approx.Point(s.Params, k), b, limits)
		if err != nil {
			approx.Fail("log likelihood: %w", err)
		}
		v, norm, err := torch.ValuesAndNorms(value, grad, 1)
		approx.Try(err)
		e.Values, e.Norms = append(e.Values, v...), append(e.Norms, norm...)
		grads, squares = append(grads, grad), append(squares, square)
	}
	info := method.NewInfo(e, lr, 0)
	grad, fisher := approx.Stack(s.Params, grads), approx.Stack(s.Params, squares)

	// 1/(1/v_pred + εF) without the reciprocal of a reciprocal.
	predicted := s.Variance.Add(o.walk.variance(q, s.Params)).T()
	shrink := predicted.MustMul(fisher.T(), false).MustMulScalar(ts.FloatScalar(lr),
		false).MustAddScalar(ts.FloatScalar(1),
		false)
	variance := predicted.MustDiv(shrink, false)
	mean := method.Combine(method.Term(1, s.Params.Flat), method.Term(lr, torch.Of(variance.MustMul(grad.T(), false))))

	next := DiagState{Params: s.Params, Step: s.Step + 1}
	next.Params.Flat = torch.Must(method.Hold(s.Params.Flat, mean, info.Diverged))
	next.Variance = torch.Must(method.Hold(s.Variance, torch.Of(variance), info.Diverged))
	return next, info
}

func (s DiagState) from(mean, precision torch.Tensor) DiagState {
	if len(precision.T().MustSize()) == 2 {
		precision = torch.Of(precision.T().MustDiagonal(0, 0, 1, false))
	}
	s.Params.Flat = mean
	s.Variance = approx.Copy(torch.Of(precision.Reciprocal().T().MustExpandAs(mean.T(), false)))
	return s
}

func (s DiagState) deviations(z torch.Tensor) torch.Tensor {
	sd := s.Variance.Sqrt().Reshape(s.Params.Chains(), -1, 1).T()
	return z.Mul(sd)
}

func (s DiagState) logDet() []float64 {
	logs := s.Variance.Reshape(s.Params.Chains(), -1).Log().T()
	sum := logs.MustSumDimIntlist([]int64{1}, false, logs.DType(), false)
	return torch.Must(torch.ToSlice[float64](torch.Of(sum.MustMulScalar(ts.FloatScalar(0.5), false))))
}

// Position is μ.
func (s DiagState) Position() infer.Params { return s.Params }

// Steps is the number of updates so far.
func (s DiagState) Steps() int { return s.Step }

// Save names the parts of the state.
func (s DiagState) Save() infer.Saved {
	return infer.Saved{Steps: s.Step, Tensors: infer.Tensors{"params": s.Params.Flat, "variance": s.Variance}}
}

// Tensors are what the state owns, and what it shares with others.
func (s DiagState) Tensors() (owned, shared infer.Tensors) {
	saved := s.Save()
	return saved.Tensors, saved.Shared
}
