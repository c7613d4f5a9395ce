//go:build slow

package dist_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

// A false alarm in any of the tests of a function below has a probability of 1 %: each p-value is held to that divided
// by their number. A distribution has drawsEach draws at each seed, which are a million in all.
const (
	drawSeeds = 20
	drawsEach = 50_000
	drawAlarm = 0.01
)

// TestDrawsFollowTheLaw compares draws of all families of one real number with an independent distribution function.
func TestDrawsFollowTheLaw(t *testing.T) {
	const sets = 2
	eachScalar(t, func(t *testing.T, f scalarCase, rng *rand.Rand) {
		if f.law == nil { // a point mass
			return
		}
		columns := f.random(rng, sets)
		for set := range sets {
			p := row(columns, set)
			follows(t, sets*(len(scalarFamilies)-1), func(seed uint64, n int) []float64 {
				return scalarRead(f.make(scalarNumbers(p)...).Sample(torch.NewSource(seed, uint64(set)), n).T())
			}, f.law(p).cdf)
		}
	})
}

// follows compares draws of one number with its distribution function, by Kolmogorov's and by Anderson's and Darling's
// statistic, at each seed and at all of them together. of is how many distributions there are.
func follows(t *testing.T, of int, draw func(seed uint64, n int) []float64, cdf func(x float64) float64) {
	t.Helper()
	const tests = 2 * (drawSeeds + 1)
	least, smallest := drawAlarm/float64(tests*of), 1.0
	compare := func(u []float64, what string) {
		slices.Sort(u)
		k, a := kolmogorov(u), andersonDarling(u)
		smallest = min(smallest, k, a)
		assert.Greater(t, k, least, "Kolmogorov, %s", what)
		assert.Greater(t, a, least, "Anderson and Darling, %s", what)
	}
	var all []float64
	for seed := range drawSeeds {
		var u []float64
		scoped(t, func() {
			for _, x := range draw(uint64(seed), drawsEach) {
				u = append(u, cdf(x))
			}
		})
		all = append(all, u...)
		compare(u, fmt.Sprintf("seed %d", seed))
	}
	compare(all, "all seeds")
	t.Logf("the least p-value of %d: %.2g", tests, smallest)
}

// countsFollow compares draws of counts with their masses, as follows does.
func countsFollow(t *testing.T, of int, draw func(seed uint64, n int) []float64, mass []float64) {
	t.Helper()
	const tests = drawSeeds + 1
	least, smallest := drawAlarm/float64(tests*of), 1.0
	compare := func(x []float64, what string) {
		p := chiSquareTail(t, mass, x)
		smallest = min(smallest, p)
		assert.Greater(t, p, least, what)
	}
	var all []float64
	for seed := range drawSeeds {
		var x []float64
		scoped(t, func() { x = draw(uint64(seed), drawsEach) })
		all = append(all, x...)
		compare(x, fmt.Sprintf("seed %d", seed))
	}
	compare(all, "all seeds")
	t.Logf("the least p-value of %d: %.2g", tests, smallest)
}

// TestTruncatedDrawsFollowTheLaw compares draws with the distribution function, which TestTruncatedLaw compares with
// quadratures.
func TestTruncatedDrawsFollowTheLaw(t *testing.T) {
	eachTruncated(t, func(t *testing.T, c truncatedCase) {
		d := dist.Truncated(c.make(scalarNumbers(c.p)...), c.low, c.high)
		follows(t, len(truncatedCases), func(seed uint64, n int) []float64 {
			x := d.Sample(torch.NewSource(seed, 0), n)
			return d.(dist.CDFer).CDF(x).Values()
		}, func(u float64) float64 { return u })
	})
}

// TestVectorDrawsFollowTheLaw compares the draws of one element with its own distribution.
func TestVectorDrawsFollowTheLaw(t *testing.T) {
	for _, c := range vectorCases {
		t.Run(c.name, func(t *testing.T) {
			var cdf func(x float64) float64
			at := 0
			make := func() dist.Distribution { return c.make(c.tensors(c.random(rand.New(rand.NewPCG(5, 9))))) }
			scoped(t, func() { at, cdf = margin(make()) })
			follows(t, len(vectorCases), func(seed uint64, n int) (out []float64) {
				x := make().Sample(torch.NewSource(seed, 0), n).Values()
				for i := at; i < len(x); i += len(x) / n {
					out = append(out, x[i])
				}
				return out
			}, cdf)
		})
	}
}

