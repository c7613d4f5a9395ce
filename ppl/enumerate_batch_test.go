package ppl_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Chains whose steps are summed out many at a time have the density of the forward algorithm, whatever their length,
// and where steps differ.
func TestEnumerateAtOnce(t *testing.T) {
	for _, c := range []struct {
		n      int
		states int
	}{{5, 2}, {8, 2}, {63, 2}, {64, 2}, {65, 3}, {130, 4}, {601, 3}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			discrete, written := twoChains(c.n, c.states)
			requireEqualDensities(t, discrete, written, infer.Batch{"y": vec(uneven(c.n, 2)...)})
		})
	}

	// Here transitions and observations differ from step to step, a variable outside is in all of them, and each step has
	// a choice of its own.
	const n = 25
	x := uneven(n, 4)
	m := func(c *ppl.Ctx) {
		a, b := c.Sample("a", dist.Normal(0, 1)), c.Sample("b", dist.Normal(0, 1))
		u := c.Sample("u", dist.Bernoulli(0.4))
		z := torch.Of(0)
		c.Markov(n, func(c *ppl.Ctx, t int) {
			z = c.Sample("z", dist.BernoulliLogits(z.Mul(a).Add(u).Sub(x[t])))
			w := c.Sample("w", dist.Bernoulli(0.3))
			c.Observe("y", dist.Normal(z.Mul(b).Add(w), 1), c.Data("y").At(t))
		})
	}
	y := uneven(n, 3)
	requireBrute(t, m, infer.Batch{"y": vec(y...)}, func(a, b float64) float64 {
		var both []float64
		for u := range 2 {
			chain := []float64{0}
			for t := range n {
				next := make([]float64, 2)
				for z := range next {
					var terms []float64
					for from, l := range chain {
						terms = append(terms, l+bit(z, logistic(float64(from)*a+float64(u)-x[t])))
					}
					mean := float64(z) * b
					next[z] = logSumExp(terms) + logSumExp([]float64{bit(0, 0.3) + normal(y[t], mean, 1),
						bit(1, 0.3) + normal(y[t], mean+1, 1)})
				}
				chain = next
			}
			both = append(both, bit(u, 0.4)+logSumExp(chain))
		}
		return logSumExp(both) + normal(a, 0, 1) + normal(b, 0, 1)
	})
}

// compiledReport says what becomes of a model in the virtual machine.
func compiledReport(t *testing.T, m ppl.Model, batch infer.Batch) native.Report {
	t.Helper()
	p, err := ppl.Compile(m, batch)
	require.NoError(t, err)
	start, err := p.Start(batch, 1, 1)
	require.NoError(t, err)
	f, report, err := infer.Compile(p.Target(), start, batch, native.Options{Tier: native.VM})
	require.NoError(t, err)
	require.NotNil(t, f, report.Reason)
	return report
}

