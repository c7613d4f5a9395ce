package main

import (
	"context"
	"crypto/rand"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/kelvin-ppl/kelvin/cluster"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

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
	s, err := newSweep(ctx)
	if err != nil {
		return nil, err
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
	notes, err := os.MkdirTemp("", "kelvin-example-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(notes) }()
	children := &processes{all: make([]*exec.Cmd, *workers+1), env: os.Environ()}
	if *kills > 0 {
		children.env = append(children.env, "KELVIN_CLUSTER_RECORD="+notes)
	}
	// The token of the server comes in the environment: who lists processes reads their arguments.
	token := rand.Text()
	address := "nats://" + token + "@" + addr
	children.env = append(children.env, "NATS_URL="+address)
	if err := atomicfile.Write(filepath.Join(store, "token"), []byte(token), 0o600); err != nil {
		return nil, err
	}
	server := func() error { return children.start(*workers, "-serve", addr, "-dir", store) }
	work := func(i int) error { return children.start(i, "-worker") }
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
	killing, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		source := mathrand.New(mathrand.NewPCG(1, 2))
		for s.Kills < *kills {
			select {
			case <-killing.Done():
				return
			case <-time.After(time.Duration(300+source.IntN(500)) * time.Millisecond):
			}
			i := source.IntN(*workers)
			children.kill(i)
			s.Kills++
			_ = work(i)
			if s.Kills%5 == 0 {
				children.kill(*workers)
				s.ServerKills++
				_ = server()
			}
		}
	}()
	err = s.on(ctx, cluster.Options{URL: address, AckWait: time.Second, Crashes: 1000})
	cancel()
	<-ended
	if err != nil {
		return nil, err
	}
	return &s.report, s.count(notes)
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
