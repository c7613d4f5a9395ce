package ekf

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Dense is the extended Kalman filter with a full covariance matrix, updated with the mean gradient of the batch and its empirical
// Fisher matrix (Ollivier 2018, with the Fisher matrix taken at the observed data):
//
//	P_pred = P + q² I
//	P'⁻¹   = P_pred⁻¹ + ε F,         F = (1/n) Σ g_i g_iᵀ
//	μ'     = μ + ε P' (1/n) Σ g_i
//
// where g_i is the gradient of log p(y_i|θ) at μ. The data never widen the covariance. Both sums are means: at ε = 1 a batch
// counts as one datum, and ε = n counts each of its n data in full.
//
// Build takes the log likelihood, without a prior: the prior is the Gaussian to start with. Info.LogPosterior is the mean log likelihood of the
// batch at μ, and Info.GradNorm the norm of its gradient.
type Dense struct {
	LR           infer.Schedule // ε; required
	TransitionSD infer.Schedule // q; nil means 0, or 1 with TransitionSDs
	// TransitionSDs multiply q, one factor for each parameter, of shape [d]; nil means 1.
	TransitionSDs *ts.Tensor
	InitSD        float64 // standard deviation of each parameter to start with; 0 means 1
	// InitSDs are standard deviations for each parameter, of shape [d] or that of the params, in place of InitSD; nil for none.
	InitSDs *ts.Tensor
	InitCov *ts.Tensor // covariance matrix to start with, of shape [d, d], in place of InitSD and InitSDs; nil for none
	// PerDatum gives the log likelihoods of the data of a batch at once, of shape [n], and takes the place of the function given to
	// Build, which may then be nil; without it that function is called with one datum at a time, under vmap.
	PerDatum curvature.PerDatum
	Memory   int64 // bytes that a matrix [d, d] or [n, d] may take; 0 is the default of curvature.Options
}

// DenseState is the state of [Dense] and of [GaussNewton].
type DenseState struct {
	Params     infer.Params // μ, of shape [d] or [K, d]
	Covariance *ts.Tensor   // P, of shape [d, d] or [K, d, d]
	Step       int64        // updates so far
}

// Build checks the configuration and binds it to a log likelihood.
func (c Dense) Build(logLikelihood infer.LogPosterior) (infer.Transform, error) {
	const name = "ekf.Dense"
	likelihood, err := perDatum(name, c.PerDatum, logLikelihood)
	if err != nil {
		return nil, err
	}
	if c.LR, err = infer.CheckSchedule(name, "LR", c.LR, nil, 0, false); err != nil {
		return nil, err
	}
	g, err := newGaussian(name, c.TransitionSD, c.TransitionSDs, c.InitSD, c.InitSDs, c.InitCov, c.Memory)
	if err != nil {
		return nil, err
	}
	return &dense{gaussian: g, lr: c.LR, likelihood: likelihood}, nil
}

type dense struct {
	gaussian
	lr         infer.Schedule
	likelihood curvature.PerDatum
}

