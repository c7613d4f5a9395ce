package diag

import "math"

// LOOPoint is the leave-one-out prediction of one observation.
type LOOPoint struct {
	// ELPD is the log predictive density of the observation given the others.
	ELPD float64
	// MCSE is the Monte-Carlo standard error of ELPD. It can be trusted where K is below [KThreshold].
	MCSE float64
	// P is the excess of the log predictive density with the observation over ELPD.
	P float64
	// K is the Pareto shape, and ESS the effective sample size, of the importance weights; see [PSISResult].
	K, ESS float64
}

// LOOResult is an estimate of the predictive accuracy of a model.
type LOOResult struct {
	// ELPD is the expected log pointwise predictive density, SE its standard error.
	ELPD, SE float64
	// P is the effective number of parameters, SEP its standard error.
	P, SEP float64
	// IC is -2 ELPD, on the scale of the deviance, and SEIC its standard error.
	IC, SEIC float64
	// Pointwise has one entry per observation.
	Pointwise []LOOPoint
	// Draws is the number of draws.
	Draws int
}

// LOO is leave-one-out cross-validation by Pareto-smoothed importance sampling, from the log likelihood of each
// observation in each draw, [draw][observation]. With w the smoothed weights of the ratios 1/p(y(i)|θ(s)), see [PSIS],
//
//	elpd(i) = log Σ w(s) p(y(i)|θ(s))
//	p(i)    = log (1/S) Σ p(y(i)|θ(s)) - elpd(i)
//	ELPD = Σ elpd(i),  SE = sqrt(n Var elpd(i))
//
// Vehtari, Gelman and Gabry (2017), Statistics and Computing 27, 1413-1432; as in the R package loo. ArviZ divides by n
// in Var, which makes SE smaller by sqrt((n-1)/n). MCSE is that of the log of a log-normal average,
// sqrt(log(1 + v/p²)/r), with p = exp(elpd(i)), v = Σ w² (p(y(i)|θ(s)) - p)² and r the relative efficiency.
//
// relativeEfficiency has one number per observation, see [RelativeEfficiency], or a single one for all; nil is 1, for
// independent draws. [ErrSize], [ErrNotFinite] and [ErrRange] are the errors. SE is NaN for a single observation.
func LOO(loglik [][]float64, relativeEfficiency []float64) (*LOOResult, error) {
	n, err := checkLogLik("loo", loglik)
	if err != nil {
		return nil, err
	}
	if k := len(relativeEfficiency); k > 1 && k != n {
		return nil, failf(ErrSize, "loo: %d relative efficiencies, want %d, one per observation, or 1, or none", k, n)
	}
	for i, v := range relativeEfficiency {
		if !(v > 0) || math.IsInf(v, 1) {
			return nil, failf(ErrRange, "loo: relative efficiency %d is %v, want a positive number", i, v)
		}
	}
	r := &LOOResult{Pointwise: make([]LOOPoint, n), Draws: len(loglik)}
	each(n, func(i int) {
		reff := 1.0
		switch len(relativeEfficiency) {
		case 0:
		case 1:
			reff = relativeEfficiency[0]
		default:
			reff = relativeEfficiency[i]
		}
		r.Pointwise[i] = leaveOut(observation(loglik, i), reff)
	})
	r.ELPD, r.SE = total(n, func(i int) float64 { return r.Pointwise[i].ELPD })
	r.P, r.SEP = total(n, func(i int) float64 { return r.Pointwise[i].P })
	r.IC, r.SEIC = -2*r.ELPD, 2*r.SE
	return r, nil
}

// leaveOut is the prediction of an observation with the log likelihoods ll.
func leaveOut(ll []float64, reff float64) LOOPoint {
	ratios := make([]float64, len(ll))
	for s, v := range ll {
		ratios[s] = -v
	}
	w := psis(ratios, reff)
	both := make([]float64, len(ll))
	for s, v := range ll {
		both[s] = w.LogWeights[s] + v
	}
	p := LOOPoint{ELPD: logSumExp(both), K: w.K, ESS: w.ESS}
	p.P = logSumExp(ll) - math.Log(float64(len(ll))) - p.ELPD
	relative := 0.0 // v/p²
	for s, v := range ll {
		d := math.Exp(w.LogWeights[s]) * (math.Exp(v-p.ELPD) - 1)
		relative += d * d
	}
	p.MCSE = math.Sqrt(math.Log1p(relative) / reff)
	return p
}

// Model is what [Compare] needs of a leave-one-out cross-validation.
func (r *LOOResult) Model(name string) Model {
	m := Model{Name: name, Pointwise: make([]float64, len(r.Pointwise)), P: r.P}
	for i, p := range r.Pointwise {
		m.Pointwise[i] = p.ELPD
	}
	return m
}
