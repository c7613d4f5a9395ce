// Command gp fits Gaussian processes to the carbon dioxide in the air at Mauna Loa in each year from 1959 to 1988, and
// predicts the ten years behind, which it compares with what was measured. It draws a picture.
//
//	go run ./examples/gp
package main

import (
	"context"
	"flag"
	"fmt"
	"image/color"
	"io"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/examples/internal/bands"
	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/models/gp"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// carbon are the annual means of CO₂ at Mauna Loa from 1959 to 1998 in parts per million (NOAA Global Monitoring
// Laboratory, co2_annmean_mlo.txt, whose figures are freely available; until 1974 by C. D. Keeling, Scripps
// Institution of Oceanography).
var carbon = []float64{
	315.98, 316.91, 317.64, 318.45, 318.99, 319.62, 320.04, 321.37, 322.18, 323.05,
	324.62, 325.68, 326.32, 327.46, 329.68, 330.19, 331.13, 332.03, 333.84, 335.41,
	336.84, 338.76, 340.12, 341.48, 343.15, 344.87, 346.35, 347.61, 349.31, 351.69,
	353.20, 354.45, 355.70, 356.54, 357.21, 358.96, 360.97, 362.74, 363.88, 366.84,
}

const (
	firstYear = 1959
	known     = 30 // years that are fitted
)

var picture = flag.String("plot", "", "write a picture to this PNG `file`")

// air is a straight line, and what departs from it smoothly. Years are decades from 1974; numbers are above 330 ppm.
func air(c *ppl.Ctx) (gp.Process, torch.Tensor) {
	kernel := gp.Sum(
		gp.Linear{Scale: c.Sample("slope", dist.HalfNormal(20))},
		gp.SquaredExponential{
			Scale: c.Sample("scale", dist.HalfNormal(10)), Length: c.Sample("length", dist.InverseGamma(3, 4)),
		},
	)
	return gp.Process{Kernel: kernel, X: c.Data("decade")}, c.Sample("noise", dist.HalfNormal(1))
}

func fitted(c *ppl.Ctx) {
	f, noise := air(c)
	c.Observe("y", f.Marginal(noise), c.Data("y"))
}

// outlook draws the process at all years, given what is known.
func outlook(c *ppl.Ctx) {
	f, noise := air(c)
	c.Observe("f", f.Given(c.Data("known"), noise, c.Data("all"), nil), c.Data("f"))
}

func run(ctx context.Context) error {
	var decades, y []float64
	for i, ppm := range carbon {
		decades, y = append(decades, float64(firstYear+i-1974)/10), append(y, ppm-330)
	}
	vector := func(x []float64) infer.Batch {
		return infer.Batch{"x": torch.New(x)}
	}
	decade, seen, all := vector(decades[:known])["x"], vector(y[:known])["x"], vector(decades)["x"]
	program, err := ppl.Compile(fitted, infer.Batch{"decade": decade, "y": seen})
	if err != nil {
		return err
	}
	posterior, err := infer.Sample(ctx, program, hmc.NUTS{}, infer.Options{Seed: 1})
	if err != nil {
		return err
	}
	summary, err := diag.Summary(posterior, diag.SummaryOptions{})
	if err != nil {
		return err
	}
	fmt.Print(summary)
	batch := infer.Batch{"decade": decade, "known": seen, "all": all}
	values, err := ppl.Predictive{Model: outlook, Batch: batch, Seed: 2, Sites: []string{"f"}}.Posterior(posterior)
	if err != nil {
		return err
	}
	f, err := bands.Of(values["f"])
	if err != nil {
		return err
	}
	inside := 0
	for i := known; i < len(carbon); i++ {
		low, high := 330+f[i].Low, 330+f[i].High
		if low <= carbon[i] && carbon[i] <= high {
			inside++
		}
		fmt.Printf("%d: predicted %.1f, 90 %% from %.1f to %.1f; measured %.1f\n",
			firstYear+i, 330+f[i].Middle, low, high, carbon[i])
	}
	fmt.Printf("%d of %d inside\n", inside, len(carbon)-known)
	if *picture == "" {
		return nil
	}
	for i := range f {
		f[i] = bands.Interval{Low: 330 + f[i].Low, Middle: 330 + f[i].Middle, High: 330 + f[i].High}
	}
	blue, red := color.NRGBA{B: 200, A: 255}, color.NRGBA{R: 200, A: 255}
	return command.Picture(*picture, func(file io.Writer) error {
		return bands.Draw(file, "Carbon dioxide at Mauna Loa", "ppm", firstYear, carbon,
			bands.Band{Name: "fitted", From: firstYear, Color: blue, At: f[:known]},
			bands.Band{Name: "predicted", From: firstYear + known, Color: red, At: f[known:]})
	})
}

func main() { command.Main("gp", run) }