// What a recording of a chain allocates, most of which is garbage at once, grows by less than 150 kB a step: the
// look-up in the data is all that a step records. Where all of a step is recorded it is 1.5 MB, which is held.
func TestEnumerateLongChain(t *testing.T) {
	allocated := func(n int) float64 {
		chain, _ := twoChains(n, 2)
		batch := infer.Batch{"y": vec(uneven(n, 2)...)}
		p, err := ppl.Compile(chain, batch)
		require.NoError(t, err)
		start, err := p.Start(batch, 1, 1)
		require.NoError(t, err)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f, report, err := infer.Compile(p.Target(), start, batch, native.Options{Tier: native.VM})
		require.NoError(t, err)
		require.NotNil(t, f, report.Reason)
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	step := (allocated(1600) - allocated(400)) / 1200
	t.Logf("%.0f bytes a step", step)
	require.Less(t, step, 150e3)
}

// The peak of a process that compiles a chain of two states is at most 20 kB a step above that of a chain of ten steps,
// at 3000 steps and at twice as many (27 where the checks of Compile keep their runs, 50 where both recordings are
// read). It is measured in processes of their own, which the test starts: the least of three, since the collector of
// garbage is late on a machine that has other work.
func TestEnumerateMemory(t *testing.T) {
	const length = "KELVIN_TEST_CHAIN"
	if n, err := strconv.Atoi(os.Getenv(length)); err == nil {
		chain, _ := twoChains(n, 2)
		compiledReport(t, chain, infer.Batch{"y": vec(uneven(n, 2)...)})
		status, err := os.ReadFile("/proc/self/status")
		require.NoError(t, err)
		fmt.Println(string(status))
		return
	}
	peak := func(n int) float64 {
		child := exec.Command(os.Args[0], "-test.run=^TestEnumerateMemory$")
		child.Env = append(os.Environ(), fmt.Sprint(length, "=", n))
		out, err := child.CombinedOutput()
		require.NoError(t, err, string(out))
		found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindStringSubmatch(string(out))
		require.Len(t, found, 2, "the system tells no peak of the memory: %s", out)
		kB, err := strconv.ParseFloat(found[1], 64)
		require.NoError(t, err)
		return kB
	}
	short := peak(10)
	for _, n := range []int{3000, 6000} {
		if n == 6000 && !testkit.Slow {
			continue
		}
		step := math.Inf(1)
		for k := 0; k < 3 && step > 20; k++ {
			step = (peak(n) - short) / float64(n-10)
		}
		t.Logf("%d steps: %.1f kB a step", n, step)
		require.LessOrEqual(t, step, 20.)
	}
}

// In a long chain of two states, whose steps are summed out at once, a second observation adds as few loops as in a
// short one.
func TestEnumerateObservationsLong(t *testing.T) {
	const n = 1000
	loops := func(many int) int {
		m := func(c *ppl.Ctx) {
			stay := c.Sample("stay", dist.Beta(8, 2))
			rate := c.Sample("rate", dist.LogNormal(0, 1).Expand(many, 2))
			up := torch.Stack(0, torch.Of(1).Sub(stay), stay)
			rates := make([]torch.Tensor, many)
			for k := range rates {
				rates[k] = rate.At(k)
			}
			z, y := torch.Of(0), c.Data("y")
			c.Markov(n, func(c *ppl.Ctx, t int) {
				z = c.Sample("z", dist.Bernoulli(up.Take(z)))
				for k, rate := range rates {
					c.Observe(fmt.Sprint("y", k), dist.Exponential(rate.Take(z)), y.At(t))
				}
			})
		}
		y := uneven(n, 1)
		for i := range y {
			y[i] = y[i]*y[i] + 0.1
		}
		r := compiledReport(t, m, infer.Batch{"y": vec(y...)})
		require.Less(t, r.Ops, 4*n, "%v", r)
		return r.Loops
	}
	require.Less(t, loops(2), loops(1)+20)
}

// Two observations of a family in a step are one loop over time, and so are three.
func TestEnumerateObservations(t *testing.T) {
	const n = 60
	y := uneven(n, 1)
	for i := range y {
		y[i] = y[i]*y[i] + 0.1
	}
	for _, many := range []int{1, 2, 3} {
		for name, of := range map[string]func(x torch.Tensor) dist.Distribution{
			"exponential": func(x torch.Tensor) dist.Distribution { return dist.Exponential(x) },
			"gamma":       func(x torch.Tensor) dist.Distribution { return dist.Gamma(2, x) },
			"lognormal":   func(x torch.Tensor) dist.Distribution { return dist.LogNormal(x, 1) },
			"weibull":     func(x torch.Tensor) dist.Distribution { return dist.Weibull(x, 2) },
			"normal":      func(x torch.Tensor) dist.Distribution { return dist.Normal(x, 1) },
		} {
			m := func(c *ppl.Ctx) {
				rows := c.Sample("rows", dist.Dirichlet(torch.Zeros(3, 3).Add(1.5)))
				scale := c.Sample("scale", dist.LogNormal(0, 1).Expand(many, 3))
				z := torch.Of(0)
				c.Markov(n, func(c *ppl.Ctx, t int) {
					z = c.Sample("z", dist.Categorical(rows.Take(z)))
					for k := range many {
						c.Observe(fmt.Sprint("y", k), of(scale.At(k).Take(z)), c.Data(fmt.Sprint("y", k)).At(t))
					}
				})
			}
			batch := infer.Batch{}
			for k := range many {
				batch[fmt.Sprint("y", k)] = vec(y...)
			}
			r := compiledReport(t, m, batch)
			require.Positive(t, r.OverTime, "%d %s: %v", many, name, r)
			require.Less(t, r.Loops, 2*n, "%d %s: %v", many, name, r) // a loop for each step would be more
		}
	}
}
