package approx

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/diag/loo"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// FarFromPosterior is the kind of the notes on a fit.
const FarFromPosterior = "far_from_posterior"

// What a check costs at most.
const (
	points     = 1000 // drawn from each distribution
	mostChains = 4    // distributions that are looked at
	mostDim    = 200  // with more parameters the ratios say little about each
	mostTerms  = 4e7  // densities of single data
	block      = 250  // points evaluated at once
)

// What is worth a note, and what makes figures wrong.
const (
	meanLimit = 0.3 // standard deviations that a mean is off
	meanWrong = 1
	sdLimit   = 1.2 // factor on a standard deviation: an interval of 95 % covers 90 %
	sdWrong   = 2
)

// Fit is K fitted distributions, and the target that each approximates.
type Fit struct {
	Name        string // of the method
	Target      infer.Target
	Temperature float64
	Batch       infer.Batch // all of the data
	Mean        infer.Params
	// Width is how many standard normal numbers ε a draw takes, and Map takes those of n draws of each distribution,
	// [K, n, Width], to deviations from the means, [K, n, d], and the log densities there, [K, n], up to a constant.
	Width int
	Map   func(eps torch.Tensor) (deviations, logq torch.Tensor, err error)
	// Draw takes the place of Width and Map where a distribution is not one of a Gaussian's map: n draws of each of the
	// first distributions, [chains·n, d], and the log ratios of the densities there, up to a constant.
	Draw   func(chains, n int) (x torch.Tensor, ratios []float64, err error)
	Advice string
}

// Closeness is what there is to say about a fit by the ratios w = p/q of the densities at its draws (Yao, Vehtari,
// Simpson and Gelman 2018, Yes, but did it work? Evaluating variational inference, ICML). Where the Pareto k of their
// tail lets importance sampling be trusted, it tells how far means and standard deviations are off. Where it does not
// and less than half of the draws are effective, or where less than a tenth are, the fit is far from the posterior. By
// the Cauchy-Schwarz inequality a mean is off by at most √(1/e − 1) standard deviations, with e the effective part.
//
// Closeness is nil if the check would be too expensive.
func Closeness(f Fit) []draws.Note {
	chains := float64(min(f.Mean.Chains(), mostChains))
	if f.Draw == nil && f.Target.LogPosterior == nil || !(f.Temperature > 0) || f.Mean.Layout.Dim() > mostDim ||
		f.Target.N()*points*chains > mostTerms {
		return nil
	}
	r, err := check(f)
	if err != nil {
		return nil // the model fails at a draw, which what uses the draws will say
	}
	note := func(serious bool, format string, a ...any) []draws.Note {
		return []draws.Note{{Kind: FarFromPosterior, Serious: serious, Text: fmt.Sprintf(format, a...),
			Advice: f.Name + ": " + f.Advice}}
	}
	switch at := f.Mean.Layout.At; {
	case Far(r.k, r.limit, r.ess):
		return note(true, "The fit is far from the posterior: by the ratios of their densities %.2g %% of its draws are "+
			"effective, and the tail of the ratios has a Pareto k of %.2f.%s", 100*r.ess, r.k, r.normal)
	case r.k > r.limit:
		return nil
	case math.Abs(r.shift) > max(meanLimit, 4*r.se):
		return note(math.Abs(r.shift) > meanWrong, "By importance weights the mean of the posterior is %.2g standard "+
			"deviations of the fit from the fit's, for %s on unconstrained space.", math.Abs(r.shift), at(r.shifted))
	case math.Abs(math.Log(r.scale)) > max(math.Log(sdLimit), 4*r.se):
		return note(math.Abs(math.Log(r.scale)) > math.Log(sdWrong), "By importance weights the standard deviation of "+
			"the posterior is %.2g times the fit's, for %s on unconstrained space.", r.scale, at(r.scaled))
	}
	return nil
}

// Uneven says that importance sampling cannot mend a fit: the ratios at its draws have a tail with a Pareto k above the
// limit, and less than half of the draws are effective. Of ratios that are nearly equal k is noise, whatever its size.
func Uneven(k, limit, effective float64) bool { return k > limit && effective < 0.5 }

// Far says that a fit is far from the posterior: the ratios at its draws are uneven, or less than a tenth of the draws
// are effective.
func Far(k, limit, effective float64) bool { return effective < 0.1 || Uneven(k, limit, effective) }

// result is what the ratios say.
type result struct {
	k, limit float64
	ess      float64 // effective part of the draws
	se       float64 // standard error of a mean, in standard deviations
	shift    float64 // of the mean that is farthest off, in standard deviations
	shifted  int
	scale    float64 // factor on the standard deviation that is farthest off
	scaled   int
	normal   string // how far off a normal posterior of the gradients at the draws is
}

