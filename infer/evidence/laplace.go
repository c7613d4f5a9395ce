package evidence

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/path"
	"github.com/kelvin-ppl/kelvin/internal/sample"
	"github.com/kelvin-ppl/kelvin/torch"
)

// laplaceDraws is how many draws check a Laplace approximation.
const laplaceDraws = 4096

// Laplace is the log evidence of Laplace's approximation, from a run of a method of package laplace with one chain:
//
//	r, err := infer.Run(ctx, program, laplace.DenseHessian{}, infer.Options{Chains: 1})
//	z, err := evidence.Laplace(program, r)
//
// LogZ is log p(y, θ̂) + (d/2) log 2π − ½ log |H| at the mode on unconstrained space. It is no Monte-Carlo estimate: SE
// is how far importance sampling with the same Gaussian is from it, |log of the mean weight|, with that mean's own
// standard error. Beside is the importance-sampling estimate.
func Laplace(program infer.Program, r *infer.Result) (*Result, error) {
	const what = "evidence.Laplace"
	if program == nil || r == nil {
		return nil, fmt.Errorf("%s: the program or the result is nil: %w", what, infer.ErrConfig)
	}
	state, ok := r.State.(interface {
		infer.State
		LogEvidence(logJoint float64) (float64, error)
		Precision() (torch.Tensor, error)
	})
	if !ok {
		return nil, fmt.Errorf("%s: the result is of a %T: it must be of a run of package laplace, in one group: %w", what,
			r.Transform, infer.ErrConfig)
	}
	if k := state.Position().Chains(); k != 1 {
		return nil, fmt.Errorf("%s: the run has %d chains: set infer.Options{Chains: 1}: %w", what, k, infer.ErrConfig)
	}
	if err := normalized(what, program.Target(), program.Batch()); err != nil {
		return nil, err
	}
	out, err := laplaceResult(program, state.Position(), state.Precision, state.LogEvidence)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return out, nil
}

func laplaceResult(program infer.Program, at infer.Params, precision func() (torch.Tensor, error),
	logEvidence func(float64) (float64, error)) (*Result, error) {
	e, err := path.Path{Full: true}.On(program, native.Auto)
	if err != nil {
		return nil, err
	}
	mode, err := at.Values()
	if err != nil {
		return nil, err
	}
	var p []float64
	err = torch.Do(func(*torch.Scope) error {
		t, err := precision()
		if err != nil {
			return err
		}
		p, err = torch.ToSlice[float64](t)
		return err
	})
	if err != nil {
		return nil, err
	}
	g, err := normalOfPrecision(mode, p)
	if err != nil {
		return nil, err
	}
	x := single(g).draw(laplaceDraws, 0)
	d := len(mode)
	var points path.Points
	if err := e.Eval(append(mode, x...), []float64{1}, &points); err != nil {
		return nil, err
	}
	out := &Result{Estimator: "Laplace", Gradients: len(points.LogP),
		Trace: Trace{XLabel: "draws", YLabel: "log Z by importance sampling"}}
	if out.LogZ, err = logEvidence(points.LogP[0]); err != nil {
		return nil, err
	}
	if !finite(out.LogZ) {
		return nil, fmt.Errorf("the log evidence is %v: %w", out.LogZ, infer.ErrNonFinite)
	}
	weights := make([]float64, laplaceDraws)
	for k := range weights {
		weights[k] = points.LogP[k+1] - g.logDensity(x[k*d:(k+1)*d])
		if math.IsNaN(weights[k]) {
			weights[k] = math.Inf(-1)
		}
	}
	for n := laplaceDraws / 32; n <= laplaceDraws; n += laplaceDraws / 32 {
		z, se := logMeanExp(weights[:n])
		out.Trace.X, out.Trace.Y = append(out.Trace.X, float64(n)), append(out.Trace.Y, z)
		out.Trace.SD = append(out.Trace.SD, se)
	}
	z, se := logMeanExp(weights)
	out.Beside = []Estimate{{Name: "importance sampling", LogZ: z, SE: se}}
	out.SE = math.Hypot(z-out.LogZ, se)
	if ess := sample.Effective(weights); ess < 0.5*laplaceDraws {
		out.warn("of %d draws of the Gaussian the weights leave %.0f: the posterior is not normal, and where it is wider "+
			"than the Gaussian, or has other modes, no number here says how wrong log Z is: use SMC, TI or a bridge",
			laplaceDraws, ess)
	}
	return out, nil
}