// margin is the distribution function of an element, and which that is.
func margin(d dist.Distribution) (at int, cdf func(x float64) float64) {
	mean, variance := d.Mean().Values(), d.Variance().Values()
	param := func(name string) []float64 {
		v, _ := d.(dist.Parameterised).Params()[name].(torch.Tensor)
		return v.Values()
	}
	square := func(cdf func(x float64) float64) func(x float64) float64 {
		return func(x float64) float64 { return cdf(x * x) }
	}
	switch d.Name() {
	case "Dirichlet":
		total := mean[0]*(1-mean[0])/variance[0] - 1
		return 0, distuv.Beta{Alpha: total * mean[0], Beta: total * (1 - mean[0])}.CDF
	case "MultivariateStudentT":
		df := param("df")[0]
		return 2, distuv.StudentsT{Mu: mean[2], Sigma: math.Sqrt(variance[2] * (df - 2) / df), Nu: df}.CDF
	case "LKJCholesky": // in the second row, the correlation
		shape := param("eta")[0] - 1 + 4./2
		return 4, func(x float64) float64 { return distuv.Beta{Alpha: shape, Beta: shape}.CDF((x + 1) / 2) }
	case "WishartCholesky": // the square of the first element is the first of the matrix
		l := param("scale_tril")[0]
		return 0, square(distuv.Gamma{Alpha: param("df")[0] / 2, Beta: 1 / (2 * l * l)}.CDF)
	case "InverseWishartCholesky":
		l := param("scale_tril")[0]
		return 0, square(distuv.InverseGamma{Alpha: (param("df")[0] - 2) / 2, Beta: l * l / 2}.CDF)
	}
	last := len(mean) - 1
	return last, distuv.Normal{Mu: mean[last], Sigma: math.Sqrt(variance[last])}.CDF
}

// kolmogorov is the p-value, in large samples, of the greatest distance of sorted numbers from uniform ones.
func kolmogorov(u []float64) float64 {
	n, d := float64(len(u)), 0.0
	for i, v := range u {
		d = max(d, v-float64(i)/n, float64(i+1)/n-v)
	}
	p := 0.0
	for j := 1.0; j <= 100; j++ {
		p += 2 * math.Pow(-1, j-1) * math.Exp(-2*j*j*n*d*d)
	}
	if n*d*d < 0.04 { // the sum has not converged, and p is 1
		return 1
	}
	return min(1, p)
}

// andersonDarling is the p-value of Anderson's and Darling's statistic of sorted numbers. In large samples that is
// the sum of squares of normal numbers over j(j + 1), whose tail is that of the first, times √3 (Zolotarev 1961): a
// large p-value is too small by up to a fifth, one below 1e-3 right.
func andersonDarling(u []float64) float64 {
	n, sum := float64(len(u)), 0.0
	for i, v := range u {
		low := max(v, 1e-300)
		high := max(1-u[len(u)-1-i], 1e-16)
		sum += float64(2*i+1) * (math.Log(low) + math.Log(high))
	}
	a := -n - sum/n
	return min(1, math.Sqrt(3)*distuv.ChiSquared{K: 1}.Survival(2*a))
}

// TestCountDrawsFollowTheLaw compares draws of counts with their masses.
func TestCountDrawsFollowTheLaw(t *testing.T) {
	eachCount(t, func(t *testing.T, c countCase, _ *rand.Rand) {
		p := countSettings[c.name][0]
		countsFollow(t, len(countFamilies), func(seed uint64, n int) []float64 {
			return countFloats(c.make(anys(p)...).Sample(torch.NewSource(seed, 5), n).T())
		}, c.countMass(p))
	})
}