func (t *dense) Update(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	s, err := infer.StateAs[DenseState](state, t.name)
	if err != nil {
		return nil, infer.Info{}, err
	}
	lr := t.lr(s.Step)
	if err := infer.CheckValue(t.name, fmt.Sprintf("LR at update %d", s.Step), lr, 0, false); err != nil {
		return nil, infer.Info{}, err
	}
	q, err := t.walk.at(s.Step)
	if err != nil {
		return nil, infer.Info{}, err
	}
	next := DenseState{Params: s.Params, Step: s.Step + 1}
	var info infer.Info
	err = torch.Do(func(scope *torch.Scope) error {
		predicted, err := t.walk.addTo(s.Covariance, q, s.Params)
		if err != nil {
			return err
		}
		scores, err := scoresOf(t.likelihood, s.Params, b, t.memory)
		if err != nil {
			return err
		}
		info = scores.info(lr)
		means, covs := make([]*ts.Tensor, len(scores.each)), make([]*ts.Tensor, len(scores.each))
		for k, g := range scores.each {
			mu := chain(s.Params, s.Params.Flat, k)
			if held(info.Diverged, k) {
				means[k], covs[k] = same(mu), same(chain(s.Params, s.Covariance, k))
				continue
			}
			n := float64(torch.Must(torch.Shape(g))[0])
			fisher := g.MustTranspose(0, 1, false).MustMatmul(g, false).MustMulScalar(ts.FloatScalar(lr/n), false)
			c, err := t.condition(chain(s.Params, predicted, k), fisher)
			if err != nil {
				return err
			}
			covs[k] = c.cov
			if means[k], err = torch.Combine(torch.Term{Coeff: 1, Tensor: mu}, torch.Term{Coeff: lr, Tensor: c.cov.MustMv(scores.mean[k], false)}); err != nil {
				return err
			}
		}
		return next.set(scope, means, covs)
	})
	if err != nil {
		return nil, infer.Info{}, fmt.Errorf("%s: %w", t.name, err)
	}
	return next, info, nil
}

// set puts the chains' means and covariances into the state.
func (s *DenseState) set(scope *torch.Scope, means, covs []*ts.Tensor) (err error) {
	batched := s.Params
	if s.Params.Flat, err = stack(batched, means); err != nil {
		return err
	}
	s.Covariance, err = stack(batched, covs)
	scope.Keep(s.Params.Flat, s.Covariance)
	return err
}

// Position is μ.
func (s DenseState) Position() infer.Params { return s.Params }

// Steps is the number of updates so far.
func (s DenseState) Steps() int64 { return s.Step }

// Save names the parts of the state.
func (s DenseState) Save() infer.Saved {
	return infer.Saved{Steps: s.Step, Tensors: infer.Tensors{"params": s.Params.Flat, "covariance": s.Covariance}}
}

// gaussian is what [Dense] and [GaussNewton] share: the Gaussian to start with, the random walk, the update of a covariance, draws.
type gaussian struct {
	name   string
	walk   walk
	sd     float64
	sds    *ts.Tensor
	cov    *ts.Tensor
	memory int64
}

func newGaussian(name string, transitionSD infer.Schedule, transitionSDs *ts.Tensor, sd float64, sds, cov *ts.Tensor, memory int64) (gaussian, error) {
	g := gaussian{name: name, sd: sd, sds: sds, cov: cov, memory: memory}
	var err error
	if g.walk, err = newWalk(name, transitionSD, transitionSDs); err != nil {
		return g, err
	}
	if g.sd == 0 {
		g.sd = 1
	}
	if err := infer.CheckValue(name, "InitSD", g.sd, 0, true); err != nil {
		return g, err
	}
	return g, infer.CheckValue(name, "Memory", float64(memory), 0, false)
}

func (g *gaussian) Init(p infer.Params) (infer.State, error) {
	start, err := copyOf(g.name, p)
	if err != nil {
		return nil, err
	}
	if err := checkMemory(g.name, p, g.memory); err != nil {
		return nil, err
	}
	if err := g.walk.check(p); err != nil {
		return nil, err
	}
	s := DenseState{Params: start}
	if g.cov != nil {
		s.Covariance, err = g.given(start)
		return s, err
	}
	variance, err := initialVariance(g.name, g.sd, g.sds, start)
	if err != nil {
		return nil, err
	}
	s.Covariance, err = variance.DiagEmbed(0, -2, -1, false)
	return s, err
}

