package evidence

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/sample"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Result is an estimate of the log evidence, log Z = log ∫ p(y|θ) p(θ) dθ, in nats.
type Result struct {
	Estimator string  // its name, such as "bridge"
	LogZ      float64 // the estimate, in nats
	SE        float64 // standard error of LogZ
	// Gradients is how many evaluations of the density, mostly with its gradient, it took. Of an estimate that was made
	// of the draws of another run they are those of the estimate alone.
	Gradients int
	// Beside are other estimates from the same numbers, for comparison.
	Beside []Estimate
	// Warnings say in words why the standard error is not to be trusted, and what to do; nil where nothing is known
	// against it.
	Warnings []string
	Trace    Trace // for plot.Curve
}

// Estimate is a second estimate from the same numbers.
type Estimate struct {
	Name     string  // how it is made
	LogZ, SE float64 // the estimate with its standard error, in nats
	Error    float64 // estimated error of the rule, besides the standard error; 0 for a rule without one
}

// Trace is what the estimate was made of, as a curve with error bars: the means of the slope along the path, or the
// estimates at the iterations of a bridge.
type Trace struct {
	X, Y, SD       []float64 // the points, their heights and standard errors
	XLabel, YLabel string    // of the axes
}

// String is one line for the estimate, and one for each warning.
func (r *Result) String() string {
	if r == nil {
		return "no estimate"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "log Z = %.4f ± %.4f (%s, %d gradients)", r.LogZ, r.SE, r.Estimator, r.Gradients)
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "\n  warning: %s", w)
	}
	return b.String()
}

func (r *Result) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// Run estimates the log evidence of a program with a method of this package that walks a path: [TI], [SMC] or [AIS].
// It is infer.Run, with its options: seeds, checkpoints, observers and tiers work as for all methods. All chains run as
// one group.
func Run(ctx context.Context, program infer.Program, method infer.Method, o infer.Options) (*Result, error) {
	switch method.(type) {
	case TI, SMC, AIS:
	default:
		return nil, fmt.Errorf("evidence.Run: the method is a %T: it must be evidence.TI, SMC or AIS: %w", method,
			infer.ErrConfig)
	}
	r, err := infer.Run(ctx, program, method, o)
	if err != nil {
		return nil, fmt.Errorf("evidence.Run: %w", err)
	}
	z, ok := r.Detail.(*Result)
	if !ok {
		return nil, fmt.Errorf("evidence.Run: Options.Group is less than Chains: leave it 0: %w", infer.ErrConfig)
	}
	return z, nil
}

// normalized returns an error unless the target's prior can be drawn from, which says that it is normalized.
func normalized(what string, t infer.Target, b infer.Batch) error {
	if t.Prior == nil {
		return fmt.Errorf("%s: the target does not say that its prior is normalized, so that log Z is not defined: set "+
			"infer.Target.Prior to what draws from it, or compile a model: %w", what, infer.ErrConfig)
	}
	return torch.Do(func(*torch.Scope) error {
		if _, err := t.Prior(b, torch.NewStreams(0, 1)); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
}

// BayesFactor is the log Bayes factor log Z_a − log Z_b of two models of the same data, and its standard error.
// Positive numbers favour a. With equal prior odds its exponential is the posterior odds.
func BayesFactor(a, b *Result) (log, se float64, err error) {
	if a == nil || b == nil {
		return math.NaN(), math.NaN(), fmt.Errorf("evidence.BayesFactor: an estimate is nil: %w", infer.ErrConfig)
	}
	return a.LogZ - b.LogZ, math.Hypot(a.SE, b.SE), nil
}

// Probabilities are the posterior probabilities of models of the same data, Z_i π_i / Σ Z_j π_j, and their standard
// errors by the delta method. prior are the π, up to a common factor; nil is equal ones.
func Probabilities(models []*Result, prior []float64) (p, se []float64, err error) {
	if len(models) == 0 || prior != nil && len(prior) != len(models) {
		return nil, nil, fmt.Errorf("evidence.Probabilities: %d models with %d prior probabilities: %w", len(models),
			len(prior), infer.ErrConfig)
	}
	logs := make([]float64, len(models))
	for i, m := range models {
		if m == nil || !finite(m.LogZ) {
			return nil, nil, fmt.Errorf("evidence.Probabilities: model %d has no finite log Z: %w", i, infer.ErrNonFinite)
		}
		logs[i] = m.LogZ
		if prior != nil {
			if !(prior[i] >= 0) || math.IsInf(prior[i], 0) {
				return nil, nil, &infer.FieldError{Type: "evidence.Probabilities", Field: fmt.Sprintf("prior[%d]", i),
					Value: prior[i], Allowed: "it must be a number of at least 0"}
			}
			logs[i] += math.Log(prior[i])
		}
	}
	z := sample.LogSumExp(logs)
	if !finite(z) {
		return nil, nil, fmt.Errorf("evidence.Probabilities: all prior probabilities are 0: %w", infer.ErrConfig)
	}
	for _, l := range logs {
		p = append(p, math.Exp(l-z))
	}
	for i := range p {
		v := 0.0 // ∂p_i/∂log Z_j = p_i (δ_ij − p_j)
		for j, m := range models {
			d := -p[i] * p[j]
			if i == j {
				d += p[i]
			}
			v += d * d * m.SE * m.SE
		}
		se = append(se, math.Sqrt(v))
	}
	return p, se, nil
}

// logMeanExp is log of the mean of exp(x), with the standard error of that logarithm by the delta method.
func logMeanExp(x []float64) (value, se float64) {
	n := float64(len(x))
	value = sample.LogSumExp(x) - math.Log(n)
	square := 0.0
	for _, v := range x {
		d := math.Exp(v-value) - 1
		square += d * d
	}
	return value, math.Sqrt(square / n / (n - 1))
}

// moments are mean and variance, with n − 1.
func moments(x []float64) (mean, variance float64) {
	n := float64(len(x))
	for _, v := range x {
		mean += v / n
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / (n - 1)
	}
	return mean, variance
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
