package dist_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

// countCase is one family of counts or indices.
type countCase struct {
	name string
	// make takes numbers, or tensors of one shape.
	make func(p ...any) dist.Distribution
	// domains of the parameters, one letter each: r real, p positive, u from 0 to 1, n a count, c the next cutpoint.
	domains string
	// logp is the textbook formula; nil is minus infinity.
	logp func(p []*big.Float, x *big.Float) *big.Float
	// top is the last value of a finite support, -1 for an infinite one.
	top func(p []float64) int
}

func countVector(p []any) torch.Tensor { return torch.Stack(-1, p...) }

func noTop([]float64) int             { return -1 }
func topOf(n int) func([]float64) int { return func([]float64) int { return n } }
func topTotal(p []float64) int        { return int(p[0]) }

func bigBinomial(n, p, q, x *big.Float) *big.Float {
	y := bigSub(n, x)
	return bigSum(bigLfact(n), bigNeg(bigLfact(x)), bigNeg(bigLfact(y)), bigXlogy(x, p), bigXlogy(y, q))
}

func bigNegativeBinomial(r, p, q, x *big.Float) *big.Float {
	return bigSum(bigLgamma(bigAdd(x, r)), bigNeg(bigLgamma(r)), bigNeg(bigLfact(x)), bigXlogy(r, q), bigXlogy(x, p))
}

func bigPoisson(rate, x *big.Float) *big.Float {
	return bigSum(bigXlogy(x, rate), bigNeg(rate), bigNeg(bigLfact(x)))
}

func bigBeta(a, b *big.Float) *big.Float {
	return bigSub(bigAdd(bigLgamma(a), bigLgamma(b)), bigLgamma(bigAdd(a, b)))
}

func bigOne(p *big.Float) *big.Float { return bigSub(bigInt(1), p) }

// bigLogOrNil is log x, nil for 0.
func bigLogOrNil(x *big.Float) *big.Float { return bigXlogy(bigInt(1), x) }

