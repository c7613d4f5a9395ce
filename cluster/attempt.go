package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/parallel"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// errLost ends an attempt whose task another worker has.
var errLost = errors.New("another worker has the task")

// attempt is one worker's run of one task.
type attempt struct {
	*worker
	task     task
	bucket   *bucket
	state    state
	revision uint64
	mirror   *mirror
	cancel   context.CancelCauseFunc

	step, steps, resumed, gradients atomic.Int64
}

// attempt runs a task from where it stands, and writes its result. nil: the task is done, by whomever.
func (w *worker) attempt(ctx context.Context, t task, msg jetstream.Msg) error {
	// Building a model, with its data and native code, may take longer than AckWait.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a := &attempt{worker: w, task: t, cancel: cancel}
	stop, err := a.beat(ctx, msg)
	if err != nil {
		return err
	}
	defer stop()
	k, err := w.prepared(ctx, t)
	var failed *failure
	if err != nil && !errors.As(err, &failed) {
		return err
	}
	a.bucket = k.bucket
	if done, err := a.take(ctx, delivered(msg)); done || err != nil {
		return err
	}
	if failed != nil {
		return a.fail(ctx, failed.error)
	}
	if a.state.Crashes > t.Crashes {
		return a.finish(ctx, outcome{Tries: a.state.Crashes - 1,
			Error: "workers die over it, without a checkpoint in between: not enough memory?"})
	}
	result, err := a.run(ctx, k)
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errLost), errors.Is(err, errLost):
		return errLost
	case cause != nil:
		return cause
	case err != nil:
		return a.fail(ctx, err)
	}
	o := outcome{Tries: len(a.state.Errors) + 1}
	if m := t.Want.machineDiffers(k.identity, false); m != nil {
		o.Differs = m.What
	}
	if d := result.Unconstrained; d != nil {
		size := d.Total() * rowBytes(d.Dim(), len(d.Stats()))
		if size > t.Limit {
			return a.fail(ctx, a.bucket.tooLarge("the draws of the task", size))
		}
		if err := a.put(ctx, d, size, &o); err != nil {
			return err
		}
	}
	if err := a.finish(ctx, o); err != nil {
		return err
	}
	if len(a.state.Files) > 0 { // nobody goes on from its checkpoints any more
		a.bucket.checkpoints.drop(ctx, t.name())
	}
	return nil
}

// put writes the draws of the task, of so many bytes, where the result says.
func (a *attempt) put(ctx context.Context, d *draws.Draws, size int, o *outcome) error {
	o.Draws = a.block("result")
	o.Stats, o.Attrs, o.Notes = d.Stats(), d.Attrs(), d.Notes()
	for c := range d.Chains() {
		o.Lengths = append(o.Lengths, d.Len(c))
	}
	if a.task.Streamed && size > smallBytes {
		if err := a.bucket.draws.room(ctx, size); err != nil {
			return err
		}
	}
	return packRows(d, func(block []byte) error {
		if size <= smallBytes {
			o.Small = slices.Clone(block)
			return nil
		}
		sum := sha256.Sum256(block)
		o.Blocks, o.Sums = o.Blocks+1, append(o.Sums, sum[:])
		return a.bucket.draws.put(ctx, o.block(o.Blocks-1), block)
	})
}

// take says on the server that this worker has the task now. It is true where the result is there already.
func (a *attempt) take(ctx context.Context, delivered uint64) (done bool, err error) {
	if delivered == 1 {
		if first, err := a.takeFirst(ctx); first || err != nil {
			return false, err
		}
	}
	b := a.bucket
	err = again(ctx, func(ctx context.Context) error {
		_, err := b.keys.Get(ctx, a.task.key())
		return err
	})
	if !errors.Is(err, jetstream.ErrKeyNotFound) {
		return err == nil, err
	}
	err = again(ctx, func(ctx context.Context) error {
		entry, err := b.keys.Get(ctx, a.task.stateKey())
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		a.revision = entry.Revision()
		return json.Unmarshal(entry.Value(), &a.state)
	})
	if err != nil {
		return false, err
	}
	a.state.Attempt++
	a.state.Crashes++
	a.state.Worker = a.name
	return false, a.save(ctx)
}

// delivered is how often the server has delivered a task; 0 where that is not known.
func delivered(msg jetstream.Msg) uint64 {
	m, err := msg.Metadata()
	if err != nil {
		return 0
	}
	return m.NumDelivered
}

// takeFirst is take where nobody has had the task, which one request finds out. A server that was killed may deliver a
// task for the first time twice.
func (a *attempt) takeFirst(ctx context.Context) (first bool, err error) {
	s := state{Attempt: 1, Crashes: 1, Worker: a.name}
	text, err := json.Marshal(s)
	if err != nil {
		return false, err
	}
	var revision uint64
	err = again(ctx, func(ctx context.Context) (err error) {
		revision, err = a.bucket.keys.Create(ctx, a.task.stateKey(), text)
		return err
	})
	if errors.Is(err, jetstream.ErrKeyExists) { // unless it is this one's, and the answer was lost
		entry, failed := a.bucket.keys.Get(ctx, a.task.stateKey())
		if failed != nil || string(entry.Value()) != string(text) {
			return false, nil
		}
		revision, err = entry.Revision(), nil
	}
	if err == nil {
		a.state, a.revision = s, revision
	}
	return err == nil, err
}

