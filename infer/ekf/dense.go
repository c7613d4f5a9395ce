package ekf

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Dense is the extended Kalman filter with a full covariance matrix, updated with the mean gradient of the batch and
// its empirical Fisher matrix (Ollivier 2018, with the Fisher matrix taken at the observed data):
//
//	P_pred = P + q² I
//	P'⁻¹   = P_pred⁻¹ + ε F,         F = (1/n) Σ g_i g_iᵀ
//	μ'     = μ + ε P' (1/n) Σ g_i
//
// where g_i is the gradient of log p(y_i|θ) at μ. F is the Fisher information, on average, where μ is near the truth.
// Far from it F is too large: a normal datum with the noise σ adds (y − μ)²/σ⁴ to the precision in the place of 1/σ²,
// and the data never widen the covariance again. So start near, with an InitSD of a few standard deviations of the
// noise; [GaussNewton] is exact there for normal data. Both sums are means: at ε = 1 a batch counts as one datum, and ε
// = n, the default, counts each of its n data in full: the Bayes posterior.
//
// The likelihood is that of the target's parts, and the prior is the Gaussian to start with. A target without parts is
// taken for a log likelihood. Info.LogPosterior is the mean log likelihood of the batch at μ, and Info.GradNorm the
// norm of its gradient.
type Dense struct {
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
	InitCov torch.Tensor // covariance matrix to start with, of shape [d, d], in place of InitSD and InitSDs; nil for none
	// PerDatum gives the log likelihoods of the data of a batch at once, of shape [n]. nil means the likelihood of the
	// target, of one datum at a time.
	PerDatum curvature.PerDatum
	Memory   int // bytes that a matrix [d, d] or [n, d] may take; 0 is the default of curvature.Options
}

// DenseState is the state of [Dense] and of [GaussNewton].
type DenseState struct {
	Params     infer.Params // μ, of shape [d] or [K, d]
	Covariance torch.Tensor // P, of shape [d, d] or [K, d, d]
	// Root is a root S of P = S Sᵀ, of the same shape, which updates start from: it keeps variances that are too far apart
	// for P to hold in its numbers. Where it is nil, the Cholesky factor of P takes its place.
	Root torch.Tensor
	Step int // updates so far
}

// Build checks the configuration and binds it to a target.
func (c Dense) Build(target infer.Target) (infer.Transform, error) {
	o, err := options{name: "ekf.Dense", target: target, perDatum: c.PerDatum, lr: c.LR, memory: c.Memory,
		walk: walk{c.TransitionSD, c.TransitionSDs}, sd: c.InitSD, sds: c.InitSDs, cov: c.InitCov}.checked()
	if err != nil {
		return nil, err
	}
	return o.rooted(o.fisher, false), nil
}

// Defaults are 1000 draws after one pass over the data.
func (Dense) Defaults() infer.Options { return infer.Options{Draws: 1000} }

// step is an update of one chain. The mean is nil where the log likelihood or its gradient is not finite.
type step struct {
	value, norm, predictive float64
	mean, root              torch.Tensor
}

// stepper makes the update of a chain, with the root L of its predicted covariance.
type stepper func(each curvature.PerDatum, at infer.Params, l torch.Tensor, b infer.Batch, lr float64) step

// fisher is the update of [Dense].
func (o *options) fisher(each curvature.PerDatum, at infer.Params, l torch.Tensor, b infer.Batch, lr float64) (u step) {
	limits := o.limits()
	limits.Normalize = true
	values, grads, err := curvature.Gradients(each, at, b, limits)
	if err != nil {
		approx.Fail("log likelihood: %w", err)
	}
	mean := grads.T().MustMeanDim([]int64{0}, false, grads.T().DType(), false)
	v, norms, err := torch.ValuesAndNorms(torch.Of(values.T().MustMean(values.T().DType(), false)), torch.Of(mean), 1)
	approx.Try(err)
	if u.value, u.norm = v[0], norms[0]; !finite(u.value, u.norm) {
		return u
	}
	root := math.Sqrt(lr / float64(size(grads, 0)))
	w := condition(torch.Of(grads.MatMul(l).T().MustMulScalar(ts.FloatScalar(root), false)))
	jump := l.T().MustMv(w.solve(torch.Of(approx.T(l).T().MustMv(mean, false))).T(), false)
	u.root, u.mean = w.root(l), method.Combine(method.Term(1, at.Flat), method.Term(lr, torch.Of(jump)))
	return u
}

