package kernel

import (
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
)

// Swaps counts the swaps between the rungs of a ladder. Pair i are the rungs i and i+1.
type Swaps struct {
	// Ladder are the rungs in use, temperatures or the β of a path, the one of interest first. An adapting ladder has its
	// own.
	Ladder   []float64
	Stream   stream // the random numbers of the swaps
	Rounds   int    // rounds of swaps; even pairs in even rounds, odd pairs in odd ones
	Tried    []int  // [pairs]
	Accepted []int  // [pairs]
	Replica  []int  // [rungs] the replica that is now at each rung; replica i began at rung i
	// [replicas] 0 before it has been at the first rung, then 1; -1 from the last until it is back
	Heading    []int
	RoundTrips []int // [replicas] how often it came from the first rung to the last and back
	// Of the round of an adapting ladder that is under way: how many swaps of each pair were looked at, tried or not, and
	// the sum of the probabilities that they are refused.
	Looked  []int
	Refused []float64

	// Sampling rounds only, after the warm-up.
	SamplingRounds, SamplingTrips   int
	SamplingTried, SamplingAccepted []int
	SamplingRefused                 []float64 // [pairs] sum of the probabilities that tried swaps are refused
	// Of each rung: how often the slope was seen, its mean and its sum of squared differences from it. The slope is ∂ log
	// q/∂β of the law q at the rung, β = 1/T on a ladder of temperatures: the log likelihood on a path of its powers, log
	// p(θ)p(y|θ) of full tempering. It is what thermodynamic integration integrates. It is taken from the swaps, as the
	// difference between neighbours, which is exact where log q is linear in β.
	Slopes                  []int
	SlopeMean, SlopeSquares []float64
	// SlopeDraws are, on a path from β = 0, slopes of all rungs together, a row after the other: one whenever each rung
	// has been seen since the last, after two rounds of even and odd pairs. Slope are those of the row under way, and
	// Seen says which of them there are. Unbounded is how many slopes were not finite.
	SlopeDraws []float64
	Slope      []float64 // [rungs]
	Seen       []bool    // [rungs]
	Unbounded  int
}

// Rate is the fraction of accepted swaps of a pair over the sampling phase.
func (s *Swaps) Rate(pair int) float64 {
	return float64(s.SamplingAccepted[pair]) / float64(s.SamplingTried[pair])
}

// Rejection is the mean probability that a swap of a pair is refused, over the sampling phase. It has less noise than
// 1 - Rate. It is NaN for a pair that is not there.
func (s *Swaps) Rejection(pair int) float64 {
	if s == nil || pair < 0 || pair >= min(len(s.SamplingRefused), len(s.SamplingTried)) {
		return math.NaN()
	}
	return s.SamplingRefused[pair] / float64(s.SamplingTried[pair])
}

// Barrier is Λ at each rung, the sum of the rejections of the pairs before it (Syed et al. 2022): what a replica has to
// get over on its way, whatever the number of rungs. The last is the global barrier.
func (s *Swaps) Barrier() []float64 {
	if s == nil {
		return nil
	}
	out := make([]float64, len(s.Ladder))
	for i := range min(len(s.Tried), len(out)-1) {
		out[i+1] = out[i] + s.Rejection(i)
	}
	return out
}

// Trips is the number of round trips so far, of all replicas.
func (s *Swaps) Trips() (n int) {
	if s == nil {
		return 0
	}
	for _, e := range s.RoundTrips {
		n += e
	}
	return n
}

// RoundTripRate is the number of round trips for each round of swaps, of all replicas together, over the sampling
// phase.
func (s *Swaps) RoundTripRate() float64 {
	if s == nil {
		return math.NaN()
	}
	return float64(s.SamplingTrips) / float64(s.SamplingRounds)
}

// BestRate is the round trip rate that even and odd pairs reach where the replicas forget their energies between swaps,
//
//	1/(2 + 2 Σ r_i/(1 - r_i))
//
// with the rejections r_i (Syed et al. 2022, theorem 1). A rate far below it says that replicas do not move enough
// between swaps.
func (s *Swaps) BestRate() float64 {
	if s == nil {
		return math.NaN()
	}
	sum := 0.0
	for i := range s.Tried {
		r := s.Rejection(i)
		sum += r / (1 - r)
	}
	return 1 / (2 + 2*sum)
}

// SlopeVariance is the variance of the slope at a rung over the sampling phase; NaN for a rung that is not there.
func (s *Swaps) SlopeVariance(rung int) float64 {
	if s == nil || rung < 0 || rung >= min(len(s.SlopeSquares), len(s.Slopes)) {
		return math.NaN()
	}
	return s.SlopeSquares[rung] / float64(s.Slopes[rung]-1)
}

