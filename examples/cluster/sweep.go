package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/kelvin-ppl/kelvin/cluster"
	saved "github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
)

// report is what the command prints.
type report struct {
	Identical   bool    `json:"identical"`
	Kills       int     `json:"kills"`
	ServerKills int     `json:"server_kills"`
	Again       int     `json:"begun_again"` // attempts after the first of their task
	Repeated    int     `json:"repeated"`    // updates or transitions that were made again
	Most        int     `json:"most"`        // of them after one death; a checkpoint interval has interval
	Interval    int     `json:"interval"`
	Seconds     float64 `json:"seconds"`
	Local       float64 `json:"local_seconds"` // of the local run
}

// sweep is the runs that are made in this process and on a cluster.
type sweep struct {
	report
	o     infer.Options
	cells []cluster.Cell
	local []*saved.Draws
}

// newSweep makes the runs in this process.
func newSweep(ctx context.Context) (*sweep, error) {
	p, err := program()
	if err != nil {
		return nil, err
	}
	s := &sweep{o: infer.Options{Chains: 4, Warmup: 1000, Draws: *draws, Seed: 1, Observer: infer.Silent}}
	began := time.Now()
	for _, temperature := range []float64{0, 1, 0.3, 0.1} {
		s.cells = append(s.cells, cluster.Cell{Program: p, Method: method(temperature), Params: temperature})
		d, err := infer.Sample(ctx, p, method(temperature), s.o)
		if err != nil {
			return nil, err
		}
		s.local = append(s.local, d)
	}
	s.Interval, s.Local = 1000, time.Since(began).Seconds()
	return s, nil
}

// on makes the runs on a cluster, and compares them.
func (s *sweep) on(ctx context.Context, o cluster.Options) error {
	o.Options, o.Job = s.o, "schools"
	o.Checkpoint = &infer.Checkpoint{Every: s.Interval}
	began := time.Now()
	all, err := cluster.Sweep(ctx, s.cells, o)
	if err != nil {
		return err
	}
	s.Seconds, s.Identical = time.Since(began).Seconds(), true
	for i := range all {
		s.Identical = s.Identical && same(s.local[i], all[i])
	}
	return nil
}

// outside makes the sweep on the server -nats, by the workers that it has.
func outside(ctx context.Context) (*report, error) {
	s, err := newSweep(ctx)
	if err != nil {
		return nil, err
	}
	return &s.report, s.on(ctx, cluster.Options{URL: *url})
}

// same compares the bits of all draws.
func same(a, b *saved.Draws) bool {
	if a == nil || b == nil || a.Chains() != b.Chains() || fmt.Sprint(a.Sites()) != fmt.Sprint(b.Sites()) {
		return false
	}
	for c := range a.Chains() {
		if a.Len(c) != b.Len(c) {
			return false
		}
		for i := range a.Len(c) {
			x, y := a.Row(c, i), b.Row(c, i)
			for j := range x {
				if math.Float64bits(x[j]) != math.Float64bits(y[j]) {
					return false
				}
			}
		}
	}
	return true
}
