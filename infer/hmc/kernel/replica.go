package kernel

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// ExchangeOptions configure [Exchange].
type ExchangeOptions struct {
	Options // Chains and Temperature are not used, and Adapt.Pooled is not allowed
	// Ladder are the temperatures, rising, the one of interest first; see [GeometricLadder].
	Ladder []float64
	Every  int // transitions between swaps; default 10
}

// ExchangeResult is a [Result] whose chain i is at temperature Ladder[i], with the statistics of the swaps.
type ExchangeResult struct {
	*Result
	Swaps SwapStats
}

// SwapStats counts swaps between temperatures. Pair i are the temperatures i and i+1.
type SwapStats struct {
	Stream     Stream  // the random numbers of the swaps
	Rounds     int     // rounds of swaps; even pairs in even rounds, odd pairs in odd ones
	Tried      []int64 // [pairs]
	Accepted   []int64 // [pairs]
	Replica    []int   // [temperatures] the replica that is now at each temperature; replica i began at temperature i
	Heading    []int   // [replicas] 0 until it has been at the lowest temperature, then 1; -1 from the highest on until it is back
	RoundTrips []int64 // [replicas] how often it came from the lowest to the highest and back
	// Sampling rounds only, after the warm-up: the same counts.
	SamplingTried, SamplingAccepted []int64
}

// Rate is the fraction of accepted swaps of a pair over the sampling phase.
func (s *SwapStats) Rate(pair int) float64 {
	return float64(s.SamplingAccepted[pair]) / float64(s.SamplingTried[pair])
}

func (s SwapStats) clone() SwapStats {
	for _, v := range []*[]int64{&s.Tried, &s.Accepted, &s.RoundTrips, &s.SamplingTried, &s.SamplingAccepted} {
		*v = slices.Clone(*v)
	}
	s.Replica, s.Heading = slices.Clone(s.Replica), slices.Clone(s.Heading)
	return s
}

// GeometricLadder are n temperatures from low to high with a constant ratio, Tᵢ = low (high/low)^(i/(n-1)), which makes the
// swap rates of a Gaussian equal: they depend on the ratio and the dimension only.
func GeometricLadder(low, high float64, n int) ([]float64, error) {
	const typ = "kernel.GeometricLadder"
	switch {
	case n < 2:
		return nil, &FieldError{typ, "n", n, "it must be at least 2"}
	case !(low > 0) || !finite(low):
		return nil, &FieldError{typ, "low", low, "it must be a positive number"}
	case !(high > low) || !finite(high):
		return nil, &FieldError{typ, "high", high, "it must be a number above the low one"}
	}
	t := make([]float64, n)
	for i := range t {
		t[i] = low * math.Pow(high/low, float64(i)/float64(n-1))
	}
	t[n-1] = high
	return t, nil
}

// Exchange is replica exchange (parallel tempering; Swendsen and Wang 1986; Geyer 1991; the ladder and HMC between swaps as
// in Baldock and Marzari 2019). One chain, a replica, runs at each temperature, all of them in one batch; after every
// Every transitions neighbours on the ladder swap their points with probability
//
//	min(1, exp((1/Tᵢ - 1/Tⱼ)(Uᵢ - Uⱼ))),  U = -logp
//
// over the pairs (0,1), (2,3), ... in one round and (1,2), (3,4), ... in the next. Each temperature keeps its own step size,
// metric and random numbers, and adapts them in the warm-up. Draws are those of the temperatures, not of the replicas.
func Exchange(ctx context.Context, density Density, options ExchangeOptions) (*ExchangeResult, error) {
	r, err := newExchange(density, options)
	if err != nil {
		return nil, err
	}
	return r.exchange(ctx)
}

// ResumeExchange goes on from a snapshot, as [Resume] does.
func ResumeExchange(ctx context.Context, density Density, options ExchangeOptions, snapshot *Snapshot) (*ExchangeResult, error) {
	r, err := newExchange(density, options)
	if err != nil {
		return nil, err
	}
	if err := r.restore(snapshot); err != nil {
		return nil, err
	}
	return r.exchange(ctx)
}

