package main

import (
	"context"
	"time"

	"github.com/kelvin-ppl/kelvin/bench/internal/pima"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// chainRow is a model with many chains, on the device and in main memory.
type chainRow struct {
	Model  string `json:"model"`
	Chains int    `json:"chains"`
	Device speed  `json:"on_device"`
	CPU    speed  `json:"in_main_memory"`
	Error  string `json:"error,omitempty"`
}

// speed is that of one device.
type speed struct {
	Transition float64 `json:"transition_ms"`        // of NUTS, of all chains
	Gradients  float64 `json:"gradients_per_second"` // each of one chain, where all are asked for at once
}

// chains measures both models.
func (r *report) chains(ctx context.Context, o options) error {
	schools, err := models.EightSchools()
	if err != nil {
		return err
	}
	x, y, err := pima.Read(o.pima)
	if err != nil {
		return err
	}
	logistic, err := models.LogisticRegression{X: x, Y: y, NoIntercept: true}.Build()
	if err != nil {
		return err
	}
	logistic.Name = "pima"
	for _, m := range []models.Model{schools, logistic} {
		p, err := m.Compile()
		if err != nil {
			return err
		}
		row := chainRow{Model: m.Name, Chains: o.chains}
		if row.CPU, err = speedOf(ctx, p, o.chains, torch.CPU, o.seconds/2); err == nil {
			row.Device, err = speedOf(ctx, p, o.chains, o.device, o.seconds/2)
		}
		if err != nil {
			row.Error = err.Error()
		}
		r.Chains = append(r.Chains, row)
		if err != nil {
			return err
		}
	}
	return nil
}

// speedOf takes half of the time for gradients, and half for transitions at a fixed step size, after one of each that
// does not count.
func speedOf(ctx context.Context, p infer.Program, chains int, device gotch.Device, budget time.Duration) (s speed,
	err error) {
	g, start, batch, err := placed(p, chains, device, gotch.Double)
	if err != nil {
		return s, err
	}
	seconds, err := each(ctx, budget/2, func() error {
		return torch.Do(func(*torch.Scope) error {
			if _, err := g.ValueAndGrad(start, batch, 1); err != nil {
				return err
			}
			return torch.Synchronize()
		})
	})
	if err != nil {
		return s, err
	}
	s.Gradients = float64(chains) / seconds
	transform, err := hmc.NUTS{StepSize: infer.Constant(0.1), MaxDepth: 5, KeepMetric: true}.Build(p.Target())
	if err != nil {
		return s, err
	}
	state, err := infer.Init(transform, start, 4)
	if err != nil {
		return s, err
	}
	defer func() { infer.Free(state) }()
	seconds, err = each(ctx, budget/2, func() error {
		next, _, err := transform.Update(state, batch)
		if err != nil {
			return err
		}
		infer.Free(state)
		state = next
		return torch.Synchronize()
	})
	s.Transition = 1e3 * seconds
	return s, err
}

// each is the mean of the seconds of a call.
func each(ctx context.Context, budget time.Duration, call func() error) (float64, error) {
	if err := call(); err != nil {
		return 0, err
	}
	n, start := 0, time.Now()
	for n == 0 || time.Since(start) < budget {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if err := call(); err != nil {
			return 0, err
		}
		n++
	}
	return time.Since(start).Seconds() / float64(n), nil
}