// TestDrawsOfVectorsOfCountsFollowTheLaw compares the first count of each draw with its own masses, and outcomes of
// linear models with theirs.
func TestDrawsOfVectorsOfCountsFollowTheLaw(t *testing.T) {
	w, logits := func() *ts.Tensor { return scalarVec(0.5, -0.3) }, []float64{0.2, -0.4, 1}
	total, share := 9., math.Exp(0.2)/(math.Exp(0.2)+math.Exp(-0.4)+math.Exp(1))
	predictor := design[2][0]*0.5 - design[2][1]*0.3 + 0.1 // of the third row
	classes := func() torch.Tensor { return torch.Of(scalarVec(0.5, -0.3, 0.2, 0.1, 1, 0.4, -0.6, 0)).Reshape(2, 4) }
	choice := make([]float64, 4)
	for j, v := range [][2]float64{{0.5, 1}, {-0.3, 0.4}, {0.2, -0.6}, {0.1, 0}} {
		choice[j] = design[2][0]*v[0] + design[2][1]*v[1] + 0.1
	}
	cases := []struct {
		name string
		make func() dist.Distribution
		at   int
		like string // a family of counts with the law of this element
		p    []float64
	}{
		{"Multinomial", func() dist.Distribution { return dist.Multinomial(total, scalarVec(1, 2, 3)) }, 0, "Binomial",
			[]float64{total, 1. / 6}},
		{"MultinomialLogits", func() dist.Distribution { return dist.MultinomialLogits(total, scalarVec(logits...)) }, 0,
			"Binomial", []float64{total, share}},
		{"DirichletMultinomial", func() dist.Distribution { return dist.DirichletMultinomial(total, scalarVec(0.7, 2, 3)) },
			0, "BetaBinomial", []float64{total, 0.7, 5}},
		{"BernoulliLogitGLM", func() dist.Distribution { return dist.BernoulliLogitGLM(designMatrix(), w(), 0.1) }, 2,
			"BernoulliLogits", []float64{predictor}},
		{"PoissonLogGLM", func() dist.Distribution { return dist.PoissonLogGLM(designMatrix(), w(), 0.1) }, 2, "PoissonLog",
			[]float64{predictor}},
		{"CategoricalLogitGLM", func() dist.Distribution {
			return dist.CategoricalLogitGLM(designMatrix(), classes(), 0.1)
		}, 2, "CategoricalLogits", choice},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			countsFollow(t, len(cases), func(seed uint64, n int) []float64 {
				return c.make().Sample(torch.NewSource(seed, 5), n).Reshape(n, -1).Transpose().At(c.at).Values()
			}, countFamily(c.like).countMass(c.p))
		})
	}
}

// costOf names the row that a process of [TestCosts] is to measure.
const costOf = "KELVIN_COST_OF_DRAWS"

// mostBytes is what each of a million numbers may take beyond its own.
const mostBytes = 64

// TestCosts logs how long a million draws, quantiles and values of the distribution function of each family take on one
// core, and what memory at most beyond their own. Each has a process, since the allocator gives what another has freed.
func TestCosts(t *testing.T) {
	cases := costCases()
	if name := os.Getenv(costOf); name != "" {
		require.NoError(t, torch.SetThreads(1)) // seconds are those of one core
		logCost(t, cases[slices.IndexFunc(cases, func(c costCase) bool { return c.name == name })])
		return
	}
	table := fmt.Sprintf(costRow, "a million numbers of", "seconds", "bytes a number")
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			child := exec.Command(os.Args[0], "-test.run=^TestCosts$", "-test.v")
			child.Env = append(os.Environ(), costOf+"="+c.name)
			out, err := child.CombinedOutput()
			require.NoError(t, err, "%s", out)
			_, line, _ := strings.Cut(string(out), "cost: ")
			line, _, _ = strings.Cut(line, "\n")
			table += "\n" + line
			words := strings.Fields(line)
			bytes, err := strconv.ParseFloat(words[len(words)-1], 64)
			require.NoError(t, err)
			assert.LessOrEqual(t, bytes, float64(mostBytes))
		})
	}
	t.Log("\n" + table)
}

const costRow = "%-44s %10s %16s"

// costCase is what a row measures: what prepare returns makes n numbers.
type costCase struct {
	name    string
	prepare func(n int) (run func())
}

