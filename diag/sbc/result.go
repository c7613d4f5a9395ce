package sbc

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
)

// Result has the ranks of a run.
type Result struct {
	// Draws is L; ranks are from 0 to L.
	Draws int
	// Ranks has, for each quantity, a rank for each replication.
	Ranks map[string][]int
}

func (r *Result) add(ranks map[string]int) {
	for name, rank := range ranks {
		r.Ranks[name] = append(r.Ranks[name], rank)
	}
}

// first is the result with n replications; the file may have more.
func (r *Result) first(n int) *Result {
	for name, ranks := range r.Ranks {
		r.Ranks[name] = ranks[:n]
	}
	return r
}

// Replications is how many there are.
func (r *Result) Replications() int {
	for _, ranks := range r.Ranks {
		return len(ranks)
	}
	return 0
}

// Curve is the empirical distribution of the ranks of a quantity, less the uniform one, with bands.
type Curve struct {
	// Z are the probabilities at which it is taken, in (0, 1), at most 200; Difference is ECDF(z) - z.
	Z, Difference []float64
	// Low and High are the ends of the band: with the probability asked for, uniform ranks are nowhere outside.
	Low, High []float64
	// P is the probability that uniform ranks are as far out somewhere.
	P float64
}

// simulations is how many sets of uniform ranks say what is far out: P has a standard error of 0.0035 at 0.05.
const simulations = 4000

// Curve compares the ranks of a quantity with uniform ones. At z = (k+1)/(L+1) the number of ranks up to k is binomial;
// with F its distribution function, what is simulated with uniform ranks is
//
//	γ = min over z of 2 min(F(count), 1 - F(count - 1)),
//
// and the band holds the counts whose value is at least the quantile 1 - prob of γ (Säilynoja et al. 2022, section
// 2.2).
// The seed of the simulation is fixed. An unknown quantity, a rank outside 0 to L and a prob outside (0, 1) are errors.
func (r *Result) Curve(name string, prob float64) (Curve, error) {
	ranks, ok := r.Ranks[name]
	if !ok {
		return Curve{}, fmt.Errorf("sbc: there is no quantity %q: there are %q: %w", name, names(r.Ranks),
			draws.ErrUnknownName)
	}
	if !(prob > 0 && prob < 1) {
		return Curve{}, fmt.Errorf("sbc: the probability of a band is %v: it must be between 0 and 1: %w", prob,
			draws.ErrRange)
	}
	if len(ranks) == 0 || r.Draws < 1 || r.Draws > most || slices.Min(ranks) < 0 || slices.Max(ranks) > r.Draws {
		return Curve{}, fmt.Errorf("sbc: %q has %d ranks, which must be there and from 0 to %d, at most %d: %w", name,
			len(ranks), r.Draws, most, draws.ErrRange)
	}
	e := newEnvelope(len(ranks), r.Draws)
	c := Curve{Low: make([]float64, len(e.at)), High: make([]float64, len(e.at))}
	counts := e.counts(ranks)
	own, n := e.gamma(counts), float64(len(ranks))
	null := e.null()
	further := 0
	for _, g := range null {
		if g <= own {
			further++
		}
	}
	c.P = float64(further+1) / float64(len(null)+1)
	limit := null[int((1-prob)*float64(len(null)))]
	for i := range e.at {
		z := e.z(i)
		c.Z, c.Difference = append(c.Z, z), append(c.Difference, float64(counts[i])/n-z)
		low, high := 0, len(ranks)
		for low < high && e.value(i, low) < limit {
			low++
		}
		for high > low && e.value(i, high) < limit {
			high--
		}
		c.Low[i], c.High[i] = float64(low)/n-z, float64(high)/n-z
	}
	return c, nil
}

// envelope are the points where ranks are counted, and the distribution of the counts there.
type envelope struct {
	n, l int
	at   []int // ranks up to at[i] are counted
	cdf  [][]float64
}

func newEnvelope(n, l int) *envelope {
	points := min(l, 200)
	e := &envelope{n: n, l: l}
	for i := range points {
		e.at = append(e.at, (i+1)*l/points-1)
		e.cdf = append(e.cdf, binomial(n, e.z(i)))
	}
	return e
}

func (e *envelope) z(i int) float64 { return float64(e.at[i]+1) / float64(e.l+1) }

