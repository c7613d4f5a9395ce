package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/bench/internal/posteriors"
	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"gonum.org/v1/gonum/stat/distuv"
)

// The marks of a run. R-hat: Vehtari et al. 2021, Bayesian Analysis 16, 667–718, whose bound of 400 effective draws is
// how many are enough.
const (
	maxRHat  = 1.01
	enough   = 400
	maxZ     = 4
	apart    = 1.1   // R-hat that a target without agreement must show
	byChance = 0.001 // probability with which one of all the figures of a right run may miss its mark
)

// quantities is the draws of judged numbers, by their names in Stan, chain by chain.
type quantities map[string][][]float64

// watched is the draws of the sites, or elements of sites, in a list, and of all for an empty one. Elements that are
// the same number in all draws are none, such as those above the diagonal of a Cholesky factor.
func watched(d *draws.Draws, sites []string) quantities {
	out := quantities{}
	for _, s := range d.Sites() {
		for i := range s.Size {
			name := posteriors.StanName(s, i)
			if !wanted(name, sites) {
				continue
			}
			x := make([][]float64, d.Chains())
			for c := range x {
				x[c] = d.Element(c, s.Offset+i)
			}
			out.add(name, x)
		}
	}
	return out
}

// wanted says whether a number, or the site whose element it is, is in a list, or the list is empty.
func wanted(name string, sites []string) bool {
	site, _, _ := strings.Cut(name, "[")
	return len(sites) == 0 || slices.Contains(sites, name) || slices.Contains(sites, site)
}

// add adds a quantity that is not one constant.
func (q quantities) add(name string, x [][]float64) {
	if !constant(slices.Concat(x...)) {
		q[name] = x
	}
}

func constant(x []float64) bool {
	return !slices.ContainsFunc(x, func(v float64) bool { return v != x[0] })
}

// outcome is what one run was.
type outcome struct {
	warmup float64 // gradients of a chain's warm-up
	all    float64 // gradients of all chains
	ess    float64 // the least bulk ESS of a judged number
	why    string  // it failed; empty where it did not
}

// judge says why the draws of a run are wrong, if they are, and their least bulk ESS. In the order of reasons: a chain
// does not move, a largest R-hat, a largest |z|.
func (q quantities) judge(known truth, bimodal bool) (ess float64, why string) {
	if len(q) == 0 {
		return 0, "no number moves"
	}
	chains, kept := 0, 0
	for _, x := range q {
		chains, kept = len(x), len(x[0])
		break
	}
	for c := range chains {
		if !q.moves(c) {
			return 0, fmt.Sprintf("chain %d does not move", c)
		}
	}
	if kept < 8 {
		return 0, "too few draws"
	}
	ess = math.Inf(1)
	var rhat, z figure
	limit := zLimit(2 * len(q))
	for name, x := range q {
		ess = math.Min(ess, effective(x))
		within := 0.0
		for _, chain := range x {
			within += effective([][]float64{chain})
		}
		r := diag.RHat(x)
		rhat.take(r, (r-1)/(rhatLimit(within, chains, len(q))-1), name)
		if m, ok := known[name]; ok {
			ours := momentsOf(x)
			of := func(a, b, errorA, errorB float64, name string) {
				v := math.Abs(a-b) / math.Hypot(errorA, errorB)
				z.take(v, v/limit, name)
			}
			of(ours.mean, m.mean, ours.meanError, m.meanError, "mean of "+name)
			of(ours.sd, m.sd, ours.sdError, m.sdError, "sd of "+name)
		}
	}
	switch {
	case bimodal && !(rhat.value > apart):
		return ess, fmt.Sprintf("R-hat %.3g of separate modes", rhat.value)
	case bimodal:
		return ess, ""
	case rhat.excess > 1:
		return ess, fmt.Sprintf("R-hat %.3g of %s", rhat.value, rhat.name)
	case z.excess > 1:
		return ess, fmt.Sprintf("|z| %.1f of %s", z.value, z.name)
	}
	return ess, ""
}

// effective is the bulk ESS, 0 where it is not a number.
func effective(x [][]float64) float64 {
	if ess := diag.ESSBulk(x); ess == ess {
		return ess
	}
	return 0
}

// moves says that a chain has more than one value of some number.
func (q quantities) moves(chain int) bool {
	for _, x := range q {
		if !constant(x[chain]) {
			return true
		}
	}
	return false
}

// figure is the worst of figures that each have a limit, as a share of it.
type figure struct {
	value, excess float64
	name          string
}

func (f *figure) take(value, excess float64, name string) {
	if excess != excess {
		excess = math.Inf(1)
	}
	if f.name == "" || excess > f.excess {
		*f = figure{value, excess, name}
	}
}

// rhatLimit is the largest R-hat of a right run. With M = 2·chains half chains, whose effective draws add up to ess,
// the squared R-hat of chains that agree is about 1 + M/ESS · χ²/(M − 1), χ² with M − 1 degrees of freedom. The limit
// is what that exceeds in one of p numbers with probability byChance, at enough effective draws at least, and never
// below 1.01. The ESS is that within the chains: that of all draws is small where chains do not agree.
func rhatLimit(ess float64, chains, p int) float64 {
	m := float64(2 * chains)
	chi := distuv.ChiSquared{K: m - 1}.Quantile(1 - byChance/float64(p))
	return math.Max(maxRHat, math.Sqrt(1+m/math.Max(ess, enough)*chi/(m-1)))
}

// zLimit is the largest |z| of n figures that are right but with probability byChance, and never below 4.
func zLimit(n int) float64 {
	return math.Max(maxZ, distuv.UnitNormal.Quantile(1-byChance/float64(2*n)))
}
