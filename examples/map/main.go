// Command map fits the counts of a disease in 400 simulated districts by BYM2 effects, which ppl.MarginalLaplace
// integrates out, and draws the counts over those expected beside the risks that the model finds and the true ones.
//
//	go run ./examples/map -plot map.png
package main

import (
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"math/rand/v2"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

const (
	side = 20
	n    = side * side
)

var picture = flag.String("plot", "", "write a picture to this PNG `file`")

// neighbours are the districts beside each other.
func neighbours() *dist.Graph {
	g := &dist.Graph{Neighbours: make([][]int, n)}
	for i := range n {
		for _, j := range []int{i - side, i - 1, i + 1, i + side} {
			if j >= 0 && j < n && (i/side == j/side || i%side == j%side) {
				g.Neighbours[i] = append(g.Neighbours[i], j)
			}
		}
	}
	return g
}

// simulated are cases, those expected, and the true risks: two hot spots, and what each district has of its own.
func simulated(seed uint64) (cases, expected, risk []float64) {
	source := rand.New(rand.NewPCG(seed, 0))
	for i := range n {
		r, c := float64(i/side)/side, float64(i%side)/side
		bump := func(y, x float64) float64 { return math.Exp(-((r-y)*(r-y) + (c-x)*(c-x)) / 0.04) }
		risk = append(risk, math.Exp(0.9*bump(0.3, 0.3)+0.7*bump(0.7, 0.8)-0.2+0.1*source.NormFloat64()))
		expected = append(expected, 2+8*source.Float64())
		count := 0.0
		for t := source.ExpFloat64(); t < expected[i]*risk[i]; t += source.ExpFloat64() {
			count++
		}
		cases = append(cases, count)
	}
	return cases, expected, risk
}

var districts = neighbours()

func disease(c *ppl.Ctx) {
	mean := c.Sample("mean", dist.Normal(0, 1))
	scale := c.Sample("scale", dist.HalfNormal(1))
	rho := c.Sample("rho", dist.Beta(1, 1)) // the share of the variance that neighbours share
	effects := c.Sample("effects", districts.BYM2(scale, rho)).Slice(0, 0, n)
	risk := c.Deterministic("risk", effects.Add(mean).Exp())
	c.Observe("cases", dist.Poisson(risk.Mul(c.Data("expected"))), c.Data("cases"))
}

func run(ctx context.Context) error {
	cases, expected, risk := simulated(1)
	batch := infer.Batch{"cases": torch.New(cases), "expected": torch.New(expected)}
	program, err := ppl.MarginalLaplace(disease, batch, "effects")
	if err != nil {
		return err
	}
	posterior, err := infer.Sample(ctx, program, hmc.NUTS{}, infer.Options{Warmup: 300, Draws: 250, Seed: 1})
	if err != nil {
		return err
	}
	hyper, err := posterior.Select("mean", "scale", "rho")
	if err != nil {
		return err
	}
	summary, err := diag.Summary(hyper, diag.SummaryOptions{})
	if err != nil {
		return err
	}
	fmt.Print(summary)
	found, ratio := make([]float64, n), make([]float64, n)
	chains, err := posterior.Values("risk")
	if err != nil {
		return err
	}
	for _, chain := range chains {
		for _, draw := range chain {
			for i, v := range draw {
				found[i] += v / float64(posterior.Total())
			}
		}
	}
	for i := range ratio {
		ratio[i] = cases[i] / expected[i]
	}
	fmt.Printf("error of log risk: %.2f by the model, %.2f by the counts alone\n", off(found, risk), off(ratio, risk))
	if *picture == "" {
		return nil
	}
	return command.Picture(*picture, func(w io.Writer) error { return maps(w, ratio, found, risk) })
}

// off is the root of the mean square of the difference of logarithms, of risks of at least 0.1.
func off(x, y []float64) float64 {
	sum := 0.0
	for i := range x {
		d := math.Log(max(x[i], 0.1) / y[i])
		sum += d * d
	}
	return math.Sqrt(sum / float64(len(x)))
}

// maps draws maps beside each other, from blue at a third of the expected cases over white to red at thrice as many.
func maps(w io.Writer, all ...[]float64) error {
	const cell, gap = 12, 16
	width := len(all)*(side*cell+gap) + gap
	m := image.NewNRGBA(image.Rect(0, 0, width, side*cell+2*gap))
	for y := range m.Rect.Dy() {
		for x := range width {
			m.Set(x, y, color.White)
			k, inside := (x-gap)/(side*cell+gap), (x-gap)%(side*cell+gap)
			row := (y - gap) / cell
			if x < gap || y < gap || inside >= side*cell || row >= side || k >= len(all) {
				continue
			}
			t := math.Log(max(all[k][row*side+inside/cell], 1e-3)) / math.Log(3)
			fade := uint8(255 * (1 - min(math.Abs(t), 1)))
			shade := color.NRGBA{R: 255, G: fade, B: fade, A: 255}
			if t < 0 {
				shade = color.NRGBA{R: fade, G: fade, B: 255, A: 255}
			}
			m.Set(x, y, shade)
		}
	}
	return png.Encode(w, m)
}

func main() { command.Main("map", run) }