var countFamilies = []countCase{
	{"Bernoulli", func(p ...any) dist.Distribution { return dist.Bernoulli(p[0]) }, "u",
		func(p []*big.Float, x *big.Float) *big.Float { return bigBinomial(bigInt(1), p[0], bigOne(p[0]), x) }, topOf(1)},
	{"BernoulliLogits", func(p ...any) dist.Distribution { return dist.BernoulliLogits(p[0]) }, "r",
		func(p []*big.Float, x *big.Float) *big.Float {
			return bigBinomial(bigInt(1), bigSigmoid(p[0]), bigSigmoid(bigNeg(p[0])), x)
		}, topOf(1)},
	{"Binomial", func(p ...any) dist.Distribution { return dist.Binomial(p[0], p[1]) }, "nu",
		func(p []*big.Float, x *big.Float) *big.Float { return bigBinomial(p[0], p[1], bigOne(p[1]), x) }, topTotal},
	{"BinomialLogits", func(p ...any) dist.Distribution { return dist.BinomialLogits(p[0], p[1]) }, "nr",
		func(p []*big.Float, x *big.Float) *big.Float {
			return bigBinomial(p[0], bigSigmoid(p[1]), bigSigmoid(bigNeg(p[1])), x)
		}, topTotal},
	{"Categorical", func(p ...any) dist.Distribution { return dist.Categorical(countVector(p)) }, "pppp",
		func(p []*big.Float, x *big.Float) *big.Float {
			return bigLogOrNil(bigQuo(p[int(bigFloat(x))], bigAdd(p...)))
		}, topOf(3)},
	{"CategoricalLogits", func(p ...any) dist.Distribution { return dist.CategoricalLogits(countVector(p)) }, "rrrr",
		func(p []*big.Float, x *big.Float) *big.Float {
			var all []*big.Float
			for _, l := range p {
				all = append(all, bigExp(l))
			}
			return bigSub(p[int(bigFloat(x))], bigLog(bigAdd(all...)))
		}, topOf(3)},
	{"Poisson", func(p ...any) dist.Distribution { return dist.Poisson(p[0]) }, "p",
		func(p []*big.Float, x *big.Float) *big.Float { return bigPoisson(p[0], x) }, noTop},
	{"PoissonLog", func(p ...any) dist.Distribution { return dist.PoissonLog(p[0]) }, "r",
		func(p []*big.Float, x *big.Float) *big.Float {
			return bigSub(bigMul(x, p[0]), bigAdd(bigExp(p[0]), bigLfact(x)))
		}, noTop},
	{"NegativeBinomial", func(p ...any) dist.Distribution { return dist.NegativeBinomial(p[0], p[1]) }, "pp",
		func(p []*big.Float, x *big.Float) *big.Float {
			s := bigAdd(p[0], p[1])
			return bigNegativeBinomial(p[1], bigQuo(p[0], s), bigQuo(p[1], s), x)
		}, noTop},
	{"NegativeBinomialProbs", func(p ...any) dist.Distribution { return dist.NegativeBinomialProbs(p[0], p[1]) }, "pu",
		func(p []*big.Float, x *big.Float) *big.Float { return bigNegativeBinomial(p[0], p[1], bigOne(p[1]), x) }, noTop},
	{"NegativeBinomialLogits", func(p ...any) dist.Distribution { return dist.NegativeBinomialLogits(p[0], p[1]) }, "pr",
		func(p []*big.Float, x *big.Float) *big.Float {
			return bigNegativeBinomial(p[0], bigSigmoid(p[1]), bigSigmoid(bigNeg(p[1])), x)
		}, noTop},
	{"Geometric", func(p ...any) dist.Distribution { return dist.Geometric(p[0]) }, "u",
		func(p []*big.Float, x *big.Float) *big.Float { return bigSum(bigXlogy(x, bigOne(p[0])), bigLog(p[0])) }, noTop},
	{"BetaBinomial", func(p ...any) dist.Distribution { return dist.BetaBinomial(p[0], p[1], p[2]) }, "npp",
		func(p []*big.Float, x *big.Float) *big.Float {
			y := bigSub(p[0], x)
			choose := bigSub(bigLfact(p[0]), bigAdd(bigLfact(x), bigLfact(y)))
			return bigAdd(choose, bigSub(bigBeta(bigAdd(x, p[1]), bigAdd(y, p[2])), bigBeta(p[1], p[2])))
		}, topTotal},
	{"OrderedLogistic", func(p ...any) dist.Distribution { return dist.OrderedLogistic(p[0], countVector(p[1:])) }, "rrcc",
		func(p []*big.Float, x *big.Float) *big.Float {
			high, low := bigInt(1), bigInt(0)
			if k := int(bigFloat(x)); k > 0 {
				low = bigSigmoid(bigSub(p[k], p[0]))
			}
			if k := int(bigFloat(x)); k < 3 {
				high = bigSigmoid(bigSub(p[k+1], p[0]))
			}
			return bigLogOrNil(bigSub(high, low))
		}, topOf(3)},
	{"ZeroInflated", func(p ...any) dist.Distribution { return dist.ZeroInflated(p[0], dist.Poisson(p[1])) }, "up",
		func(p []*big.Float, x *big.Float) *big.Float {
			inside := bigPoisson(p[1], x)
			if inside == nil && (x.Sign() != 0 || p[0].Sign() == 0) {
				return nil
			}
			mass := bigMul(bigOne(p[0]), bigExp(inside))
			if x.Sign() == 0 {
				mass.Add(mass, p[0])
			}
			return bigLogOrNil(mass)
		}, noTop},
}

func countFamily(name string) countCase {
	for _, c := range countFamilies {
		if c.name == name {
			return c
		}
	}
	panic(name)
}

func bigs(x []float64) []*big.Float {
	out := make([]*big.Float, len(x))
	for i, v := range x {
		out[i] = bigNew(v)
	}
	return out
}

// want is the log mass.
func (c countCase) want(p []float64, x float64) float64 {
	v := c.logp(bigs(p), bigNew(x))
	if v == nil {
		return math.Inf(-1)
	}
	return bigFloat(v)
}

// wantGrad is its derivative in parameter i, by a central difference.
func (c countCase) wantGrad(p []float64, x float64, i int) float64 {
	h := bigMul(bigNew(math.Max(math.Abs(p[i]), 1e-6)), bigNew(1e-25))
	at := func(sign int) *big.Float {
		q := bigs(p)
		q[i].Add(q[i], bigMul(bigInt(sign), h))
		return c.logp(q, bigNew(x))
	}
	return bigFloat(bigQuo(bigSub(at(1), at(-1)), bigMul(bigInt(2), h)))
}

