package ekf

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/internal/linalg"
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
	TransitionSDs *ts.Tensor
	// InitSD is the standard deviation of each parameter to start with. 0 means the target's prior: its mean and its
	// covariance, or for one that is not Gaussian its mode and curvature on unconstrained space; and 1 for a target
	// without parts.
	InitSD float64
	// InitSDs are standard deviations for each parameter, of shape [d] or that of the params, in place of InitSD; nil for
	// none.
	InitSDs *ts.Tensor
	InitCov *ts.Tensor // covariance matrix to start with, of shape [d, d], in place of InitSD and InitSDs; nil for none
	// PerDatum gives the log likelihoods of the data of a batch at once, of shape [n]. nil means the likelihood of the
	// target, of one datum at a time.
	PerDatum curvature.PerDatum
	Memory   int64 // bytes that a matrix [d, d] or [n, d] may take; 0 is the default of curvature.Options
}

// DenseState is the state of [Dense] and of [GaussNewton].
type DenseState struct {
	Params     infer.Params // μ, of shape [d] or [K, d]
	Covariance *ts.Tensor   // P, of shape [d, d] or [K, d, d]
	// Root is a root S of P = S Sᵀ, of the same shape, which updates start from: it keeps variances that are too far apart
	// for P to hold in its numbers. Where it is nil, the Cholesky factor of P takes its place.
	Root *ts.Tensor
	Step int64 // updates so far
}

// Build checks the configuration and binds it to a target.
func (c Dense) Build(target infer.Target) (infer.Transform, error) {
	const name = "ekf.Dense"
	from, err := newSource(name, target, c.PerDatum, c.LR, c.InitSD != 0 || c.InitSDs != nil || c.InitCov != nil, c.Memory)
	if err != nil {
		return nil, err
	}
	g, err := newGaussian(name, c.TransitionSD, c.TransitionSDs, c.InitSD, c.InitSDs, c.InitCov, c.Memory)
	if err != nil {
		return nil, err
	}
	g.source = from
	return &dense{g}, nil
}

// Defaults are 1000 draws after one pass over the data.
func (Dense) Defaults() infer.Options { return infer.Options{Draws: 1000} }

var _ interface {
	infer.Transform
	infer.Restorer
	infer.Sampler
	infer.Passer
	infer.Batcher
	infer.Noter
} = (*dense)(nil)

type dense struct{ gaussian }

func (t *dense) Update(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	s, err := method.StateAs[DenseState](state, t.name)
	if err != nil {
		return nil, infer.Info{}, err
	}
	lr, err := t.rate(s.Step, b)
	if err != nil {
		return nil, infer.Info{}, err
	}
	q, err := t.walk.at(s.Step)
	if err != nil {
		return nil, infer.Info{}, err
	}
	next := DenseState{Params: s.Params, Step: s.Step + 1}
	var info infer.Info
	err = torch.Do(func(scope *torch.Scope) error {
		each, err := t.each(s.Params, b) // before the prior, which cannot tell why a model fails at a part of its data
		if err != nil {
			return err
		}
		if s, err = t.started(s, b); err != nil {
			return err
		}
		predicted, err := t.predict(s, q)
		if err != nil {
			return err
		}
		scores, err := scoresOf(t.name, each, s.Params, b, t.memory, true)
		if err != nil {
			return err
		}
		info = scores.info(lr)
		means, roots := make([]*ts.Tensor, len(scores.each)), make([]*ts.Tensor, len(scores.each))
		for k, g := range scores.each {
			mu := chain(s.Params, s.Params.Flat, k)
			if held(info.Diverged, k) {
				means[k] = same(mu)
				continue
			}
			l := predicted[k]
			w := condition(g.MustMatmul(l, false).MustMulScalar(ts.FloatScalar(math.Sqrt(lr/float64(size(g, 0)))), false))
			v, err := w.solve(transposed(l).MustMv(scores.mean[k], false))
			if err != nil {
				return err
			}
			roots[k] = w.root(l)
			if means[k], err = torch.Combine(torch.Term{Coeff: 1, Tensor: mu},
				torch.Term{Coeff: lr, Tensor: l.MustMv(v, false)}); err != nil {
				return err
			}
		}
		return next.set(scope, s, means, roots)
	})
	if err != nil {
		return nil, infer.Info{}, fmt.Errorf("%s: %w", t.name, err)
	}
	return next, info, nil
}