// newSwaps is a ladder before its first swap.
func newSwaps(seed, ladder uint64, rungs []float64) *Swaps {
	n := len(rungs)
	s := &Swaps{
		Ladder: slices.Clone(rungs),
		Stream: newStream(seed, math.MaxUint64-ladder), // no chain has this number
		Tried:  make([]int, n-1), Accepted: make([]int, n-1), Looked: make([]int, n-1),
		Refused:       make([]float64, n-1),
		SamplingTried: make([]int, n-1), SamplingAccepted: make([]int, n-1), SamplingRefused: make([]float64, n-1),
		Replica: make([]int, n), Heading: make([]int, n), RoundTrips: make([]int, n),
		Slopes: make([]int, n), SlopeMean: make([]float64, n), SlopeSquares: make([]float64, n),
		Slope: make([]float64, n), Seen: make([]bool, n),
	}
	for i := range n {
		s.Replica[i] = i
	}
	s.Heading[0] = 1
	return s
}

// counts are the slices of one number for each pair, and of one for each rung.
func (s *Swaps) counts() (pairs, rungs []*[]int) {
	return []*[]int{&s.Tried, &s.Accepted, &s.Looked, &s.SamplingTried, &s.SamplingAccepted},
		[]*[]int{&s.RoundTrips, &s.Slopes}
}

// sums are the same of floating-point numbers.
func (s *Swaps) sums() (pairs, rungs []*[]float64) {
	return []*[]float64{&s.Refused, &s.SamplingRefused}, []*[]float64{&s.Ladder, &s.SlopeMean, &s.SlopeSquares, &s.Slope}
}

func (s Swaps) clone() Swaps {
	a, b := s.counts()
	for _, v := range append(a, b...) {
		*v = slices.Clone(*v)
	}
	c, d := s.sums()
	for _, v := range append(c, d...) {
		*v = slices.Clone(*v)
	}
	s.Replica, s.Heading = slices.Clone(s.Replica), slices.Clone(s.Heading)
	s.Seen, s.SlopeDraws = slices.Clone(s.Seen), slices.Clone(s.SlopeDraws)
	return s
}

func (s *Swaps) restore(saved Swaps) error {
	n := len(s.Replica)
	seen := slices.Clone(saved.Replica)
	slices.Sort(seen)
	for i, e := range seen {
		if e != i {
			return misfit("its replicas are %v", saved.Replica)
		}
	}
	a, b := saved.counts()
	c, d := saved.sums()
	whole := len(seen) == n && len(saved.Heading) == n && len(saved.Seen) == n && len(saved.SlopeDraws)%n == 0
	for _, v := range a {
		whole = whole && len(*v) == n-1
	}
	for _, v := range b {
		whole = whole && len(*v) == n
	}
	for _, v := range c {
		whole = whole && len(*v) == n-1
	}
	for _, v := range d {
		whole = whole && len(*v) == n
	}
	if !whole {
		return misfit("its swaps are not those of %d rungs", n)
	}
	*s = saved.clone()
	return nil
}

// see takes note of the slope at a rung; all says that those of all rungs are kept.
func (s *Swaps) see(rung int, slope float64, all bool) {
	if !finite(slope) {
		s.Unbounded++
		return
	}
	s.Slopes[rung]++
	delta := slope - s.SlopeMean[rung]
	s.SlopeMean[rung] += delta / float64(s.Slopes[rung])
	s.SlopeSquares[rung] += delta * (slope - s.SlopeMean[rung])
	s.Slope[rung], s.Seen[rung] = slope, true
	if all && !slices.Contains(s.Seen, false) {
		s.SlopeDraws = append(s.SlopeDraws, s.Slope...)
		clear(s.Seen)
	}
}

// coordinate is where a chain is on its ladder: its temperature, or its β.
func (r *runner) coordinate(c *chain) *float64 {
	if r.Path != "" {
		return &c.chainState.Beta
	}
	return &c.chainState.Temperature
}

// hot are the draws that were kept of the rungs but the first.
func (r *runner) hot() ([]*draws.Draws, error) {
	if !r.KeepHot || r.Ladder == nil || r.steps {
		return nil, nil
	}
	n := len(r.Ladder)
	out := make([]*draws.Draws, n-1)
	for i := range out {
		site := draws.Site{Name: "x", Shape: []int{r.d}, Size: r.d}
		d, err := draws.New([]draws.Site{site}, nil, r.Chains)
		if err != nil {
			return nil, err
		}
		for l := range r.Chains {
			kept := r.chains[l*n+i+1].Kept
			for at := 0; at < len(kept); at += r.d {
				if err := d.AppendChain(l, kept[at:at+r.d], nil); err != nil {
					return nil, err
				}
			}
		}
		out[i] = d
	}
	return out, nil
}
