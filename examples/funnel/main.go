// Command funnel is the program of docs/tutorials/2-hierarchical-models.md: a hierarchical model in its centred and its
// non-centred form, with weak and with strong data.
//
//	go run ./examples/funnel [-pictures DIR]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/diag/plot"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

var pictures = flag.String("pictures", "", "a folder for the pictures; none are drawn without it")

// centred is a population of schools: mean mu, spread tau, and an effect theta of each school.
func centred(c *ppl.Ctx) {
	mu := c.Sample("mu", dist.Normal(0, 5))
	tau := c.Sample("tau", dist.HalfCauchy(5))
	c.Deterministic("log_tau", tau.Log())
	c.Plate("schools", 0, func(c *ppl.Ctx) {
		theta := c.Sample("theta", dist.Normal(mu, tau))
		c.Observe("y", dist.Normal(theta, c.Data("sigma")), c.Data("y"))
	})
}

// nonCentred is the same model, written as theta = mu + tau z with z ~ N(0, 1).
var nonCentred = ppl.Reparam(centred, map[string]ppl.Reparameterisation{"theta": ppl.NonCentred})

// The effects that eight schools measured, and their standard errors (Rubin 1981).
var (
	effects = []float64{28, 8, -3, 7, -1, 1, 18, 12}
	errors  = []float64{15, 10, 16, 11, 9, 11, 10, 18}
)

// batch are the data, with the standard errors times a factor.
func batch(factor float64) (infer.Batch, error) {
	sigma := slices.Clone(errors)
	for i := range sigma {
		sigma[i] *= factor
	}
	y, err := torch.FromSlice(effects)
	if err != nil {
		return nil, err
	}
	s, err := torch.FromSlice(sigma)
	return infer.Batch{"y": y, "sigma": s}, err
}

// attempt is a row of the table.
type attempt struct {
	name   string
	model  ppl.Model
	method infer.Method
	factor float64 // of the standard errors
	misses bool    // a part of the posterior, so that no figure says what the draws are worth
}

var attempts = []attempt{
	{"centred", centred, hmc.NUTS{}, 1, true},
	{"centred, 0.99", centred, hmc.NUTS{TargetAccept: 0.99}, 1, true},
	{"non-centred, 0.95", nonCentred, hmc.NUTS{TargetAccept: 0.95}, 1, false},
	{"centred", centred, hmc.NUTS{}, 0.1, false},
	{"non-centred", nonCentred, hmc.NUTS{}, 0.1, false},
}

func run(ctx context.Context) error {
	posteriors, err := table(ctx, os.Stdout)
	if err != nil {
		return err
	}
	if _, err := groups(ctx, os.Stdout); err != nil || *pictures == "" {
		return err
	}
	return draw(*pictures, posteriors)
}

// table prints what each attempt finds, and returns their draws.
func table(ctx context.Context, out io.Writer) ([]*draws.Draws, error) {
	var posteriors []*draws.Draws
	for i, a := range attempts {
		if i == 0 || a.factor != attempts[i-1].factor {
			mean, small := exact(a.factor)
			fmt.Fprintf(out, "standard errors times %v\n", a.factor)
			fmt.Fprintf(out, "%-17s mean of tau    P(tau < 0.5)    effective draws of 1000 gradients\n", "")
			fmt.Fprintf(out, "%-17s %5.2f          %.3f\n", "exact", mean, small)
		}
		data, err := batch(a.factor)
		if err != nil {
			return nil, err
		}
		program, err := ppl.Compile(a.model, data)
		if err != nil {
			return nil, err
		}
		posterior, err := infer.Sample(ctx, program, a.method, infer.Options{Seed: 10})
		if err != nil {
			return nil, err
		}
		r, err := judge(posterior)
		if err != nil {
			return nil, err
		}
		worth := "-"
		if !a.misses {
			worth = fmt.Sprintf("about %.0f", 1000*r.effective/r.gradients)
		}
		fmt.Fprintf(out, "%-17s %5.2f ± %.2f   %.3f ± %.3f   %s\n", a.name, r.tau, r.tauError, r.small, r.smallError, worth)
		posteriors = append(posteriors, posterior)
		if i == 2 {
			for _, k := range []int{0, 2} {
				if err := trust(out, attempts[k].name, posteriors[k]); err != nil {
					return nil, err
				}
			}
		}
	}
	return posteriors, nil
}

