//go:build slow

package dist_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

// A false alarm in any of the tests of draws, two a family and seed, has a probability of 1 %.
const (
	drawSeeds = 20
	drawAlarm = 0.01
)

// TestDrawsFollowTheLaw compares draws of all families of one real number with an independent distribution function, by
// Kolmogorov's and by Anderson's and Darling's statistic.
func TestDrawsFollowTheLaw(t *testing.T) {
	const n, sets = 50000, 2
	least := drawAlarm / float64(2*sets*drawSeeds*(len(scalarFamilies)-1))
	eachScalar(t, func(t *testing.T, f scalarCase, rng *rand.Rand) {
		if f.law == nil { // a point mass
			return
		}
		smallest := 1.0
		columns := f.random(rng, sets)
		for set := range sets {
			p := row(columns, set)
			cdf := f.law(p).cdf
			for seed := range drawSeeds {
				u := make([]float64, 0, n)
				scoped(t, func() {
					draws := f.make(scalarNumbers(p)...).Sample(torch.NewSource(uint64(seed), uint64(set)), n)
					for _, x := range scalarRead(draws.T()) {
						u = append(u, cdf(x))
					}
				})
				slices.Sort(u)
				k, a := kolmogorov(u), andersonDarling(u)
				smallest = min(smallest, k, a)
				assert.Greater(t, k, least, "Kolmogorov, %v, seed %d", p, seed)
				assert.Greater(t, a, least, "Anderson and Darling, %v, seed %d", p, seed)
			}
		}
		t.Logf("the least p-value of %d: %.2g", 2*sets*drawSeeds, smallest)
	})
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

// TestCountDrawsFollowTheLaw compares draws of counts with their masses. The threshold of chiSquare is the one above
// for these tests.
func TestCountDrawsFollowTheLaw(t *testing.T) {
	eachCount(t, func(t *testing.T, c countCase, _ *rand.Rand) {
		p := countSettings[c.name][0]
		mass := c.countMass(p)
		for seed := range drawSeeds {
			x := countFloats(c.make(anys(p)...).Sample(torch.NewSource(uint64(seed), 5), 50000).T())
			chiSquare(t, mass, x, "%v, seed %d", p, seed)
		}
	})
}

// costOf names the family whose draws a process of [TestCostOfDraws] is to measure.
const costOf = "KELVIN_COST_OF_DRAWS"

// TestCostOfDraws logs how long a million numbers of each family take, and what memory at most beyond their own. Each
// family has a process, since the allocator gives what another has freed.
func TestCostOfDraws(t *testing.T) {
	names, makers := costCases()
	if name := os.Getenv(costOf); name != "" {
		logCost(t, name, makers[name])
		return
	}
	t.Logf(costRow, "a million numbers of", "seconds", "bytes a number")
	for _, name := range names {
		child := exec.Command(os.Args[0], "-test.run=^TestCostOfDraws$", "-test.v")
		child.Env = append(os.Environ(), costOf+"="+name)
		out, err := child.CombinedOutput()
		require.NoError(t, err, "%s: %s", name, out)
		_, line, _ := strings.Cut(string(out), "cost: ")
		line, _, _ = strings.Cut(line, "\n")
		t.Log(line)
	}
}

const costRow = "%-36s %10s %16s"

// costCases are distributions with ordinary parameters, by name.
func costCases() (names []string, makers map[string]func() dist.Distribution) {
	rng := rand.New(rand.NewPCG(5, 9))
	makers = map[string]func() dist.Distribution{}
	add := func(name string, make func() dist.Distribution) {
		names, makers[name] = append(names, name), make
	}
	for _, f := range scalarFamilies {
		p := scalarNumbers(row(f.random(rng, 1), 0))
		add(f.name, func() dist.Distribution { return f.make(p...) })
	}
	for _, c := range countFamilies {
		add(c.name, func() dist.Distribution { return c.make(anys(countSettings[c.name][0])...) })
	}
	for _, c := range vectorCases {
		p := c.random(rng)
		add(c.name, func() dist.Distribution { return c.make(c.tensors(p)) })
	}
	for _, c := range truncatedCases {
		add("Truncated "+c.name, func() dist.Distribution { return dist.Truncated(c.make(anys(c.p)...), c.low, c.high) })
	}
	return names, makers
}

// costHundredth are families whose draws, by bisection, have memory for a hundredth of the numbers only.
var costHundredth = []string{"Truncated Gamma", "Truncated InverseGamma", "Truncated Chi2", "Truncated Mixture"}

func logCost(t *testing.T, name string, make func() dist.Distribution) {
	t.Helper()
	scoped(t, func() {
		d := make()
		require.NoError(t, d.Validate())
		size := int64(1)
		for _, v := range d.EventShape() {
			size *= v
		}
		n := 1_000_000 / size
		if slices.Contains(costHundredth, name) {
			n /= 100
		}
		d.Sample(torch.NewSource(1, 0), 10)
		before := memory(t, "VmRSS")
		require.NoError(t, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0))
		start := time.Now()
		d.Sample(torch.NewSource(1, 0), n)
		seconds := time.Since(start).Seconds() * 1e6 / float64(n*size)
		bytes := (memory(t, "VmHWM")-before)/float64(n*size) - 8
		t.Logf("cost: "+costRow, name, fmt.Sprintf("%.3f", seconds), fmt.Sprintf("%.0f", bytes))
	})
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
