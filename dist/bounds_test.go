package dist_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Formulas change where a parameter passes a number, or another parameter. Just there libtorch's minimum, maximum and
// clamp have a derivative of 0, ½ or 1, and which one depends on libtorch's version. No density may show it.
var changes = []float64{0.5, math.Ln2, 1, 2, 10, 20, 64}

// atChanges are sets of parameters with one of the positive ones, or all, at a number.
func atChanges(domains string) (sets [][]float64) {
	for _, at := range changes {
		for only := -1; only < len(domains); only++ {
			p := make([]float64, len(domains))
			for i, d := range domains {
				switch {
				case d == 'n':
					p[i] = 64
				case d == 'u':
					p[i] = 0.5
				case d == 'c': // cutpoints; between far ones the reference loses all digits
					p[i] = p[i-1] + math.Min(at, 2)
				case d == 'h':
					p[i] = p[i-1] + 2*at // the upper end
				case d == 'p' && (only < 0 || only == i):
					p[i] = at
				case d == 'p':
					p[i] = 3.7
				}
			}
			if !slices.ContainsFunc(sets, func(q []float64) bool { return slices.Equal(p, q) }) {
				sets = append(sets, p)
			}
		}
	}
	return sets
}

// asLeaves are the parameters as they reach a family: each that is chosen a tensor with a gradient, the others numbers.
func asLeaves(p []float64, chosen func(i int) bool) (params []any, leaves []torch.Tensor, which []int) {
	params = anys(p)
	for i := range p {
		if chosen(i) {
			leaf := torch.Must(torch.Leaf(torch.Of(scalarVec(p[i]))))
			params[i], leaves, which = leaf, append(leaves, leaf), append(which, i)
		}
	}
	return params, leaves, which
}

// choices are all parameters, and each alone.
func choices(n int) (all []func(i int) bool) {
	all = append(all, func(int) bool { return true })
	for k := range n {
		all = append(all, func(i int) bool { return i == k })
	}
	return all
}

// The derivatives of densities against differences of the same densities.
func TestScalarGradientsWhereFormulasChange(t *testing.T) {
	eachScalar(t, func(t *testing.T, f scalarCase, rng *rand.Rand) {
		if f.law == nil {
			t.Skip("has no density")
		}
		for _, p := range atChanges(f.domains) {
			for _, choice := range choices(len(p)) {
				params, leaves, which := asLeaves(p, choice)
				d := f.make(params...)
				x := scalarRead(f.make(anys(p)...).Sample(torch.NewSource(rng.Uint64(), 0)).T())[0]
				if f.name == "VonMises" || f.name == "Laplace" { // of a draw near the kink of Laplace, nothing is known
					x = p[0] + 1
				}
				got := scalarGrad(d.LogProb(torch.Of(scalarVec(x))).T(), leaves)
				for k, i := range which {
					h := 1e-4 * math.Max(math.Abs(p[i]), 0.1)
					want := derivative(func(by float64) []float64 {
						q := slices.Clone(p)
						q[i] += by * h
						params, _, _ := asLeaves(q, choice)
						return scalarRead(f.make(params...).LogProb(torch.Of(scalarVec(x))).T())
					}, []float64{h})[0]
					require.InDelta(t, want, got[k][0], 1e-7*math.Max(1, math.Abs(want)), "parameter %d of %v at %v, of %d leaves",
						i, p, x, len(leaves))
				}
			}
		}
	})
}

// The derivatives of masses against those of their formulas in 300 bits.
func TestCountGradientsWhereFormulasChange(t *testing.T) {
	eachCount(t, func(t *testing.T, c countCase, _ *rand.Rand) {
		for _, p := range atChanges(c.domains) {
			for _, x := range []float64{0, 1, 64} {
				if top := c.top(p); top >= 0 && x > float64(top) {
					continue
				}
				want := make([]float64, len(p))
				for i := range p {
					if c.domains[i] != 'n' {
						want[i] = c.wantGrad(p, x, i)
					}
				}
				for _, choice := range choices(len(p)) {
					params, leaves, which := asLeaves(p, choice)
					if strings.HasPrefix(c.name, "Categorical") || c.name == "OrderedLogistic" {
						if len(leaves) < len(p) { // a vector is one tensor
							continue
						}
					}
					got := countGrad(c.make(params...).LogProb(torch.Of(scalarVec(x))).T(), leaves)
					for k, i := range which {
						if c.domains[i] == 'n' {
							continue
						}
						countClose(t, want[i], got[k][0], 1e-8, 1e-11, "parameter %d of %v at %v, of %d leaves", i, p, x, len(leaves))
					}
				}
			}
		}
	})
}

// A distribution function has at the ends of its support the derivative from inside.
func TestUniformCDFAtItsEnds(t *testing.T) {
	countScope(t, func() {
		for _, x := range []float64{-1, 3} {
			leaf := torch.Must(torch.Leaf(torch.Of(scalarVec(x))))
			p := dist.Uniform(-1, 3).(dist.CDFer).CDF(leaf)
			require.Equal(t, []float64{0.25}, scalarGrad(p.T(), []torch.Tensor{leaf})[0], "at %v", x)
		}
	})
}