// rooted is the transform of the square-root filters. tells says that they know the predictive density.
func (o options) rooted(step stepper, tells bool) infer.Transform {
	return &filter[DenseState]{options: o, init: o.beginDense,
		update: func(s DenseState, each curvature.PerDatum, b infer.Batch, lr, q float64) (DenseState, infer.Info) {
			n := s.Params.Chains()
			e := infer.Evaluation{Values: make([]float64, n), Norms: make([]float64, n)}
			predictive := make([]float64, n)
			means, roots, covs := make([]torch.Tensor, n), make([]torch.Tensor, n), make([]torch.Tensor, n)
			for k := range n {
				at := approx.Point(s.Params, k)
				u := step(each, at, o.predicted(s, k, q), b, lr)
				e.Values[k], e.Norms[k], predictive[k], means[k], roots[k] = u.value, u.norm, u.predictive, u.mean, u.root
				if u.mean == (torch.Tensor{}) { // it keeps what it had
					means[k], roots[k] = approx.Copy(at.Flat), approx.Copy(s.rootOf(k))
					covs[k] = approx.Copy(approx.Chain(s.Params, s.Covariance, k))
				} else {
					covs[k] = u.root.MatMul(approx.T(u.root))
				}
			}
			info := method.NewInfo(e, lr, 0)
			if tells {
				info.Stats = map[string][]float64{"log_predictive": predictive}
			}
			p := s.Params
			p.Flat = approx.Stack(p, means)
			return DenseState{Params: p, Covariance: approx.Stack(p, covs), Root: approx.Stack(p, roots),
				Step: s.Step + 1}, info
		},
		restore: func(p infer.Params, saved infer.Saved) (DenseState, error) {
			cov, err := saved.Tensor("covariance")
			// A state that a user made may have no root.
			return DenseState{Params: p, Covariance: cov, Root: saved.Tensors["root"], Step: saved.Steps}, err
		}}
}

// predicted is a root of chain k's covariance after a step of the random walk: L_pred L_predᵀ = L Lᵀ + Q.
func (o *options) predicted(s DenseState, k int, q float64) torch.Tensor {
	l := s.rootOf(k)
	if q == 0 {
		return l
	}
	sd := o.walk.variance(q, s.Params).Sqrt().Expand(size(l, 0)).T()
	_, r := ts.MustLinalgQr(ts.MustCat([]*ts.Tensor{approx.T(l).T(), sd.MustDiagEmbed(0, -2, -1, false)}, 0), "r")
	return approx.T(torch.Of(r))
}

// beginDense is the state to start with.
func (o *options) beginDense(p infer.Params) DenseState {
	d := p.Layout.Dim()
	what := fmt.Sprintf("a covariance of shape [%d, %d] for each of %d chains", d, d, p.Chains())
	bytes := float64(d) * float64(d) * float64(p.Chains()) * float64(p.Flat.T().DType().Size())
	if err := method.CheckMemory(what, bytes, o.memory, o.name+".Memory",
		"use ekf.Diag, or the last layer alone by infer.Subspace"); err != nil {
		approx.Fail("%s: %w", o.name, err)
	}
	if o.cov != (torch.Tensor{}) {
		cov, root := o.given(p)
		return DenseState{Params: p, Covariance: everyChain(p, cov), Root: everyChain(p, root)}
	}
	variance := o.initialVariance(p)
	return DenseState{Params: p, Covariance: torch.Of(variance.T().MustDiagEmbed(0, -2, -1, false)),
		Root: torch.Of(variance.Sqrt().T().MustDiagEmbed(0, -2, -1, false))}
}

