// Command latent compares ppl.MarginalLaplace with NUTS on all variables, in turns: a Gaussian process with counts at
// 100 inputs, and a map of 100 areas with BYM2. With -areas it fits counts of that many areas by MarginalLaplace alone,
// and says how long that takes.
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
	draws := flag.Int("draws", 2000, "draws of each chain")
	rounds := flag.Int("rounds", 2, "how often both are run, in turns")
	seed := flag.Uint64("seed", 1, "of the runs")
	flag.Parse()
	var err error
	if *areas > 0 {
		err = large(*areas, *draws, *seed)
	} else {
		err = both(*draws, *rounds, *seed)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func both(n, rounds int, seed uint64) error {
	for _, p := range []problem{process(), bym2(10, 10)} {
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
		var times, rates [2]float64
		var last [2]*draws.Draws
		for round := range rounds {
			for k, program := range []*ppl.Program{whole, marginal} {
				began := time.Now()
				o := infer.Options{Draws: n, Seed: seed + uint64(round), Observer: infer.Silent}
				if last[k], err = infer.Sample(context.Background(), program, hmc.NUTS{TargetAccept: 0.9}, o); err != nil {
					return err
				}
				seconds := time.Since(began).Seconds()
				least := leastESS(last[k], p.compare)
				times[k] += seconds
				rates[k] += least / seconds / float64(rounds)
				fmt.Printf("  %-16s %7.1f s, least effective sample size %6.0f\n", []string{"NUTS on all", "MarginalLaplace"}[k],
					seconds, least)
			}
		}
		worst, at := differ(last, p.compare)
		fmt.Printf("  ratio of times %.1f, of effective draws in a second %.1f; means differ by %.3f sd at most, of %s\n",
			times[0]/times[1], rates[1]/rates[0], worst, at)
	}
	return nil
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

// differ is the largest difference of two means in standard deviations of the first.
func differ(d [2]*draws.Draws, sites []string) (worst float64, at string) {
	for _, name := range sites {
		a, b := columns(d[0], name), columns(d[1], name)
		for i := range a {
			m, s := moments(a[i])
			n, _ := moments(b[i])
			if off := math.Abs(m-n) / s; off > worst {
				worst, at = off, fmt.Sprintf("%s[%d]", name, i)
			}
		}
	}
	return worst, at
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
	began = time.Now()
	o := infer.Options{Chains: 2, Warmup: 200, Draws: n, Seed: seed, Observer: infer.Silent}
	r, err := infer.Run(context.Background(), program, hmc.NUTS{}, o)
	if err != nil {
		return err
	}
	fmt.Printf("2 chains of 200 and %d draws: %.0f s, %d gradients\n", n, time.Since(began).Seconds(), r.Gradients)
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
