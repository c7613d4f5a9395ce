package survival_test

import (
	"context"
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/models/survival"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Weeks in remission of 42 children with leukaemia, 21 on the drug 6-MP and 21 on a placebo (Freireich et al. 1963, as
// in Gehan 1965). A minus stands for a child that was still in remission when it was last seen.
var (
	drug    = []float64{6, 6, 6, -6, 7, -9, 10, -10, -11, 13, 16, -17, -19, -20, 22, 23, -25, -32, -32, -34, -35}
	placebo = []float64{1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23}
)

// remission is the batch of the models below: the times, where they are cut off, and who had the placebo. followed has
// the times and who relapsed.
func remission() (batch infer.Batch, followed survival.Cox) {
	var time, cut, control []float64
	for group, weeks := range [][]float64{drug, placebo} {
		for _, w := range weeks {
			end := math.Inf(1) // not cut off
			if w < 0 {
				end = -w
			}
			time, cut, control = append(time, math.Abs(w)), append(cut, end), append(control, float64(group))
			followed.Time = append(followed.Time, math.Abs(w))
			followed.Event = append(followed.Event, w > 0)
		}
	}
	return infer.Batch{"time": torch.New(time), "cut": torch.New(cut), "control": torch.New(control)}, followed
}

// weibull is a regression of accelerated failure times: the placebo multiplies all times by exp(effect).
func weibull(c *ppl.Ctx) {
	intercept := c.Sample("intercept", dist.Normal(3, 2))
	effect := c.Sample("effect", dist.Normal(0, 2))
	sigma := c.Sample("sigma", dist.HalfNormal(2))
	scale := intercept.Add(effect.Mul(c.Data("control"))).Exp()
	law := dist.Weibull(scale, sigma.Reciprocal())
	c.Observe("time", dist.Censored(law, 0, c.Data("cut")), c.Data("time"))
}

// cox leaves the hazard that all have open, and compares the two groups.
func cox(followed survival.Cox) ppl.Model {
	return func(c *ppl.Ctx) {
		effect := c.Sample("effect", dist.Normal(0, 2))
		c.Factor("time", followed.LogPartial(effect.Mul(c.Data("control"))))
	}
}

// The published estimates are by maximum likelihood: -1.27 with a standard error of 0.31 for the first, 1.57 and 0.41
// for the second (Venables and Ripley 2002).
func Example() {
	batch, followed := remission()
	for _, m := range []struct {
		name  string
		model ppl.Model
	}{{"Weibull", weibull}, {"Cox", cox(followed)}} {
		program, err := ppl.Compile(m.model, batch)
		if err != nil {
			fmt.Println(err)
			return
		}
		draws, err := infer.Sample(context.Background(), program, hmc.NUTS{}, infer.Options{Seed: 1, Draws: 2000})
		if err != nil {
			fmt.Println(err)
			return
		}
		summary, err := diag.Summary(draws, diag.SummaryOptions{})
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, row := range summary.Rows {
			if row.Name == "effect" {
				fmt.Printf("%s: %.1f ± %.1f\n", m.name, row.Mean, row.SD)
			}
		}
	}
	// Output:
	// Weibull: -1.3 ± 0.3
	// Cox: 1.6 ± 0.4
}