// binomial is the distribution function at 0, ..., n.
func binomial(n int, p float64) []float64 {
	cdf := make([]float64, n+1)
	all, _ := math.Lgamma(float64(n + 1))
	sum := 0.0
	for k := range cdf {
		a, _ := math.Lgamma(float64(k + 1))
		b, _ := math.Lgamma(float64(n - k + 1))
		sum += math.Exp(all - a - b + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
		cdf[k] = math.Min(sum, 1)
	}
	return cdf
}

// counts are the ranks up to each point.
func (e *envelope) counts(ranks []int) []int {
	of := make([]int, e.l+1)
	for _, r := range ranks {
		of[r]++
	}
	out := make([]int, len(e.at))
	sum, next := 0, 0
	for i, at := range e.at {
		for ; next <= at; next++ {
			sum += of[next]
		}
		out[i] = sum
	}
	return out
}

// value is 2 min(F(count), 1 - F(count - 1)) at a point.
func (e *envelope) value(i, count int) float64 {
	above := 1.0
	if count > 0 {
		above = 1 - e.cdf[i][count-1]
	}
	return 2 * math.Min(e.cdf[i][count], above)
}

func (e *envelope) gamma(counts []int) float64 {
	g := math.Inf(1)
	for i, c := range counts {
		g = math.Min(g, e.value(i, c))
	}
	return g
}

// null are values of gamma of uniform ranks, sorted.
func (e *envelope) null() []float64 {
	random := rand.New(rand.NewPCG(uint64(e.n), uint64(e.l)))
	out, ranks := make([]float64, simulations), make([]int, e.n)
	for s := range out {
		for i := range ranks {
			ranks[i] = random.IntN(e.l + 1)
		}
		out[s] = e.gamma(e.counts(ranks))
	}
	slices.Sort(out)
	return out
}

// codeRanks is the kind of the findings of Diagnose.
const codeRanks diag.Code = "sbc_ranks"

// Diagnose is a serious finding for each quantity whose ranks are not uniform: its P is below 0.01 divided by the
// number of quantities, so that a right method has one with probability 0.01. The message says how they differ: the
// truth too often above the draws, or below, or too often among the outer ranks (the draws are too narrow), or the
// inner ones. Figure is P.
func (r *Result) Diagnose() (*diag.Report, error) {
	report := &diag.Report{Checked: []diag.Code{codeRanks}, Draws: r.Draws}
	report.Subject = fmt.Sprintf("%d replications, ranks among %d draws", r.Replications(), r.Draws)
	limit := 0.01 / float64(max(1, len(r.Ranks)))
	for _, name := range names(r.Ranks) {
		c, err := r.Curve(name, 0.95)
		if err != nil {
			return nil, err
		}
		if c.P >= limit {
			continue
		}
		report.Findings = append(report.Findings, diag.Finding{
			Code: codeRanks, Severity: diag.Serious, Site: name, Chain: -1, Observation: -1, Figure: c.P, Threshold: limit,
			Message: fmt.Sprintf("%s: the ranks of the truth are not uniform (p = %.2g): %s", name, c.P, r.shape(name)),
			Advice: "The method does not draw from the posterior of the model that simulates: compare the two models term " +
				"by term, then look at the method's own diagnostics, at its warm-up and at how far draws are thinned.",
		})
	}
	return report, nil
}

// shape says in words how ranks differ from uniform ones: by their mean, in standard errors, or by their spread.
func (r *Result) shape(name string) string {
	sum, squares := 0.0, 0.0
	for _, rank := range r.Ranks[name] {
		u := (float64(rank) + 0.5) / float64(r.Draws+1)
		sum, squares = sum+u-0.5, squares+(u-0.5)*(u-0.5)
	}
	n := float64(len(r.Ranks[name]))
	shift := sum / n / math.Sqrt(1/(12*n))
	spread := (squares/n - 1./12) / math.Sqrt(1/(180*n))
	switch {
	case math.Max(math.Abs(shift), math.Abs(spread)) < 2:
		return "neither their mean nor their spread says how"
	case math.Abs(shift) > math.Abs(spread) && shift > 0:
		return "the draws are too low"
	case math.Abs(shift) > math.Abs(spread):
		return "the draws are too high"
	case spread > 0:
		return "the draws are too narrow, or depend on each other"
	}
	return "the draws are too wide"
}
