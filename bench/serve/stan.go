package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/kelvin-ppl/kelvin/bench/internal/peer"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/torch"
)

// stan runs Stan programs of models; nil runs none.
type stan struct {
	environments *peer.Environments
	dir          string
}

// newStan installs Stan where it is not there yet.
func newStan(ctx context.Context, venv, python, dir string) (*stan, error) {
	e, err := peer.Prepare(ctx, venv, python, os.Stderr)
	if err != nil {
		return nil, err
	}
	return &stan{e, dir}, e.Install(ctx, peer.Groups[0])
}

// start compiles the program of a model with its data.
func (s *stan) start(ctx context.Context, m models.Model) (*peer.Process, error) {
	if s == nil {
		return nil, nil
	}
	var data peer.Request
	program := "eight_schools_noncentered"
	y, err := torch.ToSlice[float64](m.Batch["y"])
	if err != nil {
		return nil, err
	}
	if x, ok := m.Batch["x"]; ok {
		rows, err := matrix(x)
		if err != nil {
			return nil, err
		}
		labels := make([]int, len(y))
		for i, v := range y {
			labels[i] = int(v)
		}
		program, data = "logistic", peer.Request{"N": len(y), "D": len(rows[0]), "X": rows, "y": labels}
	} else {
		sigma, err := torch.ToSlice[float64](m.Batch["sigma"])
		if err != nil {
			return nil, err
		}
		data = peer.Request{"J": len(y), "y": y, "sigma": sigma}
	}
	text, err := peer.Programs.ReadFile("stan/" + program + ".stan")
	if err != nil {
		return nil, err
	}
	process, err := s.environments.Start(ctx, peer.Groups[0])
	if err != nil {
		return nil, err
	}
	if _, err = process.Ask("compile", peer.Request{"code": string(text), "data": data}, 15*time.Minute); err != nil {
		process.Close()
		return nil, err
	}
	return process, nil
}

// sample is a run with the defaults of Kelvin's: 4 chains of 1000 + 1000 transitions.
func (s *stan) sample(p *peer.Process, seed uint64) (float64, map[string][][]float64, error) {
	file := filepath.Join(s.dir, "draws")
	a, err := p.Ask("sample", peer.Request{"sampler": "stan", "chains": 4, "warmup": 1000, "draws": 1000, "seed": seed,
		"accept": 0.8, "file": file}, 5*time.Minute)
	if err != nil {
		return 0, nil, err
	}
	drawn, err := peer.ReadDraws(file, a)
	return a.Seconds, drawn, err
}

// matrix is the rows of a tensor.
func matrix(x torch.Tensor) ([][]float64, error) {
	all, err := torch.ToSlice[float64](x)
	if err != nil {
		return nil, err
	}
	rows := make([][]float64, x.Shape()[0])
	for i := range rows {
		d := len(all) / len(rows)
		rows[i] = all[i*d : (i+1)*d]
	}
	return rows, nil
}
