package evidence

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// Integrate is thermodynamic integration of slopes that were drawn along a path, by [TI] or by any sampler at each
// rung:
//
//	log Z(1) = log Z(0) + ∫ E_β[∂ log density/∂β] dβ  over β from 0 to 1
//
// slopes[c][k][t] is the slope at β = ladder[k] of draw t of chain c; all have the same number of draws, and draw t of
// the rungs of a chain belongs together, so that the error counts what swaps make of them. With f_k and V_k the mean
// and variance at rung k and h its distance to the next, LogZ is the corrected trapezoidal rule (Friel, Hurn and Wyse
// 2014)
//
//	Σ h (f_k + f_{k+1})/2 − h²/12 (V_{k+1} − V_k)
//
// whose error is of fourth order in h, since V is the derivative of f. Beside are the trapezoidal rule, whose Error is
// the size of the correction, and stepping stones (Xie et al. 2011), Σ log E_k[exp(h slope)], which have no error of a
// rule. SE has the Monte-Carlo error of the whole sum, and what the rule and the stones differ by beyond noise. Where
// that is more than twice the error of the stones, as it is where slopes at small β have no variance, or where a slope
// is −Inf, LogZ is that of the stones, and Estimator says so.
func Integrate(ladder []float64, slopes [][][]float64, logZ0 float64) (*Result, error) {
	const typ = "evidence.Integrate"
	if err := fullLadder(typ, ladder); err != nil {
		return nil, err
	}
	n := 0
	for c, chain := range slopes {
		if len(chain) != len(ladder) {
			return nil, fmt.Errorf("%s: chain %d has %d rungs and the ladder %d: %w", typ, c, len(chain), len(ladder),
				infer.ErrConfig)
		}
		for k, x := range chain {
			if n == 0 {
				n = len(x)
			}
			if len(x) != n || n < 4 {
				return nil, fmt.Errorf("%s: rung %d of chain %d has %d draws: all must have as many, and 4 at least: %w", typ, k,
					c, len(x), infer.ErrConfig)
			}
		}
	}
	if n == 0 || !finite(logZ0) {
		return nil, fmt.Errorf("%s: there are no chains, or log Z at β = 0 is %v: %w", typ, logZ0, infer.ErrConfig)
	}
	i := integral{ladder: ladder, slopes: slopes, n: n}
	stones, stonesSeries := i.stones()
	r := &Result{Estimator: "thermodynamic integration", LogZ: logZ0 + stones, SE: diag.MCSEMean(stonesSeries),
		Trace: Trace{XLabel: "β", YLabel: "mean slope"}}
	beside := Estimate{Name: "stepping stones", LogZ: r.LogZ, SE: r.SE}
	if bad := i.unbounded(); bad > 0 {
		r.Estimator, r.Beside = onStones, []Estimate{beside}
		r.warn("the density is 0 at %d of the draws at β = 0, so that the integral has no finite start: log Z is that of "+
			"the stepping stones", bad)
		i.check(r, stonesSeries)
		return r, nil
	}
	trapezoid, corrected, rule, series := i.rules(&r.Trace)
	r.LogZ = logZ0 + corrected
	difference := make([][]float64, len(series))
	for c := range series {
		difference[c] = make([]float64, n)
		for t := range series[c] {
			difference[c][t] = series[c][t] - stonesSeries[c][t]
		}
	}
	mc, noise := diag.MCSEMean(series), diag.MCSEMean(difference)
	off := math.Sqrt(math.Max(0, (corrected-stones)*(corrected-stones)-noise*noise))
	r.SE = math.Hypot(mc, off)
	r.Beside = []Estimate{
		{Name: "trapezoid", LogZ: logZ0 + trapezoid, SE: diag.MCSEMean(rule), Error: math.Abs(corrected - trapezoid)}, beside}
	if r.SE > 2*beside.SE {
		r.Estimator, r.LogZ, r.SE, series = onStones, beside.LogZ, beside.SE, stonesSeries
	} else if off > 2*mc {
		r.warn("the integral differs from the stepping stones by %.2g, more than their noise: the ladder is too coarse: use "+
			"more rungs", corrected-stones)
	}
	i.check(r, series)
	return r, nil
}

const onStones = "thermodynamic integration, by stepping stones"

type integral struct {
	ladder []float64
	slopes [][][]float64
	n      int
}

// unbounded is how many slopes are not finite.
func (i integral) unbounded() (bad int) {
	for _, chain := range i.slopes {
		for _, x := range chain {
			for _, v := range x {
				if !finite(v) {
					bad++
				}
			}
		}
	}
	return bad
}

// stones is Σ log mean exp(h slope), and for each chain the series whose mean has its error: Σ exp(h slope)/mean.
func (i integral) stones() (sum float64, series [][]float64) {
	series = i.zeros()
	for k := range len(i.ladder) - 1 {
		h := i.ladder[k+1] - i.ladder[k]
		var all []float64
		for _, chain := range i.slopes {
			for _, v := range chain[k] {
				if v *= h; math.IsNaN(v) {
					v = math.Inf(-1)
				}
				all = append(all, v)
			}
		}
		mean := sample.LogSumExp(all) - math.Log(float64(len(all)))
		sum += mean
		for c := range series {
			for t := range series[c] {
				series[c][t] += math.Exp(all[c*i.n+t] - mean)
			}
		}
	}
	return sum, series
}

// rules are the trapezoidal rule and the corrected one, with the series whose means have their errors.
func (i integral) rules(trace *Trace) (trapezoid, corrected float64, rule, series [][]float64) {
	rule, series = i.zeros(), i.zeros()
	last := len(i.ladder) - 1
	for k, beta := range i.ladder {
		var all []float64
		for _, chain := range i.slopes {
			all = append(all, chain[k]...)
		}
		f, v := moments(all)
		before, after := 0.0, 0.0
		if k > 0 {
			before = beta - i.ladder[k-1]
		}
		if k < last {
			after = i.ladder[k+1] - beta
		}
		a, b := (before+after)/2, (after*after-before*before)/12
		trapezoid += a * f
		corrected += a*f + b*v
		for c, chain := range i.slopes {
			for t, x := range chain[k] {
				rule[c][t] += a * x
				series[c][t] += a*x + b*(x-f)*(x-f)
			}
		}
		own := make([][]float64, len(i.slopes))
		for c, chain := range i.slopes {
			own[c] = chain[k]
		}
		trace.X, trace.Y, trace.SD = append(trace.X, beta), append(trace.Y, f), append(trace.SD, diag.MCSEMean(own))
	}
	return trapezoid, corrected, rule, series
}

func (i integral) zeros() [][]float64 {
	out := make([][]float64, len(i.slopes))
	for c := range out {
		out[c] = make([]float64, i.n)
	}
	return out
}

// check warns where the chains have not mixed.
func (i integral) check(r *Result, series [][]float64) {
	if v := diag.RHat(series); v > 1.05 {
		r.warn("the chains' estimates have an R-hat of %.3g: they have not mixed, and the error is too small: draw longer", v)
	}
	if v := diag.ESSMean(series); !(v >= 100) {
		r.warn("the estimate is worth %.0f independent draws: its error is itself uncertain below 100: draw longer", v)
	}
}