// random is parameters and a value of the support.
func (c countCase) random(rng *rand.Rand) (p []float64, x float64) {
	for _, d := range c.domains {
		switch d {
		case 'r':
			p = append(p, 2*rng.NormFloat64())
		case 'c':
			p = append(p, p[len(p)-1]+math.Exp(rng.NormFloat64()))
		case 'p':
			p = append(p, math.Exp(1.5*rng.NormFloat64()))
		case 'u':
			p = append(p, rng.Float64())
		case 'n':
			p = append(p, float64(1+rng.IntN(200)))
		}
	}
	if top := c.top(p); top >= 0 {
		return p, float64(rng.IntN(top + 1))
	}
	return p, math.Floor(math.Exp(3 * rng.Float64() * rng.Float64() * 2.5))
}

// countTable is n random parameters, by columns, and values.
func (c countCase) table(rng *rand.Rand, n int) (rows, columns [][]float64, x []float64) {
	columns = make([][]float64, len(c.domains))
	for range n {
		p, v := c.random(rng)
		rows, x = append(rows, p), append(x, v)
		for i := range p {
			columns[i] = append(columns[i], p[i])
		}
	}
	return rows, columns, x
}

func countTensor(x []float64, shape ...int) *ts.Tensor {
	return torch.New(x, shape...).T()
}
func countFloats(t *ts.Tensor) []float64 { return torch.Must(torch.ToSlice[float64](torch.Of(t))) }
func countShape(t *ts.Tensor) []int      { return torch.Of(t).Shape() }

func countScope(t *testing.T, f func()) {
	t.Helper()
	require.NoError(t, torch.Do(func(*torch.Scope) error { f(); return nil }))
}

func countLeaves(columns [][]float64) (params []any, leaves []torch.Tensor) {
	for _, col := range columns {
		leaf := torch.Must(torch.Leaf(torch.Of(countTensor(col))))
		params, leaves = append(params, leaf), append(leaves, leaf)
	}
	return params, leaves
}

func countGrad(y *ts.Tensor, leaves []torch.Tensor) [][]float64 {
	grads := torch.Must(torch.Grad([]torch.Tensor{torch.Of(y.MustSum(y.DType(), false))}, leaves,
		&torch.GradOptions{AllowUnused: true, KeepGraph: true}))
	out := make([][]float64, len(grads))
	for i, g := range grads {
		out[i] = countFloats(g.T())
	}
	return out
}

// countClose asserts a relative error, with an absolute one of the given floor.
func countClose(t *testing.T, want, got, relative, floor float64, message string, args ...any) {
	t.Helper()
	if want == got || math.Abs(want-got) <= relative*math.Abs(want)+floor {
		return
	}
	assert.Failf(t, "values differ", "%s: want %.17g, got %.17g", fmt.Sprintf(message, args...), want, got)
}

func eachCount(t *testing.T, f func(t *testing.T, c countCase, rng *rand.Rand)) {
	for i, c := range countFamilies {
		t.Run(c.name, func(t *testing.T) {
			countScope(t, func() { f(t, c, rand.New(rand.NewPCG(7, uint64(i)))) })
		})
	}
}

func anys(p []float64) []any {
	out := make([]any, len(p))
	for i, v := range p {
		out[i] = v
	}
	return out
}

func TestCountLogProb(t *testing.T) {
	eachCount(t, func(t *testing.T, c countCase, rng *rand.Rand) {
		const n = 50
		rows, columns, x := c.table(rng, n)
		params, leaves := countLeaves(columns)
		logp := c.make(params...).LogProb(torch.Of(countTensor(x))).T()
		values, grads := countFloats(logp), countGrad(logp, leaves)
		ints := countFloats(c.make(params...).LogProb(torch.Of(countTensor(x).MustTotype(gotch.Int64, false))).T())
		for k := range n {
			countClose(t, c.want(rows[k], x[k]), values[k], 1e-10, 1e-15, "log p(%v; %v)", x[k], rows[k])
			assert.Equal(t, values[k], ints[k], "an integer value")
			for i, d := range c.domains {
				if d != 'n' {
					want := c.wantGrad(rows[k], x[k], i)
					countClose(t, want, grads[i][k], 1e-8, 1e-11, "d log p(%v; %v)/d parameter %d", x[k], rows[k], i)
				}
			}
			if k < 5 {
				one := countFloats(c.make(anys(rows[k])...).LogProb(torch.Of(countTensor(x[k : k+1]))).T())
				countClose(t, values[k], one[0], 1e-12, 1e-15, "numbers as parameters: log p(%v; %v)", x[k], rows[k])
			}
		}
	})
}

