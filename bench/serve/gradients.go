package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/kelvin-ppl/kelvin/bench"
	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/serve"
)

// pima is a logistic regression of the size of the Pima data, 768 x 8, on made-up data.
func pima() (models.Model, error) {
	rng := rand.New(rand.NewPCG(1, 2))
	c := models.LogisticRegression{NoIntercept: true}
	for range 768 {
		x := make([]float64, 8)
		for j := range x {
			x[j] = rng.NormFloat64()
		}
		c.X, c.Y = append(c.X, x), append(c.Y, float64(rng.IntN(2)))
	}
	m, err := c.Build()
	m.Name = "Pima, made up"
	return m, err
}

// gradients compares exports in Go with the virtual machine in C and with compiled C: a gradient, and a run of NUTS.
// Where there is a peer, Stan's NUTS runs too.
func gradients(ctx context.Context, out io.Writer, stan *stan) error {
	schools, err := models.EightSchools()
	if err != nil {
		return err
	}
	regression, err := pima()
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("model  Go µs  to the machine in C  to compiled C  NUTS in Go s  to the library's")
	if stan != nil {
		b.WriteString("  ESS/s to Stan's")
	}
	for _, m := range []models.Model{schools, regression} {
		row, err := beside(ctx, m, stan)
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		b.WriteString("\n" + row)
	}
	_, err = io.WriteString(out, b.String()+"\n")
	return err
}

// beside is the row of a model: fastest turns, each beside a turn of what it is compared with.
func beside(ctx context.Context, m models.Model, stan *stan) (string, error) {
	program, err := m.Compile()
	if err != nil {
		return "", err
	}
	var file bytes.Buffer
	if err := program.Export(&file); err != nil {
		return "", err
	}
	loaded, err := serve.Load(&file)
	if err != nil {
		return "", err
	}
	x, grad := make([]float64, loaded.Dim()), make([]float64, loaded.Dim())
	inGo := bench.Calls(func() error { loaded.LogDensity(x, grad); return nil })
	start, err := program.Start(program.Batch(), 2, 1)
	if err != nil {
		return "", err
	}
	least, ratios := math.Inf(1), []float64{}
	for _, tier := range []native.Tier{native.VM, native.C} {
		code, _, err := infer.Compile(program.Target().Summed(), start, program.Batch(), native.Options{Tier: tier})
		if err != nil {
			return "", err
		}
		inC := bench.Calls(func() error { _, err := code.Eval(x, 1, grad); return err })
		fastest, err := bench.Round(40, [2]bench.Side{inGo, inC}, [2]int{200, 200})
		if err != nil {
			return "", err
		}
		least, ratios = min(least, fastest[0]), append(ratios, fastest[0]/fastest[1])
	}
	runs, err := nuts(ctx, m, loaded, program, stan)
	if err != nil {
		return "", err
	}
	row := fmt.Sprintf("%s  %.2f  %.1f  %.1f  %.2f  %.1f", m.Name, least/1e3, ratios[0], ratios[1], runs[0].seconds,
		runs[0].seconds/runs[1].seconds)
	if stan != nil {
		row += fmt.Sprintf("  %.1f", runs[0].rate()/runs[2].rate())
	}
	return row, nil
}

// side is what runs of NUTS took: the seconds of the fastest, and the least effective draws of all.
type side struct{ seconds, all, ess float64 }

// rate is effective draws a second over all runs.
func (s side) rate() float64 { return s.ess / s.all }

func (s *side) add(seconds float64, chains map[string][][]float64) {
	least := math.Inf(1)
	for _, x := range chains {
		if ess := diag.ESSBulk(x); !(ess >= least) { // NaN is the least
			least = ess
		}
	}
	s.seconds, s.all, s.ess = min(s.seconds, seconds), s.all+seconds, s.ess+least
}

// nuts is what NUTS takes in Go, in the library, and Stan's: three turns.
func nuts(ctx context.Context, m models.Model, loaded *serve.Model, program infer.Program, stan *stan) ([3]side,
	error) {
	inf := math.Inf(1)
	sides := [3]side{{seconds: inf}, {seconds: inf}, {seconds: inf}}
	process, err := stan.start(ctx, m)
	if err != nil {
		return sides, err
	}
	if process != nil {
		defer process.Close()
	}
	for seed := range uint64(3) {
		for i, run := range []func() (*draws.Draws, error){
			func() (*draws.Draws, error) {
				r, err := serve.Sample(ctx, loaded, kernel.Options{Seed: seed})
				if err != nil {
					return nil, err
				}
				return r.Draws, nil
			},
			func() (*draws.Draws, error) {
				return infer.Sample(ctx, program, hmc.NUTS{}, infer.Options{Seed: seed, Observer: infer.Silent})
			},
		} {
			began := time.Now()
			drawn, err := run()
			if err != nil {
				return sides, err
			}
			seconds := time.Since(began).Seconds()
			all := map[string][][]float64{}
			for i, name := range drawn.Names() {
				for c := range drawn.Chains() {
					all[name] = append(all[name], drawn.Element(c, i))
				}
			}
			sides[i].add(seconds, all)
		}
		if process != nil {
			seconds, drawn, err := stan.sample(process, seed+1) // Stan has no seed 0
			if err != nil {
				return sides, err
			}
			sides[2].add(seconds, drawn)
		}
	}
	return sides, nil
}
