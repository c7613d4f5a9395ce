package evidence

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
)

// FromExchange is thermodynamic integration of the replicas of a run of hmc.Exchange, along its Path from β = 0 to 1.
// The slopes are those that its swaps have seen in the sampling phase. Each chain is a ladder of its own, whose rungs
// may have adapted: [Integrate] makes an estimate of each, and LogZ is their mean.
func FromExchange(run *infer.Result) (*Result, error) {
	const what = "evidence.FromExchange"
	if run == nil {
		return nil, fmt.Errorf("%s: the run is nil: %w", what, infer.ErrConfig)
	}
	detail, ok := run.Detail.(*kernel.Result)
	if !ok || len(detail.Swaps) == 0 {
		return nil, fmt.Errorf("%s: the run is not one of hmc.Exchange with all chains in one group: %w", what,
			infer.ErrConfig)
	}
	if detail.LogZ0 == nil {
		return nil, fmt.Errorf("%s: the run needs a Path whose log density is linear in β and a Ladder from β = 0: all but "+
			"the full and the observation path have one: %w", what, infer.ErrConfig)
	}
	r := &Result{Estimator: "thermodynamic integration of replica exchange"}
	for _, n := range detail.Gradients {
		r.Gradients += n
	}
	var each []float64
	weakest := math.Inf(1)
	chains := float64(len(detail.Swaps))
	for c := range detail.Swaps {
		z, err := integrateSwaps(&detail.Swaps[c], *detail.LogZ0)
		if err != nil {
			return nil, fmt.Errorf("%s: chain %d: %w", what, c, err)
		}
		each = append(each, z.LogZ)
		r.SE = math.Hypot(r.SE, z.SE/chains)
		weakest = math.Min(weakest, z.SE)
		for _, w := range z.Warnings {
			r.warn("chain %d: %s", c, w)
		}
		if c == 0 {
			r.Trace = z.Trace
		}
	}
	var v float64
	if r.LogZ, v = moments(each); math.Sqrt(v/chains) > 3*r.SE {
		r.warn("the chains' log Z differ by a standard deviation of %.2g, more than their errors of about %.2g: replicas do "+
			"not travel, or have not long enough: use more rungs, or draw longer", math.Sqrt(v), weakest)
	}
	return r, nil
}

// integrateSwaps is the estimate of one ladder, which falls from the rung of interest.
func integrateSwaps(s *kernel.Swaps, logZ0 float64) (*Result, error) {
	n := len(s.Ladder)
	if s.Unbounded > 0 {
		return nil, fmt.Errorf("%d slopes were not finite, as where the data exclude points of the start: use TI: %w",
			s.Unbounded, infer.ErrNonFinite)
	}
	ladder, slopes := slices.Clone(s.Ladder), make([][]float64, n)
	slices.Reverse(ladder)
	for i, v := range s.SlopeDraws {
		k := n - 1 - i%n
		slopes[k] = append(slopes[k], v)
	}
	return Integrate(ladder, [][][]float64{slopes}, logZ0)
}
