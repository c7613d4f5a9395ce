package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A client looks so often whether the server has what its run needs. A task is lost where it is missing twice, since
// copies of a stream may be late, and a server where it answers pings, and for failingFor nothing else well. Both are
// noticed within 10 s.
var (
	lookEvery  = 2 * time.Second
	failingFor = 5 * time.Second
	lookWait   = 3 * time.Second
)

// lostError says what of a run the server no longer has, so that the run cannot end by itself.
type lostError struct {
	What string // a stream, a task, or the server's disk
	Err  error  // of the server; nil for none
}

// Error names what is lost.
func (e *lostError) Error() string {
	text := e.What + ": was it deleted, or the server's disk emptied? Run it again"
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap gives the error of the server.
func (e *lostError) Unwrap() error { return e.Err }

// watch returns when the run is lost, or nil when the context ends. A server that is away may come back.
func (c *client) watch(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var since time.Time // the server answers with errors
	missing := map[int]bool{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		began := time.Now()
		one, cancel := context.WithTimeout(ctx, lookWait)
		err := c.look(one, missing)
		cancel()
		var lost *lostError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &lost):
			return err
		case err == nil, !c.answers(ctx):
			since = time.Time{}
		case since.IsZero():
			since = began
		}
		if !since.IsZero() && time.Since(since) >= failingFor {
			return &lostError{What: "the server answers and keeps nothing", Err: err}
		}
	}
}

// answers says whether the server is there, whatever of it fails.
func (c *client) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, lookWait)
	defer cancel()
	return c.link.nc.IsConnected() && c.link.nc.FlushWithContext(ctx) == nil
}

// look asks for the streams of the run and for the messages of its tasks that have no result, and writes.
func (c *client) look(ctx context.Context, missing map[int]bool) error {
	b := c.bucket
	for _, name := range []string{"KV_" + bucketPrefix + b.run, "OBJ_" + bucketPrefix + b.run, b.draws.name,
		b.checkpoints.name, tasksStream} {
		_, err := c.link.js.Stream(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return &lostError{What: "the server has no stream " + name + " any more", Err: err}
		}
		if err != nil {
			return err
		}
	}
	if _, err := b.keys.PutString(ctx, "alive", ""); err != nil {
		return err
	}
	s, err := c.link.js.Stream(ctx, tasksStream)
	if err != nil {
		return err
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(tasksSubject+b.run+".>"))
	if err != nil {
		return err
	}
	for i, t := range c.tasks {
		if c.got[i].Load() || info.State.Subjects[t.subject()] > 0 {
			delete(missing, i)
			continue
		}
		// A worker writes the result before its message goes.
		if _, err := b.keys.Get(ctx, t.key()); !errors.Is(err, jetstream.ErrKeyNotFound) {
			return err
		}
		if missing[i] {
			return &lostError{What: fmt.Sprintf("the server has neither task %d nor its result", i)}
		}
		missing[i] = true
	}
	return nil
}