// given is InitCov after a check, with a chain axis where the point has one.
func (g *gaussian) given(p infer.Params) (cov *ts.Tensor, err error) {
	shape, err := torch.Shape(g.cov)
	if err != nil {
		return nil, fmt.Errorf("%s: InitCov: %w", g.name, err)
	}
	d := int64(p.Layout.Dim())
	bad := func(value, allowed string) error {
		return &infer.FieldError{Type: g.name, Field: "InitCov", Value: value, Allowed: allowed}
	}
	if !slices.Equal(shape, []int64{d, d}) {
		return nil, bad(fmt.Sprintf("of shape %v", shape), fmt.Sprintf("it must be of shape [%d, %d]", d, d))
	}
	err = torch.Do(func(scope *torch.Scope) error {
		m, err := like(p.Flat, g.cov)
		if err != nil {
			return err
		}
		asymmetry := torch.Must(torch.Item(m.MustSub(transposed(m), false).MustAbs(false).MustMax(false)))
		if size := torch.Must(torch.Item(m.MustAbs(false).MustMax(false))); asymmetry > 1e-6*size {
			return bad(fmt.Sprintf("not symmetric: elements differ from their mirror images by up to %g", asymmetry), "it must be symmetric")
		}
		if _, err := cholesky(g.name+": InitCov", m, "a covariance must be, and a parameter that is known belongs outside the params"); err != nil {
			return err
		}
		cov = m
		if p.Batched() {
			cov = m.MustUnsqueeze(0, false).MustRepeat([]int64{int64(p.Chains()), 1, 1}, false)
		}
		scope.Keep(cov)
		return nil
	})
	return cov, err
}

// conditioned is a covariance after data, (P⁻¹ + F)⁻¹, and log |I + PF|, by how much log |P| has fallen.
type conditioned struct {
	cov    *ts.Tensor
	root   *ts.Tensor // L, with P = L Lᵀ
	logDet float64
}

// condition adds the curvature F of data to a Gaussian of covariance P = L Lᵀ: (P⁻¹ + F)⁻¹ = L (I + Lᵀ F L)⁻¹ Lᵀ. No inverse of P is
// made, and the result is symmetric and positive by construction.
func (g *gaussian) condition(p, f *ts.Tensor) (c conditioned, err error) {
	l, err := cholesky("the predicted covariance", p, "rounding has used up its digits: use float64, a smaller InitSD, or a TransitionSD above 0")
	if err != nil {
		return c, err
	}
	shape, err := torch.Shape(p)
	if err != nil {
		return c, err
	}
	m := transposed(l).MustMatmul(f, false).MustMatmul(l, false).MustAdd(eye(shape[0], p), false)
	r, err := cholesky("the updated precision, in units of the predicted one,", m, "Outer must be log-concave in the outputs, and LR not too large")
	if err != nil {
		return c, err
	}
	a := r.MustLinalgSolveTriangular(transposed(l), false, true, false, false)
	c.root, c.cov = l, transposed(a).MustMatmul(a, false)
	half, err := torch.Item(r.MustDiagonal(0, 0, 1, false).MustLog(false).MustSum(r.DType(), false))
	c.logDet = 2 * half
	return c, err
}

// Sample draws from N(μ, P). With K chains draw i is of chain i mod K.
func (g *gaussian) Sample(state infer.State, n int, streams *torch.Streams) (infer.Params, error) {
	s, err := infer.StateAs[DenseState](state, g.name)
	if err != nil {
		return infer.Params{}, err
	}
	return draw(g.name, s.Params, n, streams, func(z *ts.Tensor) (*ts.Tensor, error) {
		l, err := cholesky("the covariance", s.Covariance, "rounding has used up its digits: use float64, a smaller InitSD, or a TransitionSD above 0")
		if err != nil {
			return nil, err
		}
		if !s.Params.Batched() {
			l = l.MustUnsqueeze(0, false)
		}
		return l.Matmul(z, false)
	})
}

func (g *gaussian) Restore(layout *infer.Layout, saved infer.Saved) (infer.State, error) {
	flat, err := saved.Tensor("params")
	if err != nil {
		return nil, err
	}
	cov, err := saved.Tensor("covariance")
	return DenseState{Params: infer.Params{Layout: layout, Flat: flat}, Covariance: cov, Step: saved.Steps}, err
}