// save writes the state, if no other worker has since.
func (a *attempt) save(ctx context.Context) error {
	text, err := json.Marshal(a.state)
	if err != nil {
		return err
	}
	return again(ctx, func(ctx context.Context) error {
		revision, err := a.bucket.keys.Update(ctx, a.task.stateKey(), text, a.revision)
		if err == nil {
			a.revision = revision
			return nil
		}
		if !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
			return err
		}
		// Written by another worker, or by this one without an answer.
		entry, failed := a.bucket.keys.Get(ctx, a.task.stateKey())
		if failed != nil {
			return failed
		}
		if string(entry.Value()) == string(text) {
			a.revision = entry.Revision()
			return nil
		}
		a.cancel(errLost)
		return errors.Join(errLost, nats.ErrConnectionClosed) // which again takes as an answer
	})
}

// beat tells the server and the client that the worker lives, until the function that it returns is called. The run's
// end, on the server, is the end of the attempt.
func (a *attempt) beat(ctx context.Context, msg jetstream.Msg) (stop func(), err error) {
	over, err := a.nc.Subscribe(cancelSubject+a.task.Run, func(*nats.Msg) { a.cancel(jetstream.ErrBucketNotFound) })
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	var beats, looks parallel.Group
	beats.Go(func() {
		interval := min(time.Duration(a.task.AckWait)/4, 200*time.Millisecond)
		acked := time.Now()
		every(ctx, done, max(interval, 20*time.Millisecond), func() {
			if time.Since(acked) >= time.Duration(a.task.AckWait)/4 {
				acked = time.Now()
				_ = msg.InProgress()
			}
			if a.steps.Load() > 0 {
				a.progress("progress")
			}
		})
	})
	looks.Go(func() { every(ctx, done, goneEvery, func() { a.checkRun(ctx) }) })
	return func() {
		close(done)
		beats.Wait() // a look at the server may take longer, and ends with the context
		_ = over.Unsubscribe()
	}, nil
}

// goneEvery is how often a worker asks whether the run is still there.
var goneEvery = 30 * time.Second

// checkRun ends the attempt where the run is gone and the word of it was missed. Requests about a run that is gone have
// no answer, as those to a server that is away.
func (a *attempt) checkRun(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	if _, err := a.js.Stream(ctx, a.pile(a.task.Run, drawsPile).name); errors.Is(err, jetstream.ErrStreamNotFound) {
		a.cancel(jetstream.ErrBucketNotFound)
	}
}

// every calls f after each interval until done is closed or the context ends.
func every(ctx context.Context, done <-chan struct{}, interval time.Duration, f func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
			f()
		}
	}
}

func (a *attempt) progress(kind string) {
	a.tell(a.task, event{Kind: kind, Attempt: a.state.Attempt, Step: int(a.step.Load()), Steps: int(a.steps.Load()),
		Resumed: int(a.resumed.Load()), Gradients: int(a.gradients.Load())})
}

// run makes the run in a folder of its own, whose checkpoints go to the server.
func (a *attempt) run(ctx context.Context, k *kept) (*infer.Result, error) {
	dir, err := os.MkdirTemp(a.folder, "task-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	o := a.task.Options.options()
	raw := a.task.Point
	if a.task.Start != "" {
		if raw, err = a.bucket.get(ctx, a.task.Start); err != nil {
			return nil, err
		}
	}
	if o.Start, err = unpackStart(raw, k.spec.Program.Layout()); err != nil {
		return nil, err
	}
	defer torch.Free(o.Start.Flat)
	if o.Batches = k.spec.Batches; o.Batches != nil {
		if err := o.Batches.Seek(a.task.Position); err != nil {
			return nil, err
		}
	}
	if k.checkpoints {
		a.mirror = &mirror{attempt: a, ctx: ctx, dir: dir, sizes: map[string]int{}, saved: time.Now()}
		if err := a.mirror.restore(); err != nil {
			return nil, err
		}
		o.Checkpoint = &infer.Checkpoint{Dir: dir, Every: a.task.Options.Every, Resume: true,
			Model: a.task.Options.Model, Saved: a.mirror.save}
	}
	g := a.glance()
	defer g.timer.Stop()
	if o.Observer = g; os.Getenv(recordVariable) != "" {
		r, err := a.newRecord()
		if err != nil {
			return nil, err
		}
		defer r.close()
		o.Observer = r
	}
	return infer.Run(ctx, k.spec.Program, k.spec.Method, o)
}

// fail counts a try, or reports the task where that was the last.
func (a *attempt) fail(ctx context.Context, failed error) error {
	a.state.Errors = append(a.state.Errors, failed.Error())
	a.state.Crashes = 0
	// Only the worker that has the task may say so: one that lost it fails because the other one works.
	if err := a.save(ctx); err != nil || len(a.state.Errors) < a.task.Tries {
		return errors.Join(err, failed)
	}
	return a.finish(ctx, outcome{Tries: len(a.state.Errors), Error: failed.Error()})
}

// dropSecond deletes draws that are not those of the result, because another worker was first.
func (a *attempt) dropSecond(ctx context.Context, o outcome) {
	entry, err := a.bucket.keys.Get(ctx, a.task.key())
	if err != nil || o.Blocks == 0 {
		return
	}
	// One that is refused is for the client to report.
	if first, err := a.task.unseal(a.secret, entry.Value()); err == nil && first.Draws != o.Draws {
		a.bucket.draws.drop(ctx, o.Draws)
	}
}

// finish writes the result, once: where there is one, it stays.
func (a *attempt) finish(ctx context.Context, o outcome) error {
	o.Worker = a.name
	text, err := a.task.seal(a.secret, o)
	if err != nil {
		return err
	}
	err = again(ctx, func(ctx context.Context) error {
		_, err := a.bucket.keys.Create(ctx, a.task.key(), text)
		return err
	})
	if errors.Is(err, jetstream.ErrKeyExists) {
		a.dropSecond(ctx, o)
		err = nil
	}
	if err == nil {
		a.progress("done")
	}
	return err
}