func TestCountLogProbOfGonum(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for name, law := range map[string]func(p []float64) interface{ LogProb(float64) float64 }{
		"Poisson":     func(p []float64) interface{ LogProb(float64) float64 } { return distuv.Poisson{Lambda: p[0]} },
		"Binomial":    func(p []float64) interface{ LogProb(float64) float64 } { return distuv.Binomial{N: p[0], P: p[1]} },
		"Bernoulli":   func(p []float64) interface{ LogProb(float64) float64 } { return distuv.Bernoulli{P: p[0]} },
		"Categorical": func(p []float64) interface{ LogProb(float64) float64 } { return distuv.NewCategorical(p, nil) },
	} {
		countScope(t, func() {
			c := countFamily(name)
			rows, columns, x := c.table(rng, 100)
			params, _ := countLeaves(columns)
			for k, got := range countFloats(c.make(params...).LogProb(torch.Of(countTensor(x))).T()) {
				// gonum subtracts log Γ: it has an absolute error, which grows with the count.
				countClose(t, law(rows[k]).LogProb(x[k]), got, 1e-10, 1e-12, "%s: log p(%v; %v)", name, x[k], rows[k])
			}
		})
	}
}

// countExtremes are where the textbook's formulas overflow, cancel, or multiply 0 by infinity.
var countExtremes = map[string][]struct {
	p []float64
	x float64
}{
	"Bernoulli": {
		{[]float64{0}, 0},
		{[]float64{0}, 1},
		{[]float64{1}, 1},
		{[]float64{1}, 0},
		{[]float64{1e-300}, 1},
		{[]float64{1e-300}, 0},
		{[]float64{1 - 1e-16}, 0},
	},
	"BernoulliLogits": {
		{[]float64{1000}, 1},
		{[]float64{1000}, 0},
		{[]float64{-1000}, 1},
		{[]float64{-1000}, 0},
		{[]float64{50}, 1},
		{[]float64{-50}, 0},
		{[]float64{21}, 1},
		{[]float64{0}, 0},
		{[]float64{700}, 1},
	},
	"Binomial": {
		{[]float64{1e9, 0.5}, 5e8},
		{[]float64{1e9, 0.5}, 500031622},
		{[]float64{1e9, 0.3}, 3e8 + 12345},
		{[]float64{1e9, 1e-9}, 1},
		{[]float64{1e9, 1e-9}, 0},
		{
			[]float64{1e9, 0.999999},
			1e9,
		},
		{[]float64{1e9, 0.5}, 0},
		{[]float64{10, 0}, 0},
		{[]float64{10, 0}, 1},
		{[]float64{10, 1}, 10},
		{[]float64{10, 1}, 9},
		{
			[]float64{10, 1e-300},
			10,
		},
		{[]float64{0, 0.5}, 0},
		{[]float64{0, 0}, 0},
		{[]float64{0, 1}, 0},
		{[]float64{1, 1e-20}, 0},
	},
	"BinomialLogits": {
		{[]float64{1e9, 0}, 5e8},
		{[]float64{1e9, 0.001}, 500250000},
		{[]float64{1e9, -20}, 3},
		{[]float64{10, 1000}, 10},
		{[]float64{10, 1000}, 7},
		{[]float64{10, -1000}, 0},
		{[]float64{10, -1000}, 2},
		{[]float64{0, 3}, 0},
		{[]float64{20, 50}, 20},
	},
	"Categorical": {
		{[]float64{0, 1, 2, 0}, 1},
		{[]float64{0, 1, 2, 0}, 0},
		{[]float64{1e-300, 1, 1, 1}, 0},
		{[]float64{0, 0, 0, 5}, 3},
	},
	"CategoricalLogits": {
		{[]float64{1000, 0, -1000, 0}, 0},
		{[]float64{1000, 0, -1000, 0}, 2},
		{[]float64{-1000, -1001, -1002, -1003}, 3},
	},
	"Poisson": {
		{[]float64{1e9}, 1e9},
		{[]float64{1e9}, 1e9 + 31623},
		{[]float64{1e9}, 1e9 - 158114},
		{[]float64{1e9 + 0.37}, 1e9 + 5},
		{[]float64{1e12}, 1e12 + 1e6},
		{[]float64{1e9}, 0},
		{[]float64{1e9}, 1},
		{
			[]float64{1e-300},
			5,
		},
		{[]float64{1e-300}, 0},
		{[]float64{0}, 0},
		{[]float64{0}, 3},
		{[]float64{1}, 1e9},
		{[]float64{64}, 64},
		{[]float64{63}, 63},
		{[]float64{1e15}, 1e15},
	},
	"PoissonLog": {
		{[]float64{math.Log(1e9)}, 1e9},
		{[]float64{math.Log(1e9)}, 1e9 + 31623},
		{[]float64{math.Log(1e9)}, 1e9 - 158114},
		{[]float64{-1000}, 0},
		{[]float64{-1000}, 4},
		{[]float64{-50}, 0},
		{[]float64{50}, 0},
		{[]float64{50}, 5e21},
		{[]float64{0}, 0},
	},
	"NegativeBinomial": {
		{[]float64{5, 1e10}, 7},
		{[]float64{5, 1e15}, 0},
		{[]float64{1e9, 1e9}, 1e9 + 1000},
		{[]float64{1e9, 2}, 1e9},
		{[]float64{1e-10, 3}, 0},
		{[]float64{1e-10, 3}, 2},
		{[]float64{5, 1e-10}, 0},
		{
			[]float64{5, 1e-10},
			4,
		},
		{[]float64{3, 64}, 2},
		{[]float64{0, 2}, 0},
		{[]float64{0, 2}, 1},
		{[]float64{1e5, 1e-100}, 3},
	},
	"NegativeBinomialProbs": {
		{[]float64{3, 0}, 0},
		{[]float64{3, 0}, 2},
		{[]float64{1e9, 0.5}, 1e9},
		{[]float64{2, 1 - 1e-9}, 1e9},
		{[]float64{1e10, 1e-10}, 2},
	},
	"NegativeBinomialLogits": {
		{[]float64{3, -1000}, 0},
		{[]float64{3, -1000}, 2},
		{[]float64{3, 50}, 2},
		{[]float64{3, 1000}, 2},
		{[]float64{3, 1000}, 0},
		{[]float64{1e9, 0}, 1e9 + 7},
		{[]float64{1e10, math.Log(5e-10)}, 6},
	},
	"Geometric": {
		{[]float64{1}, 0},
		{[]float64{1}, 3},
		{[]float64{1e-300}, 0},
		{[]float64{1e-20}, 1e18},
		{[]float64{1e-9}, 1e9},
	},
	"BetaBinomial": {
		{[]float64{10, 1e10, 1e10}, 4},
		{[]float64{1e9, 2, 3}, 4e8},
		{[]float64{1e9, 1e9, 1e9}, 5e8 + 1000},
		{[]float64{10, 1e-10, 1e-10}, 0},
		{[]float64{10, 1e-10, 1e-10}, 4},
		{[]float64{0, 2, 3}, 0},
		{
			[]float64{5, 1e-100, 2},
			3,
		},
		{[]float64{5, 1e10, 1}, 5},
		{[]float64{5, 1, 1e10}, 0},
		{[]float64{5, 1e10, 1}, 4},
		{[]float64{5, 1, 1e10}, 1},
		{[]float64{1e6, 1e15, 2}, 1e6},
		{
			[]float64{5, 1e10, 1e-3},
			5,
		},
		{[]float64{7, 1000, 3}, 7},
		{[]float64{7, 2e3, 3e3}, 0},
		{[]float64{0, 1e10, 1}, 0},
		{[]float64{1e9, 1e4, 2}, 1e9},
		{[]float64{3, 1e12, 1e12}, 3},
	},
	"OrderedLogistic": {
		{[]float64{0, -20, 20, 40}, 1},
		{[]float64{50, -1, 0, 1}, 0},
		{[]float64{50, -1, 0, 1}, 3},
		{[]float64{-50, -1, 0, 1}, 2},
		{[]float64{1000, -1, 0, 1}, 1},
		{[]float64{0, 0, 1e-10, 1}, 1},
		{[]float64{0, -15, 15, 30}, 1},
		{[]float64{-1000, -1, 0, 1}, 0},
		{[]float64{0, -600, 600, 1200}, 1},
	},
	"ZeroInflated": {
		{[]float64{0, 3}, 0},
		{[]float64{0, 3}, 2},
		{[]float64{1, 3}, 0},
		{[]float64{1, 3}, 2},
		{[]float64{0, 1000}, 0},
		{[]float64{1e-10, 1000}, 0},
		{[]float64{0.5, 1000}, 0},
		{[]float64{0, 1e-10}, 0},
		{
			[]float64{1 - 1e-10, 2},
			0,
		},
		{[]float64{0.3, 1e9}, 1e9},
		{[]float64{1e-300, 50}, 0},
		{[]float64{0.3, 0}, 0},
		{[]float64{0, 0}, 0},
	},
}

