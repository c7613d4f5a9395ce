package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/kelvin-ppl/kelvin/cluster"
	kept "github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
)

// report is what the command prints.
type report struct {
	Identical   bool    `json:"identical"`
	Kills       int     `json:"kills"`
	ServerKills int     `json:"server_kills"`
	Taken       int     `json:"taken_over"` // tasks that went to another worker
	Repeated    int     `json:"repeated"`   // updates or transitions that were made again, as far as workers had told
	Seconds     float64 `json:"seconds"`
	Line        string  `json:"-"`
}

// processes are the children: workers, and the server last.
type processes struct {
	lock sync.Mutex
	all  []*exec.Cmd
}

// start starts child i, in place of the one that was killed.
func (p *processes) start(i int, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.Command(self, args...)
	c.Stderr = os.Stderr
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
	var local []*kept.Draws
	for _, temperature := range []float64{0, 1, 0.3, 0.1} {
		cells = append(cells, cluster.Cell{Program: p, Method: method(temperature), Params: temperature})
		d, err := infer.Sample(ctx, p, method(temperature), o)
		if err != nil {
			return nil, err
		}
		local = append(local, d)
	}
	addr, err := freePort()
	if err != nil {
		return nil, err
	}
	store, err := os.MkdirTemp("", "kelvin-example-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(store) }()
	children := &processes{all: make([]*exec.Cmd, *workers+1)}
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
	r, began := &report{}, time.Now()
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
	line := &lastLine{}
	o.Checkpoint = &infer.Checkpoint{Every: 1000}
	all, err := cluster.Sweep(ctx, cells, cluster.Options{Options: o, Job: "schools", URL: "nats://" + addr,
		AckWait: time.Second, Crashes: 1000, Progress: line})
	cancel()
	<-ended
	if err != nil {
		return nil, err
	}
	r.Seconds, r.Line, r.Identical = time.Since(began).Seconds(), line.text, true
	r.Taken, r.Repeated = line.counts()
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

// lastLine keeps the last line of progress.
type lastLine struct{ text string }

func (l *lastLine) Write(b []byte) (int, error) {
	if text := string(b); len(text) > 6 {
		l.text = text[4:] // after the escapes that clear the line
	}
	return len(b), nil
}

var again = regexp.MustCompile(`(\d+) taken over, (\d+) steps made again`)

func (l *lastLine) counts() (taken, repeated int) {
	if m := again.FindStringSubmatch(l.text); m != nil {
		taken, _ = strconv.Atoi(m[1])
		repeated, _ = strconv.Atoi(m[2])
	}
	return taken, repeated
}

// same compares the bits of all draws.
func same(a, b *kept.Draws) bool {
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