// set puts the chains' means and roots into the state, and the covariances that these make. A chain without a root
// keeps what it had.
func (s *DenseState) set(scope *torch.Scope, old DenseState, means, roots []*ts.Tensor) (err error) {
	p := old.Params
	covs := make([]*ts.Tensor, len(roots))
	for k, root := range roots {
		if root != nil {
			covs[k] = root.MustMatmul(transposed(root), false)
			continue
		}
		covs[k] = same(chain(p, old.Covariance, k))
		if roots[k], err = old.rootOf(k); err != nil {
			return err
		}
		roots[k] = same(roots[k])
	}
	if s.Params.Flat, err = stack(p, means); err != nil {
		return err
	}
	if s.Covariance, err = stack(p, covs); err != nil {
		return err
	}
	s.Root, err = stack(p, roots)
	method.Keep(scope, *s)
	return err
}

// lost is what to do about a covariance that is not positive definite.
const lost = "rounding has used up its digits: use float64, a smaller InitSD, or a TransitionSD above 0"

// rootOf is the root of chain k's covariance.
func (s DenseState) rootOf(k int) (*ts.Tensor, error) {
	if s.Root != nil {
		return chain(s.Params, s.Root, k), nil
	}
	return linalg.Cholesky("the covariance", chain(s.Params, s.Covariance, k), lost)
}

// Position is μ.
func (s DenseState) Position() infer.Params { return s.Params }

// Steps is the number of updates so far.
func (s DenseState) Steps() int64 { return s.Step }

// Save names the parts of the state.
func (s DenseState) Save() infer.Saved {
	saved := infer.Saved{Steps: s.Step, Tensors: infer.Tensors{"params": s.Params.Flat, "covariance": s.Covariance}}
	if s.Root != nil {
		saved.Tensors["root"] = s.Root
	}
	return saved
}

// gaussian is what [Dense] and [GaussNewton] share: the Gaussian to start with, the random walk, the update of a
// covariance, draws.
type gaussian struct {
	source
	walk walk
	sd   float64
	sds  *ts.Tensor
	cov  *ts.Tensor
}

// started is a state with the target's prior in it, where that is the one to start with and no batch has been seen.
func (g *gaussian) started(s DenseState, b infer.Batch) (DenseState, error) {
	if s.Step > 0 || !g.prior {
		return s, nil
	}
	mean, precision, err := g.begin(s.Params, b)
	if err != nil {
		return s, err
	}
	var root *ts.Tensor
	if len(precision.MustSize()) == 1 {
		root = precision.MustRsqrt(false).MustDiagEmbed(0, -2, -1, false)
	} else {
		l, err := linalg.Cholesky("the precision of the prior", precision, "set InitSD")
		if err != nil {
			return s, err
		}
		root = transposed(l).MustLinalgSolveTriangular(eye(size(l, 0), l), true, true, false, false) // P⁻¹ = L⁻ᵀL⁻¹
	}
	if s.Params.Batched() {
		root = root.MustUnsqueeze(0, false).MustRepeat([]int64{int64(s.Params.Chains()), 1, 1}, false)
	}
	s.Params.Flat, s.Root, s.Covariance = mean, root, root.MustMatmul(transposed(root), false)
	return s, nil
}

func newGaussian(name string, transitionSD infer.Schedule, transitionSDs *ts.Tensor, sd float64, sds, cov *ts.Tensor,
	memory int64) (gaussian, error) {
	g := gaussian{source: source{name: name, memory: memory}, sd: sd, sds: sds, cov: cov}
	var err error
	if g.walk, err = newWalk(name, transitionSD, transitionSDs); err != nil {
		return g, err
	}
	if g.sd == 0 {
		g.sd = 1
	}
	if err := method.CheckValue(name, "InitSD", g.sd, 0, true); err != nil {
		return g, err
	}
	return g, method.CheckValue(name, "Memory", float64(memory), 0, false)
}

func (g *gaussian) Init(p infer.Params) (infer.State, error) {
	start, err := copyOf(g.name, p)
	if err != nil {
		return nil, err
	}
	d := p.Layout.Dim()
	what := fmt.Sprintf("a covariance of shape [%d, %d] for each of %d chains", d, d, p.Chains())
	bytes := float64(d) * float64(d) * float64(p.Chains()) * float64(p.Flat.DType().Size())
	if err := method.CheckMemory(what, bytes, g.memory, g.name+".Memory",
		"use ekf.Diag, or the last layer alone by infer.Subspace"); err != nil {
		return nil, fmt.Errorf("%s: %w", g.name, err)
	}
	if err := g.walk.check(p); err != nil {
		return nil, err
	}
	s := DenseState{Params: start}
	if g.cov != nil {
		s.Covariance, s.Root, err = g.given(start)
		return s, err
	}
	err = torch.Do(func(scope *torch.Scope) error {
		variance, err := initialVariance(g.name, g.sd, g.sds, start)
		if err != nil {
			return err
		}
		s.Covariance = variance.MustDiagEmbed(0, -2, -1, false)
		s.Root = variance.MustSqrt(false).MustDiagEmbed(0, -2, -1, false)
		method.Keep(scope, s)
		return nil
	})
	return s, err
}

