package cluster

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	maxTries  = 3   // of a task that ends with an error
	maxDeaths = 200 // of workers that run a task
)

// Work runs tasks of the server at url, one after another, until the context ends; then it returns nil. It runs the
// models that are registered in this binary, and only jobs of the same binary and libtorch. Options are NATS's own, for
// TLS and credentials.
func Work(ctx context.Context, url string, options ...nats.Option) error {
	w := &worker{programs: map[string]infer.Program{}}
	host, _ := os.Hostname()
	w.name = fmt.Sprintf("%s-%d-%s", clean(host), os.Getpid(), strings.ToLower(rand.Text()[:6]))
	var err error
	if w.identity, err = own(); err != nil {
		return fmt.Errorf("cluster.Work: %w", err)
	}
	if w.link, err = connect(ctx, url, options); err != nil {
		return fmt.Errorf("cluster.Work: %w", err)
	}
	defer w.link.nc.Close()
	for ctx.Err() == nil {
		msgs, err := w.link.tasks.Fetch(1, jetstream.FetchMaxWait(2*time.Second))
		if err != nil {
			pause(ctx)
			continue
		}
		none := true
		for m := range msgs.Messages() {
			none = false
			w.task(ctx, m)
		}
		if none && msgs.Error() != nil {
			pause(ctx)
		}
	}
	return nil
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(200 * time.Millisecond):
	}
}

// clean keeps the characters that a key may have.
func clean(s string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' {
			return c
		}
		return '_'
	}, s)
}

// worker is one process that runs tasks.
type worker struct {
	name     string
	link     *link
	identity identity
	programs map[string]infer.Program // by model and data
}

// task runs one task, and tells the server what to do with it.
func (w *worker) task(ctx context.Context, m jetstream.Msg) {
	var t message
	if err := json.Unmarshal(m.Data(), &t); err != nil {
		_ = m.Term()
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Heartbeats begin at once: the data may be large.
	go func() {
		tick := time.NewTicker(heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_ = m.InProgress()
			}
		}
	}()
	if sub, err := w.link.nc.Subscribe("kelvin.cancel."+t.Job, func(*nats.Msg) { cancel() }); err == nil {
		defer func() { _ = sub.Unsubscribe() }()
	}
	d, err := w.link.desk(ctx, t.Job)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		_ = m.Term() // the job has ended
		return
	}
	a := &attempt{worker: w, desk: d, task: t.Task, msg: m}
	if err == nil {
		err = a.do(ctx)
	}
	switch {
	case err == nil:
		_ = m.Ack()
	case errors.Is(err, jetstream.ErrBucketNotFound), errors.Is(err, jetstream.ErrStreamNotFound):
		_ = m.Term()
	case ctx.Err() != nil:
		_ = m.Nak() // another worker goes on from the checkpoint
	case errors.Is(err, ErrRefused):
		_ = persist(ctx, func(ctx context.Context) error {
			_, err := d.keys.PutString(ctx, "refused."+w.name, err.Error())
			return err
		})
		_ = m.NakWithDelay(time.Second)
	case a.failed(ctx, err):
		_ = m.Ack()
	default:
		_ = m.NakWithDelay(200 * time.Millisecond)
	}
}

// safely makes a panic of registered code an error.
func safely(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &infer.PanicError{In: "model", Value: v, Stack: string(debug.Stack())}
		}
	}()
	return f()
}
