package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/kelvin-ppl/kelvin/cluster"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/nats-io/nats.go"
)

// seen is what one worker says while it has a task: bytes of a message with its subject, and messages in a second.
type seen struct{ eventBytes, eventRate, beatBytes, beatRate float64 }

// draws of the task that is listened to, each after so many updates: far more than it makes before it is stopped, some
// minutes.
const draws, thin = 1_000_000, 10_000

// traffic listens to a real run of one task, and stops it after so many heartbeats.
func traffic(ctx context.Context, beats int) (s seen, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dir, err := os.MkdirTemp("", "kelvin-bench-cluster-*")
	if err != nil {
		return s, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- cluster.Serve(ctx, "127.0.0.1:0", dir, func(url string) { ready <- url }) }()
	var url string
	select {
	case url = <-ready:
	case err := <-ended:
		return s, err
	}
	defer func() { cancel(); <-ended }()
	nc, err := nats.Connect(url)
	if err != nil {
		return s, err
	}
	defer nc.Close()
	sampling, enough := context.WithCancel(ctx)
	defer enough()
	var lock sync.Mutex
	counts, bytes, first, last := map[string]int{}, map[string]int{}, map[string]time.Time{}, map[string]time.Time{}
	_, err = nc.Subscribe(">", func(m *nats.Msg) {
		kind := ""
		switch {
		case strings.HasPrefix(m.Subject, "kelvin.events."):
			kind = "event"
		case strings.HasPrefix(m.Subject, "$JS.ACK.") && string(m.Data) == "+WPI":
			kind = "beat"
		default:
			return
		}
		lock.Lock()
		defer lock.Unlock()
		if counts[kind]++; counts[kind] == 1 {
			first[kind] = time.Now()
		}
		bytes[kind] += len(m.Subject) + len(m.Data)
		last[kind] = time.Now()
		if counts["beat"] == beats {
			enough()
		}
	})
	if err != nil {
		return s, err
	}
	if err := nc.Flush(); err != nil {
		return s, err
	}
	model := func(c *ppl.Ctx) { c.Sample("x", dist.Normal(0, 1)) }
	method := sgmcmc.SGHMC{LR: infer.Constant(0.01)}
	cluster.Register("normal", func(_ []byte, data infer.Batch) (cluster.Spec, error) {
		program, err := ppl.Compile(model, data)
		return cluster.Spec{Program: program, Method: method}, err
	})
	program, err := ppl.Compile(model, nil)
	if err != nil {
		return s, err
	}
	if _, err := cluster.Sample(sampling, program, method, cluster.Options{Job: "normal", URL: url, Workers: 1,
		Options: infer.Options{Chains: 1, Warmup: 10, Draws: draws, Thin: thin}}); err != nil && sampling.Err() == nil {
		return s, err
	}
	if err := ctx.Err(); err != nil {
		return s, err
	}
	if err := nc.Flush(); err != nil {
		return s, err
	}
	lock.Lock()
	defer lock.Unlock()
	for _, kind := range []string{"event", "beat"} {
		if counts[kind] < 2 {
			return s, fmt.Errorf("the run ended after %d messages %q, which is too early to see their rate", counts[kind],
				kind)
		}
	}
	rate := func(kind string) (float64, float64) {
		return float64(bytes[kind]) / float64(counts[kind]),
			float64(counts[kind]-1) / last[kind].Sub(first[kind]).Seconds()
	}
	s.eventBytes, s.eventRate = rate("event")
	s.beatBytes, s.beatRate = rate("beat")
	return s, nil
}