// trust prints whether draws can be trusted: what says the most against them, with advice.
func trust(out io.Writer, name string, posterior *draws.Draws) error {
	report, err := diag.Diagnose(posterior, diag.DiagnoseOptions{})
	if err != nil {
		return err
	}
	if report.OK() {
		fmt.Fprintf(out, "%s: no problems found\n", name)
		return nil
	}
	worst := report.Findings[0] // the serious ones come first; fmt.Print(report) has all of them
	fmt.Fprintf(out, "%s: %v: %s\n  %s\n", name, worst.Severity, worst.Code, worst.Advice)
	return nil
}

// result is what draws say of tau: its mean and the probability that it is below 0.5, with Monte-Carlo errors, and the
// effective draws of its mean.
type result struct {
	divergent                        int
	tau, tauError, small, smallError float64
	effective, gradients             float64
}

func judge(posterior *draws.Draws) (result, error) {
	var r result
	site, err := posterior.Site("tau")
	if err != nil {
		return r, err
	}
	tau, small := make([][]float64, posterior.Chains()), make([][]float64, posterior.Chains())
	for c := range tau {
		tau[c] = posterior.Element(c, site.Offset)
		for _, v := range tau[c] {
			below := 0.0
			if v < 0.5 {
				below = 1
			}
			small[c] = append(small[c], below)
			r.tau += v / float64(posterior.Total())
			r.small += below / float64(posterior.Total())
		}
		divergent, err := posterior.Stat(draws.StatDivergent, c)
		if err != nil {
			return r, err
		}
		leapfrogs, err := posterior.Stat(draws.StatLeapfrog, c)
		if err != nil {
			return r, err
		}
		for s := range divergent {
			r.divergent += int(divergent[s])
			r.gradients += leapfrogs[s]
		}
	}
	r.tauError, r.smallError = diag.MCSEMean(tau), diag.MCSEMean(small)
	if math.IsNaN(r.smallError) {
		r.smallError = 0 // none or all of the draws are below
	}
	r.effective = diag.ESSMean(tau)
	return r, nil
}

// exact is the mean of tau and the probability that it is below 0.5. Given tau, mu and theta are normal and can be
// integrated out: y_j ~ N(mu, s_j²) with s_j² = sigma_j² + tau², and mu ~ N(0, 25). What is left is a sum over tau.
func exact(factor float64) (mean, small float64) {
	all := 0.0
	for i := range 40000 {
		tau := 0.005 * (float64(i) + 0.5) // up to 200
		a, b, logp := 1/25., 0.0, -math.Log1p(tau*tau/25)
		for j, y := range effects {
			s2 := factor*factor*errors[j]*errors[j] + tau*tau
			a, b, logp = a+1/s2, b+y/s2, logp-math.Log(s2)/2-y*y/s2/2
		}
		w := math.Exp(logp + b*b/a/2 - math.Log(a)/2)
		all, mean = all+w, mean+w*tau
		if tau < 0.5 {
			small += w
		}
	}
	return mean / all, small / all
}

// draw makes the pictures of the page: the first effect over log tau in both forms, and the effects.
func draw(dir string, posteriors []*draws.Draws) error {
	for _, p := range []struct {
		file string
		make func(f io.Writer) error
	}{
		{"2-centred.png", func(f io.Writer) error {
			return plot.Pair(f, posteriors[0], "theta[0]", "log_tau", plot.Options{Height: 4})
		}},
		{"2-non-centred.png", func(f io.Writer) error {
			return plot.Pair(f, posteriors[2], "theta[0]", "log_tau", plot.Options{Height: 4})
		}},
		{"2-effects.png", func(f io.Writer) error {
			effects, err := posteriors[2].Select("mu", "theta")
			if err != nil {
				return err
			}
			return plot.Forest(f, effects, nil, plot.Options{Height: 3.5})
		}},
	} {
		if err := command.Picture(filepath.Join(dir, p.file), p.make); err != nil {
			return err
		}
	}
	return nil
}

func main() { command.Main("funnel", run) }
