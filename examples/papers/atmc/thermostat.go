package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/examples/internal/classify"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// reading is what the thermostats were after an update. Frictions are over the one that was set, D.
type reading struct {
	Update   int     `json:"update"`
	Friction float64 `json:"friction"` // the least that the sampler applies to an element
	Xi       float64 `json:"xi"`       // the least thermostat ξ
	Negative float64 `json:"negative"` // the share of elements whose friction is below 0
}

// thermostat is an observer that reads the frictions of SGNHT and ATMC after every so many updates. Its readings are in
// a file beside the checkpoint, so that a run that goes on has those from before: an update is told of, and its reading
// is written, before there is a checkpoint of it.
type thermostat struct {
	path     string
	every    int
	friction float64 // D
	readings []reading
	err      error
}

func newThermostat(dir string, every int, friction float64) (*thermostat, error) {
	h := &thermostat{path: filepath.Join(dir, "frictions.json"), every: every, friction: friction}
	text, err := os.ReadFile(h.path)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &h.readings)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w: remove the folder to start this run again", h.path, err)
	}
	return h, err
}

// Observe reads the frictions where it is time.
func (h *thermostat) Observe(p infer.Progress) {
	if h.err != nil || p.Step%h.every != 0 {
		return
	}
	r, ok, err := read(p.State, h.friction)
	if h.err = err; !ok || err != nil {
		return
	}
	// A run that goes on from its checkpoint makes again what came after it.
	for n := len(h.readings); n > 0 && h.readings[n-1].Update >= p.Step; n-- {
		h.readings = h.readings[:n-1]
	}
	r.Update = p.Step
	h.readings = append(h.readings, r)
	if h.err = os.MkdirAll(filepath.Dir(h.path), 0o755); h.err == nil {
		h.err = classify.WriteJSON(h.path, h.readings)
	}
}

// read is false for a sampler without thermostats.
func read(state infer.State, friction float64) (r reading, ok bool, err error) {
	var xi, applied []float64
	switch s := state.(type) {
	case sgmcmc.SGNHTState:
		xi, err = torch.ToSlice[float64](s.Xi)
		applied = xi
	case sgmcmc.ATMCState:
		if xi, err = torch.ToSlice[float64](s.Xi); err == nil {
			applied, err = applies(friction, xi)
		}
	default:
		return r, false, nil
	}
	r.Friction, r.Xi = math.Inf(1), math.Inf(1)
	for i, v := range applied {
		r.Friction, r.Xi = min(r.Friction, v/friction), min(r.Xi, xi[i]/friction)
		if v < 0 {
			r.Negative += 1 / float64(len(applied))
		}
	}
	return r, true, err
}

// applies are the frictions of ATMC with thermostats ξ, measured: without a gradient, noise and a limit on the speed an
// update takes momenta p to e⁻ᵇʰ p, so that b = −log(p'/p)/h is what the sampler applies, whatever it should.
func applies(friction float64, xi []float64) (b []float64, err error) {
	err = torch.Do(func(*torch.Scope) error {
		n := len(xi)
		layout, err := infer.NewLayout(infer.Shapes{"x": {n}})
		if err != nil {
			return err
		}
		p, err := infer.NewParams(layout, make([]float64, n))
		if err != nil {
			return err
		}
		ones := ts.MustOnes([]int64{int64(n)}, gotch.Double, torch.CPU)
		h := 0.1 / friction
		flat := infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
			return p.Flat.Sum().Mul(0), nil
		}, 1)
		transform, err := sgmcmc.ATMC{LR: infer.Constant(h), Friction: infer.Constant(friction),
			Temperature: infer.Constant(0), Momenta: torch.Of(ones)}.Build(flat)
		if err != nil {
			return err
		}
		state, err := infer.Init(transform, p, 1)
		if err != nil {
			return err
		}
		s := state.(sgmcmc.ATMCState)
		if s.Xi, err = torch.FromSlice(xi); err != nil {
			return err
		}
		next, _, err := transform.Update(s, nil)
		if err != nil {
			return err
		}
		if b, err = torch.ToSlice[float64](next.(sgmcmc.ATMCState).Momenta); err != nil {
			return err
		}
		for i, left := range b {
			b[i] = -math.Log(left) / h
		}
		return nil
	})
	return b, err
}
