package main

import (
	"context"
	"embed"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/kelvin-ppl/kelvin/bench/internal/peer"
	"github.com/kelvin-ppl/kelvin/infer"
)

// programs are the targets as Stan programs; those of posteriordb and influenza are bench/peers'.
//
//go:embed stan
var programs embed.FS

// peerMethods are the samplers beside Kelvin's, by the names in the table and those of their program: Stan's NUTS with
// its windows and diagonal metric, nutpie's with the diagonal one of draws and gradients.
var peerMethods = []struct{ name, sampler string }{{"Stan", "stan"}, {"nutpie", "nutpie"}}

// peers run Stan programs.
type peers struct {
	environments *peer.Environments
	scratch      string
	patience     time.Duration // of a run
}

// newPeers installs Stan and nutpie where they are not there yet.
func newPeers(ctx context.Context, venv, python string, patience time.Duration, messages io.Writer) (*peers, error) {
	e, err := peer.Prepare(ctx, venv, python, messages)
	if err != nil {
		return nil, err
	}
	if err := e.Install(ctx, peer.Groups[0]); err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp("", "kelvin-robust")
	return &peers{e, scratch, patience}, err
}

// stanProgram is the text of a target's Stan program.
func stanProgram(name string) (string, error) {
	text, err := programs.ReadFile("stan/" + name + ".stan")
	if err != nil {
		text, err = peer.Programs.ReadFile("stan/" + name + ".stan")
	}
	return string(text), err
}

// start starts Stan's program with a target.
func (p *peers) start(ctx context.Context, target problem) (*peer.Process, error) {
	text, err := stanProgram(target.stan)
	if err != nil {
		return nil, err
	}
	data := target.data
	if data == nil {
		data = numbers{} // null is no data for Stan
	}
	process, err := p.environments.Start(ctx, peer.Groups[0])
	if err != nil {
		return nil, err
	}
	if _, err = process.Ask("compile", peer.Request{"code": text, "data": data}, 15*time.Minute); err != nil {
		process.Close()
		return nil, fmt.Errorf("%s.stan: %w", target.stan, err)
	}
	return process, nil
}

// measure runs a target's Stan program with all seeds on both sides. A process that fails is started anew.
func (p *peers) measure(ctx context.Context, s settings, t target, target problem, known truth) ([]row, error) {
	var process *peer.Process
	defer func() {
		if process != nil {
			process.Close()
		}
	}()
	var rows []row
	for _, m := range peerMethods {
		var runs []outcome
		for seed := range s.seeds {
			if process == nil {
				var err error
				if process, err = p.start(ctx, target); err != nil {
					return nil, err
				}
			}
			o := s.options
			o.Seed = seed + 1 // Stan has no seed 0
			got, err := p.sample(process, m.sampler, target, known, s.limit, o)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				got = lost(err.Error())
				process.Close()
				process = nil
			}
			runs = append(runs, got)
		}
		rows = append(rows, summarise(t.name, m.name, runs, target.bimodal))
	}
	return rows, nil
}

// sample is one run of a peer. That it failed is an outcome; an error is one of its process.
func (p *peers) sample(process *peer.Process, sampler string, target problem, known truth, limit int,
	o infer.Options) (outcome, error) {
	accept := target.accept
	if accept == 0 {
		accept = 0.8
	}
	file := filepath.Join(p.scratch, "draws")
	a, err := process.Ask("sample", peer.Request{"sampler": sampler, "chains": o.Chains, "warmup": o.Warmup,
		"draws": o.Draws, "seed": o.Seed, "accept": accept, "file": file}, p.patience)
	if err != nil {
		return outcome{}, err
	}
	made, err := peer.ReadDraws(file, a)
	if err != nil {
		return outcome{}, err
	}
	out := outcome{warmup: a.WarmupGradients / float64(o.Chains), all: a.WarmupGradients + a.Gradients}
	if out.all >= float64(limit) {
		return lost(fmt.Sprintf("more than %d gradients", limit)), nil
	}
	q := quantities{}
	for name, x := range made {
		if wanted(name, target.watch) {
			q.add(name, x)
		}
	}
	out.ess, out.why = q.judge(known, target.bimodal)
	return out, nil
}

// lost is the outcome of a run without draws.
func lost(why string) outcome { return outcome{warmup: math.Inf(1), all: math.Inf(1), why: why} }
