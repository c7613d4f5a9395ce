package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/nats-io/nats.go/jetstream"
)

// attempt is one delivery of a task to a worker.
type attempt struct {
	*worker
	desk *desk
	job  job
	task int
	msg  jetstream.Msg
}

func (a *attempt) key(kind string) string { return fmt.Sprintf("%s.%d", kind, a.task) }

// do runs the task from its last checkpoint on, and writes its result once.
func (a *attempt) do(ctx context.Context) error {
	if found, err := a.desk.read(ctx, "job", &a.job); err != nil || !found {
		return errors.Join(err, ctx.Err())
	}
	a.desk.limit = a.job.MaxBytes
	if found, err := a.desk.read(ctx, a.key("result"), &result{}); err != nil || found {
		return err
	}
	if err := a.job.Identity.differs(a.identity); err != nil {
		return err
	}
	delivery := uint64(1)
	if meta, err := a.msg.Metadata(); err == nil {
		delivery = meta.NumDelivered
	}
	if delivery > maxDeaths {
		return a.end(ctx, result{Text: fmt.Sprintf("%d workers died, or were not heard, while they ran it", maxDeaths),
			Tries: maxDeaths})
	}
	model, err := lookUp(a.job.Model)
	if err != nil {
		return err
	}
	method, ok := model.Methods[a.job.Method]
	if !ok {
		return fmt.Errorf("the model %q has no method %q in this binary: %w", a.job.Model, a.job.Method, ErrRefused)
	}
	var program infer.Program
	if err := safely(func() (err error) { program, err = a.program(ctx, model); return err }); err != nil {
		return err
	}
	if err := persist(ctx, func(ctx context.Context) error {
		_, err := a.desk.keys.PutString(ctx, fmt.Sprintf("start.%d.%d", a.task, delivery), a.name)
		return err
	}); err != nil {
		return err
	}
	var r *infer.Result
	if err := safely(func() (err error) { r, err = a.run(ctx, model, program, method); return err }); err != nil {
		return err
	}
	p, err := packDraws(r.Unconstrained)
	if err != nil {
		return err
	}
	body, err := p.bytes()
	if err != nil {
		return err
	}
	res := result{Object: a.key("draws") + "." + strings.ToLower(rand.Text()), CPU: a.identity.CPU, Steps: r.Updates}
	if err := a.desk.put(ctx, res.Object, body); err != nil {
		return err
	}
	return a.end(ctx, res)
}

// end writes the result, unless another worker has.
func (a *attempt) end(ctx context.Context, res result) error {
	first, err := a.desk.once(ctx, a.key("result"), res)
	if err == nil && !first && res.Object != "" {
		// It may be this attempt's own, where the server's answer was lost.
		var kept result
		if found, err := a.desk.read(ctx, a.key("result"), &kept); err == nil && found && kept.Object != res.Object {
			_ = a.desk.objects.Delete(ctx, res.Object)
		}
	}
	return err
}

// failed counts an error of the task, and says whether it was the last try: then the error is the result.
func (a *attempt) failed(ctx context.Context, cause error) bool {
	var tries int
	if _, err := a.desk.read(ctx, a.key("tries"), &tries); err != nil {
		return false
	}
	if tries++; tries < maxTries {
		_ = a.desk.write(ctx, a.key("tries"), tries)
		return false
	}
	return a.end(ctx, result{Text: cause.Error(), Tries: tries}) == nil
}

// program makes the program of the job, once for each model and data.
func (a *attempt) program(ctx context.Context, model Model) (infer.Program, error) {
	key := a.job.Model + " " + a.job.Data
	if p, ok := a.programs[key]; ok {
		return p, nil
	}
	body, err := a.desk.get(ctx, "data")
	if err != nil {
		return nil, err
	}
	p, err := unpack(body)
	if err != nil {
		return nil, err
	}
	data, err := p.batch()
	if err != nil {
		return nil, err
	}
	program, err := model.Program(data)
	if err != nil {
		return nil, err
	}
	have, err := hash(program.Batch())
	if err != nil {
		return nil, err
	}
	if have != a.job.Data {
		return nil, differ("data hash", a.job.Data, have)
	}
	if l := program.Layout().String(); l != a.job.Layout {
		return nil, differ("layout", a.job.Layout, l)
	}
	a.programs[key] = program
	return program, nil
}

// run runs the chains of the task. They start where they do in a local run of all chains.
func (a *attempt) run(ctx context.Context, model Model, program infer.Program, method infer.Method) (*infer.Result,
	error) {
	o := a.job.options(a.task)
	from, size := a.job.part(a.task)
	start, err := program.Start(program.Batch(), a.job.Chains, a.job.Seed)
	if err != nil {
		return nil, err
	}
	if start.Batched() {
		if start.Flat, err = start.Flat.Narrow(0, int64(from), int64(size), false); err != nil {
			return nil, err
		}
	}
	o.Start = start
	if model.Batches != nil {
		if o.Batches, err = model.Batches(program.Batch(), a.job.Seed); err != nil {
			return nil, err
		}
	}
	transform, err := method.Build(program.Target())
	if err != nil {
		return nil, err
	}
	_, driver := transform.(infer.Driver)
	if _, ok := transform.(infer.Restorer); !ok && !driver {
		return infer.Run(ctx, program, method, o) // without checkpoints: a death begins the task again
	}
	dir, err := os.MkdirTemp("", "kelvin-task-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	o.Checkpoint = &infer.Checkpoint{Dir: filepath.Join(dir, "run"), Every: a.job.Every, Resume: true,
		Model: a.job.Model + " " + a.job.Method}
	c := &courier{attempt: a, dir: o.Checkpoint.Dir}
	if err := c.restore(ctx); err != nil {
		return nil, err
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() { defer close(ended); c.follow(ctx, done) }()
	r, err := infer.Run(ctx, program, method, o)
	close(done)
	<-ended
	if errors.Is(err, infer.ErrCheckpoint) {
		c.forget(ctx) // it cannot be used: the next try begins anew
	}
	return r, err
}