func check(f Fit) (r result, err error) {
	err = torch.Do(func(*torch.Scope) error {
		var x, grads torch.Tensor
		var ratios []float64
		if f.Draw != nil {
			x, ratios, err = f.Draw(min(f.Mean.Chains(), mostChains), points)
		} else {
			x, grads, ratios, err = f.gaussian(min(f.Mean.Chains(), mostChains), points)
		}
		if err != nil {
			return err
		}
		for i, v := range ratios {
			if math.IsNaN(v) {
				ratios[i] = math.Inf(-1)
			}
		}
		w := torch.Must(loo.PSIS(ratios, 1))
		values := torch.Must(torch.ToSlice[float64](x))
		r = compare(w, values, f.Mean.Layout.Dim())
		if grads != (torch.Tensor{}) && Far(r.k, r.limit, r.ess) {
			r.normal = farther(values, torch.Must(torch.ToSlice[float64](grads)), f.Mean.Layout)
		}
		return nil
	})
	return r, err
}

// gaussian draws by Map, and has the gradients of the target's log density at the draws, inside torch.Do.
func (f Fit) gaussian(chains, count int) (x, grads torch.Tensor, ratios []float64, err error) {
	gradient, err := infer.NewGradient(f.Target)
	if err != nil {
		return torch.Tensor{}, torch.Tensor{}, nil, err
	}
	flat := f.Mean.Flat
	k, d, n := f.Mean.Chains(), f.Mean.Layout.Dim(), chains*count
	streams := torch.NewStreams(0, 1)
	streams.Chains[0] = 1 << 62 // of its own
	eps := torch.Must(streams.Normal([]int{k * count, f.Width}, flat.T().DType(),
		torch.Must(torch.DeviceOf(flat))))
	deviations, logq, err := f.Map(eps.Reshape(k, count, f.Width))
	if err != nil {
		return torch.Tensor{}, torch.Tensor{}, nil, err
	}
	x = deviations.Add(flat.Reshape(k, 1, d).T())
	x = torch.Of(x.Reshape(k*count, d).T().MustNarrow(0, 0, int64(n), false))
	logq = torch.Of(logq.Reshape(k*count).T().MustNarrow(0, 0, int64(n), false))
	ratios = torch.Must(torch.ToSlice[float64](logq))
	var all []torch.Tensor
	scale := f.Target.N() / f.Temperature // of the target at its temperature
	for from := 0; from < n; from += block {
		Try(torch.Do(func(scope *torch.Scope) error {
			at := infer.Params{Layout: f.Mean.Layout, Flat: torch.Of(x.T().MustNarrow(0, int64(from), block, false))}
			e, err := gradient.ValueAndGrad(at, f.Batch, 1/scale)
			if err != nil {
				return err
			}
			for i, v := range e.Values {
				ratios[from+i] = v*scale - ratios[from+i]
			}
			all = append(all, torch.Of(e.Grad.T().MustMulScalar(ts.FloatScalar(scale), false)))
			scope.Keep(all[len(all)-1])
			return nil
		}))
	}
	return x, torch.Cat(0, all), ratios, nil
}

// compare compares weighted means and standard deviations with plain ones.
func compare(w loo.Weights, x []float64, d int) result {
	n := len(x) / d
	r := result{k: w.K, limit: loo.KThreshold(n), ess: w.ESS / float64(n), se: 1 / math.Sqrt(w.ESS), scale: 1}
	for j := range d {
		var mean, weighted, square, squares float64
		for i := range n {
			mean += x[i*d+j] / float64(n)
			weighted += math.Exp(w.LogWeights[i]) * x[i*d+j]
		}
		for i := range n {
			square += (x[i*d+j] - mean) * (x[i*d+j] - mean) / float64(n)
			squares += math.Exp(w.LogWeights[i]) * (x[i*d+j] - weighted) * (x[i*d+j] - weighted)
		}
		if math.Sqrt(square) <= 1e-12*math.Abs(mean) {
			continue // a point, which has no spread but rounding
		}
		if shift := (weighted - mean) / math.Sqrt(square); math.Abs(shift) > math.Abs(r.shift) {
			r.shift, r.shifted = shift, j
		}
		if scale := math.Sqrt(squares / square); math.Abs(math.Log(scale)) > math.Abs(math.Log(r.scale)) {
			r.scale, r.scaled = scale, j
		}
	}
	return r
}

// Standard is the log density of Fε for a square F, up to a constant: −½|ε|² − log|det F|, of shape [K, n], for ε,
// [K, n, d], and one log|det F| for each of K distributions.
func Standard(eps torch.Tensor, logDet []float64) torch.Tensor {
	square := eps.Square().T()
	square = square.MustSumDimIntlist([]int64{2}, false, square.DType(), false)
	shift := torch.Must(torch.FromSliceOn(torch.Must(torch.DeviceOf(eps)), eps.T().DType(), logDet, len(logDet), 1))
	return torch.Must(torch.Combine(torch.Term{Coeff: -0.5, Tensor: torch.Of(square)},
		torch.Term{Coeff: -1, Tensor: torch.Of(shift.T().MustExpandAs(square, false))}))
}
