package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/term"
)

// run is one job of this process.
type run struct {
	link    *link
	program infer.Program
	job     job
	desk    *desk
	tell    func(Progress)

	lock    sync.Mutex
	results map[int]result
	starts  map[string]bool   // task and delivery
	workers map[string]bool   // that have begun a task
	refused map[string]string // what workers said
	steps   map[int]int64     // of each task
	first   time.Time         // of the first refusal
}

// run publishes the tasks and waits for their results.
func (r *run) run(ctx context.Context) (*draws.Draws, error) {
	defer r.remove()
	if err := r.publish(ctx); err != nil {
		return nil, err
	}
	told, err := r.link.nc.Subscribe("kelvin.progress."+r.job.ID, func(m *nats.Msg) {
		var at progressMessage
		if json.Unmarshal(m.Data, &at) == nil {
			r.lock.Lock()
			defer r.lock.Unlock()
			r.steps[at.Task] = max(r.steps[at.Task], at.Steps)
		}
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = told.Unsubscribe() }()
	wait := r.wait(ctx)
	d, err := r.collect()
	return d, errors.Join(wait, err)
}

// publish makes the desk of the job and puts its tasks into the stream.
func (r *run) publish(ctx context.Context) error {
	p, err := packBatch(r.program.Batch())
	if err != nil {
		return err
	}
	data, err := p.bytes()
	if err != nil {
		return err
	}
	r.desk = &desk{limit: r.job.MaxBytes}
	name := bucket(r.job.ID)
	if err := persist(ctx, func(ctx context.Context) (err error) {
		r.desk.keys, err = r.link.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: name})
		if err != nil {
			return err
		}
		r.desk.objects, err = r.link.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: name})
		return err
	}); err != nil {
		return err
	}
	if err := r.desk.put(ctx, "data", data); err != nil {
		return err
	}
	if err := r.desk.write(ctx, "job", r.job); err != nil {
		return err
	}
	for task := range r.job.tasks() {
		text, err := json.Marshal(message{r.job.ID, task})
		if err != nil {
			return err
		}
		subject := fmt.Sprintf("%s%s.%d", subjects, r.job.ID, task)
		if err := persist(ctx, func(ctx context.Context) error {
			_, err := r.link.js.Publish(ctx, subject, text, jetstream.WithMsgID(subject))
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// grace is how long a job whose workers all refuse it waits for another worker.
const grace = 3 * time.Second

// wait watches the keys until each task has a result. A watch is made anew now and then: it may have died with a server,
// and what it tells again changes nothing.
func (r *run) wait(ctx context.Context) error {
	line := r.tell
	if line == nil && term.IsTerminal(int(os.Stderr.Fd())) {
		line = func(p Progress) { fmt.Fprintf(os.Stderr, "\r%s\x1b[K", p) }
		defer fmt.Fprintln(os.Stderr)
	}
	for {
		if err := r.watch(ctx); err != nil {
			return err
		}
		p := r.progress()
		if line != nil {
			line(p)
		}
		if p.Done+p.Failed == p.Tasks {
			return nil
		}
		r.lock.Lock()
		alone := len(r.starts) == 0 && len(r.refused) > 0 && time.Since(r.first) > grace
		r.lock.Unlock()
		if alone {
			return fmt.Errorf("%s: %w", strings.Join(p.Refused, "; "), ErrRefused)
		}
	}
}

// watch reads the keys for a second at most.
func (r *run) watch(ctx context.Context) error {
	inside, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	w, err := r.desk.keys.WatchAll(inside)
	if err != nil {
		pause(ctx)
		return ctx.Err()
	}
	defer func() { _ = w.Stop() }()
	for {
		select {
		case <-inside.Done():
			return ctx.Err()
		case e, ok := <-w.Updates():
			if !ok {
				return ctx.Err()
			}
			if e == nil {
				continue
			}
			if r.note(e.Key(), e.Value()) {
				return nil
			}
		}
	}
}

// note takes one key, and says whether all tasks have a result.
func (r *run) note(key string, value []byte) bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	kind, rest, _ := strings.Cut(key, ".")
	switch kind {
	case "result":
		var task int
		var res result
		if _, err := fmt.Sscan(rest, &task); err == nil && json.Unmarshal(value, &res) == nil {
			r.results[task] = res
			r.steps[task] = max(r.steps[task], res.Steps)
		}
	case "start":
		r.starts[rest] = true
		r.workers[string(value)] = true
	case "refused":
		if len(r.refused) == 0 {
			r.first = time.Now()
		}
		r.refused[rest] = string(value)
	}
	return len(r.results) == r.job.tasks()
}

func (r *run) progress() Progress {
	r.lock.Lock()
	defer r.lock.Unlock()
	p := Progress{Tasks: r.job.tasks(), Workers: len(r.workers)}
	begun := map[string]bool{}
	for key := range r.starts {
		task, _, _ := strings.Cut(key, ".")
		begun[task] = true
	}
	p.Redelivered = len(r.starts) - len(begun)
	for _, res := range r.results {
		if res.Object == "" {
			p.Failed++
		} else {
			p.Done++
		}
	}
	for _, n := range r.steps {
		p.Updates += n
	}
	for worker, text := range r.refused {
		p.Refused = append(p.Refused, worker+": "+text)
	}
	return p
}

// remove ends what workers still do for the job, and removes what the server holds of it.
func (r *run) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = r.link.nc.Publish("kelvin.cancel."+r.job.ID, nil)
	if s, err := r.link.js.Stream(ctx, streamName); err == nil {
		_ = s.Purge(ctx, jetstream.WithPurgeSubject(subjects+r.job.ID+".>"))
	}
	_ = r.link.js.DeleteKeyValue(ctx, bucket(r.job.ID))
	_ = r.link.js.DeleteObjectStore(ctx, bucket(r.job.ID))
	_ = r.link.nc.Flush()
}
