// Command series fits a level that wanders to the flow of the Nile from 1871 to 1970, with the years of the first
// world war taken away, and forecasts the ten years behind. It draws a picture.
//
//	go run ./examples/series
package main

import (
	"context"
	"flag"
	"fmt"
	"image/color"
	"io"
	"math"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/statespace"
	"github.com/kelvin-ppl/kelvin/examples/internal/bands"
	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// nile is the flow at Aswan in each year from 1871 to 1970, in 10⁸ m³ (Cobb 1978, Biometrika 65, 243–251, table 1).
var nile = []float64{
	1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958, 1140,
	1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969,
	831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759,
	781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890,
	744, 749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740,
}

const (
	firstYear = 1871
	ahead     = 10
)

var picture = flag.String("plot", "", "write a picture to this PNG `file`")

// river is the flow of a river as a level that wanders, seen through noise.
func river(c *ppl.Ctx) statespace.Series {
	noise := c.Sample("noise", dist.HalfNormal(200))
	wander := c.Sample("wander", dist.HalfNormal(100))
	return statespace.New(100, noise, statespace.LocalLevel{Scale: wander, Mean: 1000, Spread: 500})
}

// flow is the model: a year that was not measured is NaN.
func flow(c *ppl.Ctx) {
	c.Observe("flow", river(c), c.Data("flow"))
}

// outlook is what follows from a draw of flow: the level in each year, and the flow of the ten years behind. They are
// not in the batch, so that a Predictive draws them.
func outlook(c *ppl.Ctx) {
	series := river(c)
	mean, variance := series.Smoothed(c.Data("flow"))
	c.Observe("level", dist.Normal(mean.Squeeze(-1), variance.Reshape(100).Sqrt()), c.Data("level"))
	c.Observe("next", series.Forecast(c.Data("flow"), ahead), c.Data("next"))
}

func run(ctx context.Context) error {
	y := append([]float64{}, nile...)
	for year := 1914; year <= 1918; year++ {
		y[year-firstYear] = math.NaN()
	}
	batch := infer.Batch{"flow": torch.New(y)}
	program, err := ppl.Compile(flow, batch)
	if err != nil {
		return err
	}
	posterior, err := infer.Sample(ctx, program, hmc.NUTS{}, infer.Options{Seed: 1})
	if err != nil {
		return err
	}
	fmt.Println("gradient:", posterior.Attrs()["gradient"])
	summary, err := diag.Summary(posterior, diag.SummaryOptions{})
	if err != nil {
		return err
	}
	fmt.Print(summary)
	values, err := ppl.Predictive{Model: outlook, Batch: batch, Seed: 2, Sites: []string{"level", "next"}}.
		Posterior(posterior)
	if err != nil {
		return err
	}
	level, err := bands.Of(values["level"])
	if err != nil {
		return err
	}
	next, err := bands.Of(values["next"])
	if err != nil {
		return err
	}
	for _, year := range []int{1880, 1916, 1960} {
		at := level[year-firstYear]
		fmt.Printf("level in %d: %.0f, 90 %% from %.0f to %.0f\n", year, at.Middle, at.Low, at.High)
	}
	for _, k := range []int{0, ahead - 1} {
		fmt.Printf("flow in %d: %.0f, 90 %% from %.0f to %.0f\n", firstYear+len(nile)+k, next[k].Middle, next[k].Low,
			next[k].High)
	}
	if *picture == "" {
		return nil
	}
	blue, red := color.NRGBA{B: 200, A: 255}, color.NRGBA{R: 200, A: 255}
	return command.Picture(*picture, func(file io.Writer) error {
		return bands.Draw(file, "Flow of the Nile at Aswan", "10⁸ m³", firstYear, y,
			bands.Band{Name: "level", From: firstYear, Color: blue, At: level},
			bands.Band{Name: "forecast", From: firstYear + len(nile), Color: red, At: next})
	})
}

func main() { command.Main("series", run) }