// costCases are draws, quantiles and distribution functions of distributions with ordinary parameters.
func costCases() (all []costCase) {
	rng := rand.New(rand.NewPCG(5, 9))
	add := func(name string, make func(n int) dist.Distribution) {
		all = append(all, costCase{name, func(n int) func() {
			d := make(n)
			each := 1
			for _, v := range append(d.BatchShape(), d.EventShape()...) {
				each *= v
			}
			if each > n/2 {
				return func() { d.Sample(torch.NewSource(1, 0)) }
			}
			n /= each
			return func() { d.Sample(torch.NewSource(1, 0), n) }
		}})
		few := make(1000)
		if b := few.BatchShape(); len(b) != 0 && b[0] != 1000 { // of a shape of its own
			return
		}
		if _, ok := few.(dist.CDFer); ok {
			all = append(all, costCase{"CDF of " + name, func(n int) func() {
				x := repeated(scalarRead(make(1000).Sample(torch.NewSource(1, 0), 1000).T())[:1000], n)
				d := make(n).(dist.CDFer)
				return func() { d.CDF(x) }
			}})
		}
		if _, ok := few.(dist.ICDFer); ok {
			all = append(all, costCase{"quantiles of " + name, func(n int) func() {
				u := torch.Must(torch.NewSource(1, 0).Uniform([]int{1000}, gotch.Double, torch.CPU))
				p, d := repeated(scalarRead(u.T()), n), make(n).(dist.ICDFer)
				return func() { d.ICDF(p) }
			}})
		}
	}
	for _, f := range scalarFamilies {
		p := scalarNumbers(row(f.random(rng, 1), 0))
		add(f.name, func(int) dist.Distribution { return f.make(p...) })
	}
	for _, c := range countFamilies {
		add(c.name, func(int) dist.Distribution { return c.make(anys(countSettings[c.name][0])...) })
	}
	for _, c := range vectorCases {
		p := c.random(rng)
		add(c.name, func(int) dist.Distribution { return c.make(c.tensors(p)) })
	}
	for _, c := range truncatedCases {
		add("Truncated "+c.name, func(int) dist.Distribution {
			return dist.Truncated(c.make(anys(c.p)...), c.low, c.high)
		})
	}
	have := map[string]bool{}
	for _, c := range all {
		have[c.name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(examples)) {
		if have[name] || strings.HasPrefix(name, "Flat") {
			continue
		}
		add(name, func(int) dist.Distribution {
			return examples[name](func(v ...float64) torch.Tensor { return parameterOf(v) })
		})
	}
	own := func(n int) torch.Tensor { return repeated([]float64{0.7, 1.5, 3, 8, 40}, n) }
	add("StudentT, each with its own df", func(n int) dist.Distribution { return dist.StudentT(own(n), 0, 1) })
	add("Truncated StudentT, each with its own df", func(n int) dist.Distribution {
		return dist.Truncated(dist.StudentT(own(n), 0, 1), -3, 9)
	})
	add("Truncated Gamma, each of its own shape", func(n int) dist.Distribution {
		return dist.Truncated(dist.Gamma(own(n), 1), 0.1, 9)
	})
	add("Truncated Mixture, each of its own mean", func(n int) dist.Distribution {
		return dist.Truncated(dist.Mixture([]float64{1, 2}, dist.Normal(own(n), 1), dist.Gamma(3, 1)), -1, 9)
	})
	return all
}

// parameterOf is a number or a vector.
func parameterOf(v []float64) torch.Tensor {
	if len(v) == 1 {
		return torch.Of(v[0])
	}
	return torch.Of(scalarVec(v...))
}

// repeated is a tensor of n numbers, some over and over.
func repeated(some []float64, n int) torch.Tensor {
	return torch.New(slices.Repeat(some, n/len(some)))
}

func logCost(t *testing.T, c costCase) {
	t.Helper()
	const n = 1_000_000
	scoped(t, func() {
		c.prepare(10_000)() // what a run takes once, however many numbers, is not counted
		run := c.prepare(n)
		before := memory(t, "VmRSS")
		require.NoError(t, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0))
		start := processor(t)
		run()
		seconds := processor(t) - start
		bytes := (memory(t, "VmHWM")-before)/n - 8
		t.Logf("cost: "+costRow, c.name, fmt.Sprintf("%.3f", seconds), fmt.Sprintf("%.0f", bytes))
	})
}

// processor is the time that the process has had on all cores, in seconds.
func processor(t *testing.T) float64 {
	t.Helper()
	var used syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}

// memory is a figure of the process's in bytes.
func memory(t *testing.T, name string) float64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		if kb, ok := strings.CutPrefix(line, name+":"); ok {
			v, err := strconv.ParseFloat(strings.Fields(kb)[0], 64)
			require.NoError(t, err)
			return v * 1024
		}
	}
	require.Fail(t, "no "+name)
	return 0
}
