// Command latent compares ppl.MarginalLaplace with NUTS on all variables, in turns: a Gaussian process with counts at
// 100 inputs, and a map of side x side areas with BYM2. NUTS on all has a target of 0.9, as it diverges more often with
// the default, a warm-up of 1,000 and full draws of each of 4 chains; NUTS on the few parameters that MarginalLaplace
// leaves has the default, a warm-up of 300 and the given draws. What counts is the time of processors for each
// effective draw of the worst element, warm-up included, and by how much means differ, with the standard error of that.
// With -areas it fits counts of that many areas by MarginalLaplace alone, and says how long that takes.
//
//	go run ./bench/latent
//	go run ./bench/latent -areas 10000
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/models/gp"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// problem is one model in both forms, whose sites have the same names.
type problem struct {
	name        string
	full, field ppl.Model
	site        string // of the field
	batch       infer.Batch
	compare     []string
}

func main() {
	areas := flag.Int("areas", 0, "number of areas of a map to fit by MarginalLaplace alone")
	of := flag.String("of", "both", "process, map or both")
	side := flag.Int("side", 10, "of the map that both fit")
	full := flag.Int("full", 2000, "draws of each chain of NUTS on all")
	draws := flag.Int("draws", 1000, "draws of each chain of MarginalLaplace; with -areas 250 are enough")
	rounds := flag.Int("rounds", 2, "how often both are run, in turns")
	seed := flag.Uint64("seed", 1, "of the runs")
	flag.Parse()
	err := error(nil)
	switch {
	case *areas > 0:
		err = large(*areas, *draws, *seed)
	default:
		if *of != "map" {
			err = both(process(), [2]int{*full, *draws}, *rounds, *seed)
		}
		if *of != "process" && err == nil {
			err = both(bym2(*side, *side), [2]int{*full, *draws}, *rounds, *seed)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// both fits a problem both ways, in turns.
func both(p problem, n [2]int, rounds int, seed uint64) error {
	whole, err := ppl.Compile(p.full, p.batch)
	if err != nil {
		return err
	}
	began := time.Now()
	marginal, err := ppl.MarginalLaplace(p.field, p.batch, p.site)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n  MarginalLaplace takes %.1f s to compile\n", p.name, time.Since(began).Seconds())
	var times, effective [2]float64
	var runs [2][]*draws.Draws
	for round := range rounds {
		for k, program := range []*ppl.Program{whole, marginal} {
			began, used := time.Now(), processor()
			o := infer.Options{Warmup: []int{1000, 300}[k], Draws: n[k], Seed: seed + uint64(round), Observer: infer.Silent}
			r, err := infer.Run(context.Background(), program, hmc.NUTS{TargetAccept: []float64{0.9, 0.8}[k]}, o)
			if err != nil {
				return err
			}
			seconds, least := time.Since(began).Seconds(), leastESS(r.Draws, p.compare)
			used = processor() - used
			times[k] += used
			effective[k] += least
			runs[k] = append(runs[k], r.Draws)
			diverged, err := diverging(r.Draws)
			if err != nil {
				return err
			}
			fmt.Printf("  %-16s %6.1f s, of processors %6.1f s, %7d gradients, least effective sample size %5.0f, "+
				"%.0f divergences\n", []string{"NUTS on all", "MarginalLaplace"}[k], seconds, used, r.Gradients, least, diverged)
		}
	}
	rate := [2]float64{1000 * times[0] / effective[0], 1000 * times[1] / effective[1]}
	fmt.Printf("  seconds of processors for 1,000 effective draws: %.2f and %.2f, ratio %.1f\n", rate[0], rate[1],
		rate[0]/rate[1])
	differ(runs, p.compare)
	return nil
}

// processor is the time that processors have spent on this process, which other work does not change much.
func processor() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return math.NaN()
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) * 1e-9
}

// diverging is how many draws were divergent.
func diverging(d *draws.Draws) (sum float64, err error) {
	for chain := range d.Chains() {
		x, err := d.Stat(draws.StatDivergent, chain)
		if err != nil {
			return 0, err
		}
		for _, v := range x {
			sum += v
		}
	}
	return sum, nil
}

// leastESS is the least effective sample size of sites.
func leastESS(d *draws.Draws, sites []string) float64 {
	least := math.Inf(1)
	for _, name := range sites {
		for _, x := range columns(d, name) {
			least = min(least, diag.ESSBulk(x))
		}
	}
	return least
}

// columns are the chains of each element of a site.
func columns(d *draws.Draws, name string) [][][]float64 {
	values, err := d.Values(name)
	if err != nil {
		panic(err)
	}
	out := make([][][]float64, len(values[0][0]))
	for i := range out {
		for _, chain := range values {
			var x []float64
			for _, row := range chain {
				x = append(x, row[i])
			}
			out[i] = append(out[i], x)
		}
	}
	return out
}

// differ prints the largest differences of two means in standard deviations of the first, with their standard errors,
// and how many are how far apart.
func differ(runs [2][]*draws.Draws, sites []string) {
	type difference struct {
		off, se float64
		at      string
	}
	var all []difference
	for _, name := range sites {
		var mean, sd, ess [2][]float64
		for k, rounds := range runs {
			for _, d := range rounds {
				x := columns(d, name)
				if mean[k] == nil {
					mean[k], sd[k], ess[k] = make([]float64, len(x)), make([]float64, len(x)), make([]float64, len(x))
				}
				for i := range x {
					m, s := moments(x[i])
					mean[k][i] += m / float64(len(rounds))
					sd[k][i] += s / float64(len(rounds))
					ess[k][i] += diag.ESSBulk(x[i])
				}
			}
		}
		for i, s := range sd[0] {
			all = append(all, difference{(mean[1][i] - mean[0][i]) / s, math.Sqrt(1/ess[0][i] + 1/ess[1][i]),
				fmt.Sprintf("%s[%d]", name, i)})
		}
	}
	squares, worst := 0.0, all[0]
	for _, d := range all {
		squares += d.off * d.off / (d.se * d.se) / float64(len(all))
		if math.Abs(d.off) > math.Abs(worst.off) {
			worst = d
		}
	}
	fmt.Printf("  %d means differ by %.3f sd at most, of %s, with a standard error of %.3f; the mean square of "+
		"difference over standard error is %.2f\n", len(all), math.Abs(worst.off), worst.at, worst.se, squares)
	for _, d := range all {
		if strings.HasSuffix(d.at, "[0]") {
			fmt.Printf("    %-12s %+.3f ± %.3f\n", d.at, d.off, d.se)
		}
	}
}

func moments(chains [][]float64) (mean, sd float64) {
	n, squares := 0.0, 0.0
	for _, x := range chains {
		for _, v := range x {
			n++
			mean += v
			squares += v * v
		}
	}
	mean /= n
	return mean, math.Sqrt(squares/n - mean*mean)
}

// process is a Gaussian process of the logarithm of the rate of counts.
func process() problem {
	const n = 100
	source := rand.New(rand.NewPCG(4, 4))
	x, y := make([]float64, n), make([]float64, n)
	for i := range x {
		x[i] = 10 * float64(i) / n
		y[i] = poisson(math.Exp(2+math.Sin(x[i])+0.5*math.Cos(2.3*x[i])), source)
	}
	inputs := torch.New(x)
	torch.Detach(inputs)
	model := func(latent func(c *ppl.Ctx, p gp.Process) torch.Tensor) ppl.Model {
		return func(c *ppl.Ctx) {
			mean := c.Sample("mean", dist.Normal(2, 1))
			scale := c.Sample("scale", dist.HalfNormal(1))
			reach := c.Sample("reach", dist.LogNormal(0, 0.5))
			f := latent(c, gp.Process{Kernel: gp.SquaredExponential{Length: reach, Scale: scale}, X: inputs, Jitter: 1e-6})
			c.Observe("y", dist.PoissonLog(f.Add(mean)), c.Data("y"))
		}
	}
	return problem{name: "a Gaussian process with counts at 100 inputs", site: "f",
		full: model(func(c *ppl.Ctx, p gp.Process) torch.Tensor { return p.Latent(c, "f") }),
		field: model(func(c *ppl.Ctx, p gp.Process) torch.Tensor {
			return c.Sample("f", p.Marginal(0))
		}),
		batch: infer.Batch{"y": torch.New(y)}, compare: []string{"mean", "scale", "reach", "f"}}
}

// grid is the graph of a grid.
func grid(rows, columns int) *dist.Graph {
	g := &dist.Graph{Neighbours: make([][]int, rows*columns)}
	join := func(i, j int) {
		g.Neighbours[i], g.Neighbours[j] = append(g.Neighbours[i], j), append(g.Neighbours[j], i)
	}
	for i := range rows * columns {
		if (i+1)%columns > 0 {
			join(i, i+1)
		}
		if i+columns < rows*columns {
			join(i, i+columns)
		}
	}
	return g
}

// bym2 is a map of counts, of which about 10 are expected in each area.
func bym2(rows, columns int) problem {
	n := rows * columns
	graph := grid(rows, columns)
	source := rand.New(rand.NewPCG(7, 7))
	expected, y := make([]float64, n), make([]float64, n)
	for i := range n {
		r, c := float64(i/columns)/float64(rows), float64(i%columns)/float64(columns)
		expected[i] = 5 + 10*source.Float64()
		y[i] = poisson(expected[i]*math.Exp(0.4*math.Sin(5*r)*math.Cos(4*c)+0.2*source.NormFloat64()), source)
	}
	observe := func(c *ppl.Ctx, mean, effects torch.Tensor) {
		c.Observe("y", dist.PoissonLog(effects.Add(mean).Add(c.Data("expected").Log())), c.Data("y"))
	}
	priors := func(c *ppl.Ctx) (mean, scale, rho torch.Tensor) {
		return c.Sample("mean", dist.Normal(0, 1)), c.Sample("scale", dist.HalfNormal(1)), c.Sample("rho", dist.Beta(1, 1))
	}
	shrink := 1.0
	if n <= 4096 {
		v := graph.BYM2(1, 0.5).Variance().Slice(0, n, 2*n).Values()
		u := graph.ICAR(1).Variance().Values()
		shrink = math.Sqrt(v[0] / u[0])
	}
	return problem{name: fmt.Sprintf("a map of %d areas with BYM2", n), site: "b",
		full: func(c *ppl.Ctx) { // not centred
			mean, scale, rho := priors(c)
			u := c.Sample("u", graph.ICAR(1)).Mul(shrink)
			v := c.Sample("v", dist.Normal(0, 1).Expand(n))
			b := u.Mul(rho.Sqrt()).Add(v.Mul(rho.Neg().Add(1).Sqrt())).Mul(scale)
			c.Deterministic("effect", b)
			observe(c, mean, b)
		},
		field: func(c *ppl.Ctx) {
			mean, scale, rho := priors(c)
			b := c.Sample("b", graph.BYM2(scale, rho)).Slice(0, 0, n)
			c.Deterministic("effect", b)
			observe(c, mean, b)
		},
		batch:   infer.Batch{"y": torch.New(y), "expected": torch.New(expected)},
		compare: []string{"mean", "scale", "rho", "effect"}}
}

// large fits a map of many areas.
func large(areas, n int, seed uint64) error {
	side := int(math.Round(math.Sqrt(float64(areas))))
	p := bym2(side, side)
	began := time.Now()
	program, err := ppl.MarginalLaplace(p.field, p.batch, p.site)
	if err != nil {
		return err
	}
	fmt.Printf("a map of %d areas: %.1f s to compile\n", side*side, time.Since(began).Seconds())
	began, used := time.Now(), processor()
	o := infer.Options{Chains: 2, Warmup: 150, Draws: n, Seed: seed, Observer: infer.Silent}
	r, err := infer.Run(context.Background(), program, hmc.NUTS{}, o)
	if err != nil {
		return err
	}
	fmt.Printf("2 chains of 150 and %d draws: %.0f s, of processors %.0f s, %d gradients\n", n,
		time.Since(began).Seconds(), processor()-used, r.Gradients)
	s, err := r.Draws.Select("mean", "scale", "rho")
	if err != nil {
		return err
	}
	summary, err := diag.Summary(s, diag.SummaryOptions{})
	if err == nil {
		fmt.Print(summary)
	}
	return err
}

// poisson draws a count by the times between events.
func poisson(rate float64, source *rand.Rand) (count float64) {
	for t := source.ExpFloat64(); t < rate; t += source.ExpFloat64() {
		count++
	}
	return count
}
