package ekf

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
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
	TransitionSDs *ts.Tensor
	// InitSD is the standard deviation of each parameter to start with. 0 means the target's prior: its mean and its
	// covariance, or for one that is not Gaussian its mode and curvature on unconstrained space; and 1 for a target
	// without parts.
	InitSD float64
	// InitSDs are standard deviations for each parameter, of shape [d] or that of the params, in place of InitSD; nil for
	// none.
	InitSDs *ts.Tensor
	// PerDatum gives the log likelihoods of the data of a batch at once, of shape [n]. nil means the likelihood of the
	// target, of one datum at a time.
	PerDatum curvature.PerDatum
	Memory   int64 // bytes that the gradients of a block of data may take; 0 is the default of curvature.Options
}

// DiagState is the state of [Diag].
type DiagState struct {
	Params   infer.Params // μ, of shape [d] or [K, d]
	Variance *ts.Tensor   // v, of the same shape
	Step     int64        // updates so far
}

// Build checks the configuration and binds it to a target.
func (c Diag) Build(target infer.Target) (infer.Transform, error) {
	const name = "ekf.Diag"
	from, err := newSource(name, target, c.PerDatum, c.LR, c.InitSD != 0 || c.InitSDs != nil, c.Memory)
	if err != nil {
		return nil, err
	}
	walk, err := newWalk(name, c.TransitionSD, c.TransitionSDs)
	if err != nil {
		return nil, err
	}
	if c.InitSD == 0 {
		c.InitSD = 1
	}
	if err := method.CheckValue(name, "InitSD", c.InitSD, 0, true); err != nil {
		return nil, err
	}
	if err := method.CheckValue(name, "Memory", float64(c.Memory), 0, false); err != nil {
		return nil, err
	}
	return &diag{c: c, source: from, walk: walk}, nil
}

// Defaults are 1000 draws after one pass over the data.
func (Diag) Defaults() infer.Options { return infer.Options{Draws: 1000} }

var _ interface {
	infer.Transform
	infer.Restorer
	infer.Sampler
	infer.Passer
	infer.Batcher
	infer.Noter
} = (*diag)(nil)

type diag struct {
	source
	c    Diag
	walk walk
}

func (t *diag) Init(p infer.Params) (infer.State, error) {
	start, err := copyOf(t.name, p)
	if err != nil {
		return nil, err
	}
	if err := t.walk.check(p); err != nil {
		return nil, err
	}
	s := DiagState{Params: start}
	if s.Variance, err = initialVariance(t.name, t.c.InitSD, t.c.InitSDs, start); err != nil {
		return nil, err
	}
	return s, nil
}

func (t *diag) Update(state infer.State, b infer.Batch) (infer.State, infer.Info, error) {
	s, err := method.StateAs[DiagState](state, t.name)
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
	next := DiagState{Params: s.Params, Step: s.Step + 1}
	var info infer.Info
	err = torch.Do(func(scope *torch.Scope) error {
		each, err := t.each(s.Params, b) // before the prior, which cannot tell why a model fails at a part of its data
		if err != nil {
			return err
		}
		if s.Step == 0 && t.prior {
			mean, precision, err := t.begin(s.Params, b)
			if err != nil {
				return err
			}
			if len(precision.MustSize()) == 2 {
				precision = precision.MustDiagonal(0, 0, 1, false)
			}
			s.Params.Flat, s.Variance = mean, same(precision.MustReciprocal(false).MustExpandAs(mean, false))
		}
		q2, err := t.walk.variance(q, s.Params)
		if err != nil {
			return err
		}
		scores, err := scoresOf(t.name, each, s.Params, b, t.memory, false)
		if err != nil {
			return err
		}
		info = scores.info(lr)
		fisher, err := stack(s.Params, scores.squares)
		if err != nil {
			return err
		}
		grad, err := stack(s.Params, scores.mean)
		if err != nil {
			return err
		}

		// 1/(1/v_pred + εF) without the reciprocal of a reciprocal.
		predicted := s.Variance.MustAdd(q2, false)
		shrink := predicted.MustMul(fisher, false).MustMulScalar(ts.FloatScalar(lr), false).MustAddScalar(ts.FloatScalar(1),
			false)
		next.Variance = predicted.MustDiv(shrink, false)
		step := next.Variance.MustMul(grad, false)
		next.Params.Flat, err = torch.Combine(torch.Term{Coeff: 1, Tensor: s.Params.Flat},
			torch.Term{Coeff: lr, Tensor: step})
		if err != nil {
			return err
		}

		if next.Params.Flat, err = method.Hold(s.Params.Flat, next.Params.Flat, info.Diverged); err != nil {
			return err
		}
		next.Variance, err = method.Hold(s.Variance, next.Variance, info.Diverged)
		scope.Keep(next.Params.Flat, next.Variance)
		return err
	})
	if err != nil {
		return nil, infer.Info{}, fmt.Errorf("%s: %w", t.name, err)
	}
	return next, info, nil
}

// Sample draws from N(μ, v). With K chains draw i is of chain i mod K.
func (t *diag) Sample(state infer.State, n int, streams *torch.Streams) (infer.Params, error) {
	s, err := method.StateAs[DiagState](state, t.name)
	if err != nil {
		return infer.Params{}, err
	}
	return draw(t.name, s.Params, n, streams, s.deviations)
}

// Notes are what a run says of its Gaussians.
func (t *diag) Notes(state infer.State, run infer.RunSummary) []draws.Note {
	s, err := method.StateAs[DiagState](state, t.name)
	if err != nil {
		return nil
	}
	return t.notes(s.Params, t.walk, run, s.deviations, func() ([]float64, error) {
		logs := s.Variance.MustReshape([]int64{int64(s.Params.Chains()), -1}, false).MustLog(false)
		sum := logs.MustSumDimIntlist([]int64{1}, false, logs.DType(), false)
		return torch.ToSlice[float64](sum.MustMulScalar(ts.FloatScalar(0.5), false))
	})
}

// deviations turns standard normal numbers [K, d, n] into draws from N(0, diag v).
func (s DiagState) deviations(z *ts.Tensor) (*ts.Tensor, error) {
	return z.Mul(s.Variance.MustSqrt(false).MustReshape([]int64{int64(s.Params.Chains()), -1, 1}, false), false)
}

func (t *diag) Restore(layout *infer.Layout, saved infer.Saved) (infer.State, error) {
	flat, err := saved.Tensor("params")
	if err != nil {
		return nil, err
	}
	v, err := saved.Tensor("variance")
	return DiagState{Params: infer.Params{Layout: layout, Flat: flat}, Variance: v, Step: saved.Steps}, err
}

// Position is μ.
func (s DiagState) Position() infer.Params { return s.Params }

// Steps is the number of updates so far.
func (s DiagState) Steps() int64 { return s.Step }

// Save names the parts of the state.
func (s DiagState) Save() infer.Saved {
	return infer.Saved{Steps: s.Step, Tensors: infer.Tensors{"params": s.Params.Flat, "variance": s.Variance}}
}

// Tensors are what the state owns, and what it shares with others.
func (s DiagState) Tensors() (owned, shared infer.Tensors) {
	saved := s.Save()
	return saved.Tensors, saved.Shared
}