// given is InitCov after a check, and its root, with a chain axis where the point has one.
func (g *gaussian) given(p infer.Params) (cov, root *ts.Tensor, err error) {
	shape, err := torch.Shape(g.cov)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: InitCov: %w", g.name, err)
	}
	d := int64(p.Layout.Dim())
	if !slices.Equal(shape, []int64{d, d}) {
		return nil, nil, &infer.FieldError{Type: g.name, Field: "InitCov", Value: fmt.Sprintf("of shape %v", shape),
			Allowed: fmt.Sprintf("it must be of shape [%d, %d]", d, d)}
	}
	err = torch.Do(func(scope *torch.Scope) error {
		m, err := like(p.Flat, g.cov)
		if err != nil {
			return err
		}
		if err := linalg.CheckSymmetric(g.name, "InitCov", m); err != nil {
			return err
		}
		l, err := linalg.Cholesky(g.name+": InitCov", m,
			"a covariance must be, and a parameter that is known belongs outside the params")
		if err != nil {
			return err
		}
		cov, root = m, l
		if p.Batched() {
			chains := []int64{int64(p.Chains()), 1, 1}
			cov, root = m.MustUnsqueeze(0, false).MustRepeat(chains, false), l.MustUnsqueeze(0, false).MustRepeat(chains, false)
		}
		scope.Keep(cov, root)
		return nil
	})
	return cov, root, err
}

// predict is a root of each chain's covariance after a step of the random walk: L_pred L_predᵀ = L Lᵀ + Q.
func (g *gaussian) predict(s DenseState, q float64) ([]*ts.Tensor, error) {
	roots := make([]*ts.Tensor, s.Params.Chains())
	for k := range roots {
		l, err := s.rootOf(k)
		if err != nil {
			return nil, err
		}
		if roots[k] = l; q == 0 {
			continue
		}
		q2, err := g.walk.variance(q, s.Params)
		if err != nil {
			return nil, err
		}
		d := int64(s.Params.Layout.Dim())
		step := q2.MustSqrt(false).MustExpand([]int64{d}, true, false).MustDiagEmbed(0, -2, -1, false)
		_, r := ts.MustLinalgQr(ts.MustCat([]*ts.Tensor{transposed(l), step}, 0), "r")
		roots[k] = transposed(r)
	}
	return roots, nil
}

// Sample draws from N(μ, P). With K chains draw i is of chain i mod K.
func (g *gaussian) Sample(state infer.State, n int, streams *torch.Streams) (infer.Params, error) {
	s, err := method.StateAs[DenseState](state, g.name)
	if err != nil {
		return infer.Params{}, err
	}
	return draw(g.name, s.Params, n, streams, s.deviations)
}

// Notes are what a run says of its Gaussians.
func (g *gaussian) Notes(state infer.State, run infer.RunSummary) []draws.Note {
	s, err := method.StateAs[DenseState](state, g.name)
	if err != nil {
		return nil
	}
	return g.notes(s.Params, g.walk, run, s.deviations, func() ([]float64, error) {
		out := make([]float64, s.Params.Chains())
		for k := range out {
			root, err := s.rootOf(k)
			if err != nil {
				return nil, err
			}
			_, det := root.MustSlogdet(false)
			if out[k], err = torch.Item(det); err != nil {
				return nil, err
			}
		}
		return out, nil
	})
}

// deviations turns standard normal numbers [K, d, n] into draws from N(0, P).
func (s DenseState) deviations(z *ts.Tensor) (*ts.Tensor, error) {
	l := s.Root
	if l == nil {
		var err error
		if l, err = linalg.Cholesky("the covariance", s.Covariance, lost); err != nil {
			return nil, err
		}
	}
	if !s.Params.Batched() {
		l = l.MustUnsqueeze(0, false)
	}
	return l.Matmul(z, false)
}

func (g *gaussian) Restore(layout *infer.Layout, saved infer.Saved) (infer.State, error) {
	flat, err := saved.Tensor("params")
	if err != nil {
		return nil, err
	}
	cov, err := saved.Tensor("covariance")
	// A state that a user made may have no root.
	return DenseState{Params: infer.Params{Layout: layout, Flat: flat}, Covariance: cov, Root: saved.Tensors["root"],
		Step: saved.Steps}, err
}

// Tensors are what the state owns, and what it shares with others.
func (s DenseState) Tensors() (owned, shared infer.Tensors) {
	saved := s.Save()
	return saved.Tensors, saved.Shared
}