func newExchange(density Density, o ExchangeOptions) (*runner, error) {
	const typ = "kernel.ExchangeOptions"
	if len(o.Ladder) < 2 {
		return nil, &FieldError{typ, "Ladder", o.Ladder, "it must have at least two temperatures"}
	}
	for i, t := range o.Ladder {
		if !(t > 0) || !finite(t) || i > 0 && t <= o.Ladder[i-1] {
			return nil, &FieldError{typ, fmt.Sprintf("Ladder[%d]", i), t, "temperatures must be positive and rise"}
		}
	}
	if o.Adapt.Pooled {
		return nil, &FieldError{typ, "Adapt.Pooled", true, "the chains have different temperatures, so it must be false"}
	}
	if err := atLeast(typ, "Every", &o.Every, 10, 1); err != nil {
		return nil, err
	}
	n := len(o.Ladder)
	o.Chains, o.Temperature = n, 1
	r, err := newRunner(typ, density, o.Options, slices.Clone(o.Ladder))
	if err != nil {
		return nil, err
	}
	s := SwapStats{
		Stream: NewStream(r.Seed, math.MaxUint64), // no chain has this number
		Tried:  make([]int64, n-1), Accepted: make([]int64, n-1),
		SamplingTried: make([]int64, n-1), SamplingAccepted: make([]int64, n-1),
		Replica: make([]int, n), Heading: make([]int, n), RoundTrips: make([]int64, n),
	}
	for i := range n {
		s.Replica[i] = i
	}
	s.Heading[0] = 1
	r.swaps = &swapper{every: o.Every, warmup: r.Warmup, stats: s}
	return r, nil
}

func (r *runner) exchange(ctx context.Context) (*ExchangeResult, error) {
	result, err := r.run(ctx)
	return &ExchangeResult{Result: result, Swaps: r.swaps.stats.clone()}, err
}

type swapper struct {
	every, warmup int
	stats         SwapStats
}

func (s *swapper) restore(saved SwapStats) error {
	n := len(s.stats.Replica)
	seen := slices.Clone(saved.Replica)
	slices.Sort(seen)
	for i, e := range seen {
		if e != i {
			return fmt.Errorf("%w: its replicas are %v", ErrSnapshot, saved.Replica)
		}
	}
	for _, v := range [][]int64{saved.Tried, saved.Accepted, saved.SamplingTried, saved.SamplingAccepted} {
		if len(v) != n-1 {
			return fmt.Errorf("%w: it counts %d pairs of temperatures, not %d", ErrSnapshot, len(v), n-1)
		}
	}
	if len(seen) != n || len(saved.Heading) != n || len(saved.RoundTrips) != n {
		return fmt.Errorf("%w: it has %d replicas, not %d", ErrSnapshot, len(seen), n)
	}
	s.stats = saved.clone()
	return nil
}

// swap tries one round. All chains stand still.
func (s *swapper) swap(chains []*chain) {
	st := &s.stats
	for i := st.Rounds % 2; i+1 < len(chains); i += 2 {
		a, b := chains[i], chains[i+1]
		// U = -logp: (1/Ta - 1/Tb)(Ua - Ub) = (1/Ta - 1/Tb)(logp_b - logp_a)
		delta := (1/a.Temperature - 1/b.Temperature) * (b.Point.LogP - a.Point.LogP)
		accepted := math.Log(st.Stream.Float64()) < delta
		st.Tried[i]++
		if a.Done > s.warmup {
			st.SamplingTried[i]++
		}
		if !accepted {
			continue
		}
		st.Accepted[i]++
		if a.Done > s.warmup {
			st.SamplingAccepted[i]++
		}
		// A kept momentum stays: its law is the temperature's own.
		p, q := &a.Point, &b.Point
		p.X, q.X = q.X, p.X
		p.Grad, q.Grad = q.Grad, p.Grad
		p.LogP, q.LogP = q.LogP, p.LogP
		st.Replica[i], st.Replica[i+1] = st.Replica[i+1], st.Replica[i]
	}
	st.Rounds++
	low, high := st.Replica[0], st.Replica[len(chains)-1]
	if st.Heading[low] == -1 {
		st.RoundTrips[low]++
	}
	st.Heading[low] = 1
	if st.Heading[high] == 1 {
		st.Heading[high] = -1
	}
}
