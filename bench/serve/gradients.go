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
	c := models.LogisticRegression{}
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
func gradients(ctx context.Context, out io.Writer) error {
	schools, err := models.EightSchools()
	if err != nil {
		return err
	}
	regression, err := pima()
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("model  Go µs  to the machine in C  to compiled C  NUTS in Go s  to the library's\n")
	for _, m := range []models.Model{schools, regression} {
		row, err := beside(ctx, m)
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		b.WriteString(row)
	}
	_, err = io.WriteString(out, b.String())
	return err
}

// beside is the row of a model: fastest turns, each beside a turn of what it is compared with.
func beside(ctx context.Context, m models.Model) (string, error) {
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
	seconds, err := nuts(ctx, loaded, program)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s  %.2f  %.1f  %.1f  %.2f  %.1f\n", m.Name, least/1e3, ratios[0], ratios[1], seconds[0],
		seconds[0]/seconds[1]), nil
}

// nuts is how long NUTS takes, in Go and in the library: the fastest of three turns.
func nuts(ctx context.Context, loaded *serve.Model, program infer.Program) (seconds [2]float64, err error) {
	seconds = [2]float64{math.Inf(1), math.Inf(1)}
	for seed := range uint64(3) {
		for i, run := range []func() error{
			func() error { _, err := serve.Sample(ctx, loaded, kernel.Options{Seed: seed}); return err },
			func() error {
				_, err := infer.Sample(ctx, program, hmc.NUTS{}, infer.Options{Seed: seed, Observer: infer.Silent})
				return err
			},
		} {
			began := time.Now()
			if err := run(); err != nil {
				return seconds, err
			}
			seconds[i] = min(seconds[i], time.Since(began).Seconds())
		}
	}
	return seconds, nil
}