func TestCountExtremes(t *testing.T) {
	eachCount(t, func(t *testing.T, c countCase, _ *rand.Rand) {
		require.NotEmpty(t, countExtremes[c.name])
		for _, e := range countExtremes[c.name] {
			columns := make([][]float64, len(e.p))
			inside := true // the parameters are not at an end of their domain
			for i, v := range e.p {
				columns[i] = []float64{v}
				inside = inside && (c.domains[i] == 'r' || c.domains[i] == 'c' || v != 0) && (c.domains[i] != 'u' || v != 1)
			}
			params, leaves := countLeaves(columns)
			logp := c.make(params...).LogProb(torch.Of(countTensor([]float64{e.x}))).T()
			want, got := c.want(e.p, e.x), countFloats(logp)[0]
			// The floor is the error of the 80 digits.
			countClose(t, want, got, 1e-10, 1e-55, "log p(%v; %v)", e.x, e.p)
			if math.IsInf(want, -1) {
				continue
			}
			for i, g := range countGrad(logp, leaves) {
				if c.domains[i] == 'n' {
					continue
				}
				assert.False(t, math.IsNaN(g[0]), "d log p(%v; %v)/d parameter %d is NaN", e.x, e.p, i)
				if !inside {
					continue
				}
				// The derivative is a difference of numbers like x/p, in which rounding remains.
				countClose(
					t,
					c.wantGrad(e.p, e.x, i),
					g[0],
					1e-8,
					1e-15*(1+e.x)/math.Min(1, math.Abs(e.p[i])+1e-300),
					"d log p(%v; %v)/d parameter %d",
					e.x,
					e.p,
					i,
				)
			}
		}
	})
}