// given is InitCov after a check, and its root.
func (o *options) given(p infer.Params) (cov, root torch.Tensor) {
	shape, err := torch.Shape(o.cov)
	if err != nil {
		approx.Fail("%s: InitCov: %w", o.name, err)
	}
	if d := p.Layout.Dim(); !slices.Equal(shape, []int{d, d}) {
		approx.Try(&infer.FieldError{Type: o.name, Field: "InitCov", Value: fmt.Sprintf("of shape %v", shape),
			Allowed: fmt.Sprintf("it must be of shape [%d, %d]", d, d)})
	}
	cov = like(p.Flat, o.cov)
	approx.Try(approx.CheckSymmetric(o.name, "InitCov", cov))
	return cov, torch.Must(approx.Cholesky(o.name+": InitCov", cov,
		"a covariance must be, and a parameter that is known belongs outside the params"))
}

// everyChain is a matrix for each chain of a point.
func everyChain(p infer.Params, m torch.Tensor) torch.Tensor {
	if !p.Batched() {
		return m
	}
	return torch.Of(m.Unsqueeze(0).T().MustRepeat([]int64{int64(p.Chains()), 1, 1}, false))
}

// lost is what to do about a covariance that is not positive definite.
const lost = "rounding has used up its digits: use float64, a smaller InitSD, or a TransitionSD above 0"

// roots are those of the covariances, of their shape.
func (s DenseState) roots() torch.Tensor {
	if s.Root != (torch.Tensor{}) {
		return s.Root
	}
	return torch.Must(approx.Cholesky("the covariance", s.Covariance, lost))
}

// rootOf is the root of chain k's covariance.
func (s DenseState) rootOf(k int) torch.Tensor {
	if s.Root != (torch.Tensor{}) {
		return approx.Chain(s.Params, s.Root, k)
	}
	return torch.Must(approx.Cholesky("the covariance", approx.Chain(s.Params, s.Covariance, k), lost))
}

func (s DenseState) from(mean, precision torch.Tensor) DenseState {
	var root torch.Tensor
	if len(precision.T().MustSize()) == 1 {
		root = torch.Of(precision.T().MustRsqrt(false).MustDiagEmbed(0, -2, -1, false))
	} else {
		l := torch.Must(approx.Cholesky("the precision of the prior", precision, "set InitSD"))
		// P⁻¹ = L⁻ᵀL⁻¹
		root = torch.Of(approx.T(l).T().MustLinalgSolveTriangular(approx.Eye(size(l, 0), l).T(), true, true, false, false))
	}
	root = everyChain(s.Params, root)
	s.Params.Flat, s.Root, s.Covariance = mean, root, root.MatMul(approx.T(root))
	return s
}

func (s DenseState) deviations(z torch.Tensor) torch.Tensor {
	l := s.roots()
	if !s.Params.Batched() {
		l = l.Unsqueeze(0)
	}
	return l.MatMul(z)
}

func (s DenseState) logDet() []float64 {
	_, det := s.roots().T().MustSlogdet(false)
	return torch.Must(torch.ToSlice[float64](torch.Of(det.MustReshape([]int64{-1}, false))))
}

// Position is μ.
func (s DenseState) Position() infer.Params { return s.Params }

// Steps is the number of updates so far.
func (s DenseState) Steps() int { return s.Step }

// Save names the parts of the state.
func (s DenseState) Save() infer.Saved {
	saved := infer.Saved{Steps: s.Step, Tensors: infer.Tensors{"params": s.Params.Flat, "covariance": s.Covariance}}
	if s.Root != (torch.Tensor{}) {
		saved.Tensors["root"] = s.Root
	}
	return saved
}

// Tensors are what the state owns, and what it shares with others.
func (s DenseState) Tensors() (owned, shared infer.Tensors) {
	saved := s.Save()
	return saved.Tensors, saved.Shared
}
