package cluster

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Spec is what a job runs.
type Spec struct {
	Program infer.Program // as given to Sample
	Method  infer.Method  // with the same settings
	Batches infer.Batches // nil is all of the program's data in every update
}

var (
	registryLock sync.Mutex
	registry     = map[string]func(params []byte, data infer.Batch) (Spec, error){}
)

// Register says how a worker of this binary builds the job of that name: from its parameters, which are JSON, and from
// the data of the program that was given to [Sample]. It is called before [Work] or [Sample]. A name that is registered
// again is replaced.
func Register(name string, build func(params []byte, data infer.Batch) (Spec, error)) {
	registryLock.Lock()
	defer registryLock.Unlock()
	registry[name] = build
}

// build makes the spec of a job. A panic of the user's function is an error.
func build(name string, params []byte, data infer.Batch) (spec Spec, err error) {
	registryLock.Lock()
	f, ok := registry[name]
	var names []string
	for n := range registry {
		names = append(names, n)
	}
	registryLock.Unlock()
	if !ok || f == nil {
		slices.Sort(names)
		return spec, &MismatchError{What: "job", Client: fmt.Sprintf("%q", name),
			Worker: fmt.Sprintf("one of %q", names)}
	}
	defer func() {
		if v := recover(); v != nil {
			err = &infer.PanicError{In: "job " + name, Value: v, Stack: string(debug.Stack())}
		}
	}()
	if spec, err = f(params, data); err != nil {
		return spec, err
	}
	if spec.Program == nil || spec.Method == nil {
		return spec, fmt.Errorf("job %s: program or method is nil: %w", name, infer.ErrConfig)
	}
	return spec, nil
}

// Work runs the tasks of a server one after the other until the context ends, and waits for a server that is not there.
// It returns the context's error, or what keeps it from working at all, such as credentials that the server refuses.
func Work(ctx context.Context, url string, options ...nats.Option) error {
	if ctx == nil {
		return fmt.Errorf("cluster.Work: the context is nil: context.Background() never ends: %w", infer.ErrConfig)
	}
	host, _ := os.Hostname()
	name := fmt.Sprintf("%s-%d-%s", host, os.Getpid(), rand.Text()[:6])
	folder, err := newScratch(workerFolder)
	if err != nil {
		return fmt.Errorf("cluster.Work: %w", err)
	}
	defer folder.remove()
	l, err := connect(ctx, url, name, true, options)
	if err != nil {
		return fmt.Errorf("cluster.Work: %w", err)
	}
	defer l.nc.Close()
	w := &worker{link: l, name: name, folder: folder.dir}
	if err := w.loop(ctx); err != nil {
		return fmt.Errorf("cluster.Work: %w", err)
	}
	return nil
}

// worker runs one task at a time.
type worker struct {
	*link
	name   string
	folder string // for the files of its tasks
	kept   *kept
}

// kept is the job that was built last; the next task is most often of the same.
type kept struct {
	run, job, params, data string
	bucket                 *bucket
	spec                   Spec
	identity               identity
	checkpoints            bool
}

// fetchWait is how long one request for a task stays on the server.
const fetchWait = 2 * time.Second

func (w *worker) loop(ctx context.Context) error {
	var tasks jetstream.Consumer
	for ctx.Err() == nil {
		if tasks == nil {
			c, err := w.tasks(ctx, 1, 0)
			if err != nil {
				return err
			}
			tasks = c
		}
		one, cancel := context.WithTimeout(ctx, fetchWait)
		msg, err := tasks.Next(jetstream.FetchContext(one), jetstream.FetchHeartbeat(fetchWait/4))
		cancel()
		switch {
		case err == nil:
			w.handle(ctx, msg)
		case errors.Is(err, nats.ErrTimeout), errors.Is(err, jetstream.ErrNoMessages),
			errors.Is(err, context.DeadlineExceeded):
		case errors.Is(err, nats.ErrConnectionClosed):
			return err
		default: // the server is down, or its stream is gone
			tasks = nil
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	return ctx.Err()
}

// handle runs a task and says to the server what became of it. Without a word, the task goes to another worker.
func (w *worker) handle(ctx context.Context, msg jetstream.Msg) {
	var t task
	if err := json.Unmarshal(msg.Data(), &t); err != nil {
		_ = msg.TermWithReason("not a task: " + err.Error())
		return
	}
	err := w.attempt(ctx, t, msg)
	var mismatch *MismatchError
	switch {
	case err == nil:
		_ = msg.Ack() // where it gets lost the task comes again, and its result is found
	case errors.As(err, &mismatch):
		mismatch.Name = w.name
		w.tell(t, event{Kind: "refused", Mismatch: mismatch})
		_ = msg.NakWithDelay(200 * time.Millisecond)
		select { // another worker is to have it
		case <-ctx.Done():
		case <-time.After(400 * time.Millisecond):
		}
	case errors.Is(err, jetstream.ErrBucketNotFound), errors.Is(err, jetstream.ErrStreamNotFound):
		_ = msg.Term() // the run is over
	case errors.Is(err, errLost):
		// Another worker has it.
	default:
		_ = msg.NakWithDelay(100 * time.Millisecond)
	}
}

func (w *worker) tell(t task, e event) {
	e.Worker, e.Task = w.name, t.Number
	if text, err := json.Marshal(e); err == nil {
		_ = w.nc.Publish(eventsSubject+t.Run, text)
	}
}

// prepared is the job of a task, built and compared.
func (w *worker) prepared(ctx context.Context, t task) (*kept, error) {
	own, err := machine()
	if err != nil {
		return nil, err
	}
	// The machine first: a build of another version may not even know the job.
	if m := t.Want.machineDiffers(own, t.Mixed); m != nil {
		return nil, m
	}
	k := w.kept
	if k == nil || k.run != t.Run || k.job != t.Job || k.params != string(t.Params) || k.data != t.Data {
		w.kept = nil
		k = &kept{run: t.Run, job: t.Job, params: string(t.Params), data: t.Data}
		if k.bucket, err = w.open(ctx, t.Run, t.Limit); err != nil {
			return nil, err
		}
		w.kept = k
	}
	if k.spec.Program != nil {
		return k, nil
	}
	raw, err := k.bucket.get(ctx, t.Data)
	if err != nil {
		return nil, err
	}
	data, err := unpackBatch(raw)
	if err != nil {
		return nil, err
	}
	spec, err := build(t.Job, t.Params, data)
	var unknown *MismatchError
	if errors.As(err, &unknown) {
		return nil, unknown
	}
	if err != nil {
		return k, &failure{err}
	}
	if k.identity, err = identify(spec.Program, spec.Method, spec.Batches); err != nil {
		return k, &failure{err}
	}
	if m := t.Want.jobDiffers(k.identity); m != nil {
		return nil, m
	}
	transform, err := spec.Method.Build(spec.Program.Target())
	if err != nil {
		return k, &failure{err}
	}
	_, restorer := transform.(infer.Restorer)
	_, driver := transform.(infer.Driver)
	k.checkpoints, k.spec = restorer || driver, spec
	return k, nil
}

// failure is an error of the task itself, which counts as a try.
type failure struct{ error }

func (f *failure) Unwrap() error { return f.error }
