package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"sync"
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
	Repeated    int64   `json:"repeated"`    // updates or transitions that were made again
	Most        int64   `json:"most"`        // of them after one death; a checkpoint interval has interval
	Interval    int64   `json:"interval"`
	Seconds     float64 `json:"seconds"`
	Local       float64 `json:"local_seconds"` // of the local run
}

// processes are the children: workers, and the server last.
type processes struct {
	lock sync.Mutex
	all  []*exec.Cmd
	env  []string
}

// start starts child i, in place of the one that was killed.
func (p *processes) start(i int, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.Command(self, args...)
	c.Stderr, c.Env = os.Stderr, p.env
	p.lock.Lock()
	defer p.lock.Unlock()
	p.all[i] = c
	return c.Start()
}

// kill ends child i as -9 does.
func (p *processes) kill(i int) {
	p.lock.Lock()
	c := p.all[i]
	p.lock.Unlock()
	if c != nil && c.Process != nil {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
}

// chaos makes the sweep while processes die, and compares it with the local run.
func chaos(ctx context.Context) (*report, error) {
	p, err := program()
	if err != nil {
		return nil, err
	}
	o := infer.Options{Chains: 4, Warmup: 1000, Draws: *draws, Seed: 1, Observer: infer.Silent}
	var cells []cluster.Cell
	var local []*saved.Draws
	began := time.Now()
	for _, temperature := range []float64{0, 1, 0.3, 0.1} {
		cells = append(cells, cluster.Cell{Program: p, Method: method(temperature), Params: temperature})
		d, err := infer.Sample(ctx, p, method(temperature), o)
		if err != nil {
			return nil, err
		}
		local = append(local, d)
	}
	r := &report{Interval: 1000, Local: time.Since(began).Seconds()}
	addr, err := freePort()
	if err != nil {
		return nil, err
	}
	store, err := os.MkdirTemp("", "kelvin-example-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(store) }()
	notes, err := os.MkdirTemp("", "kelvin-example-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(notes) }()
	children := &processes{all: make([]*exec.Cmd, *workers+1), env: os.Environ()}
	if *kills > 0 {
		children.env = append(children.env, "KELVIN_CLUSTER_RECORD="+notes)
	}
	server := func() error { return children.start(*workers, "-serve", addr, "-dir", store) }
	work := func(i int) error { return children.start(i, "-worker", "-nats", "nats://"+addr) }
	if err := server(); err != nil {
		return nil, err
	}
	defer func() {
		for i := range children.all {
			children.kill(i)
		}
	}()
	for i := range *workers {
		if err := work(i); err != nil {
			return nil, err
		}
	}
	if err := listening(ctx, addr); err != nil {
		return nil, err
	}
	began = time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		source := rand.New(rand.NewPCG(1, 2))
		for r.Kills < *kills {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Duration(300+source.IntN(500)) * time.Millisecond):
			}
			i := source.IntN(*workers)
			children.kill(i)
			r.Kills++
			_ = work(i)
			if r.Kills%5 == 0 {
				children.kill(*workers)
				r.ServerKills++
				_ = server()
			}
		}
	}()
	o.Checkpoint = &infer.Checkpoint{Every: r.Interval}
	all, err := cluster.Sweep(ctx, cells, cluster.Options{Options: o, Job: "schools", URL: "nats://" + addr,
		AckWait: time.Second, Crashes: 1000})
	cancel()
	<-ended
	if err != nil {
		return nil, err
	}
	r.Seconds, r.Identical = time.Since(began).Seconds(), true
	if err := r.count(notes); err != nil {
		return nil, err
	}
	for i := range all {
		r.Identical = r.Identical && same(local[i], all[i])
	}
	return r, nil
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// listening waits until the server answers.
func listening(ctx context.Context, addr string) error {
	for ctx.Err() == nil {
		if c, err := net.Dial("tcp", addr); err == nil {
			return c.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	return ctx.Err()
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