// At an end of the domain the derivative from inside is the limit that calculus gives.
func TestCountGradientsAtEnds(t *testing.T) {
	for _, c := range []struct {
		family string
		p      []float64
		x      float64
		want   []float64 // NaN is not checked
	}{
		{"Bernoulli", []float64{0}, 0, []float64{-1}},
		{"Bernoulli", []float64{1}, 1, []float64{1}},
		{"Binomial", []float64{10, 0}, 0, []float64{math.NaN(), -10}},
		{"Binomial", []float64{10, 1}, 10, []float64{math.NaN(), 10}},
		{"Poisson", []float64{0}, 0, []float64{-1}},
		{"NegativeBinomial", []float64{0, 2}, 0, []float64{-1, 0}},
		{"NegativeBinomialProbs", []float64{3, 0}, 0, []float64{0, -3}},
		{"Geometric", []float64{1}, 0, []float64{1}},
		{"Categorical", []float64{0, 1, 2, 0}, 1, []float64{-1. / 3, 2. / 3, -1. / 3, -1. / 3}},
		{"BernoulliLogits", []float64{math.Inf(-1)}, 0, []float64{0}},
		{"BernoulliLogits", []float64{math.Inf(1)}, 1, []float64{0}},
		{"BinomialLogits", []float64{10, math.Inf(-1)}, 0, []float64{math.NaN(), 0}},
		{"CategoricalLogits", []float64{math.Inf(-1), 0, 0, 0}, 1, []float64{0, 2. / 3, -1. / 3, -1. / 3}},
		{"PoissonLog", []float64{math.Inf(-1)}, 0, []float64{0}},
		{"NegativeBinomialLogits", []float64{3, math.Inf(-1)}, 0, []float64{0, 0}},
		{"ZeroInflated", []float64{0, 3}, 0, []float64{math.Expm1(3), -1}},
		{"ZeroInflated", []float64{0, 3}, 2, []float64{-1, 2./3 - 1}},
		{"ZeroInflated", []float64{1, 3}, 0, []float64{-math.Expm1(-3), 0}},
	} {
		countScope(t, func() {
			columns := make([][]float64, len(c.p))
			for i, v := range c.p {
				columns[i] = []float64{v}
			}
			params, leaves := countLeaves(columns)
			for i, g := range countGrad(countFamily(c.family).make(params...).LogProb(torch.Of(countTensor([]float64{c.x}))).T(),
				leaves) {
				if !math.IsNaN(c.want[i]) {
					countClose(t, c.want[i], g[0], 1e-10, 1e-15, "%s%v at %v: parameter %d", c.family, c.p, c.x, i)
				}
			}
		})
	}
}
