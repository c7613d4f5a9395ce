package cluster

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Sample is [infer.Sample] with the chains as tasks of many workers:
//
//	draws, err := cluster.Sample(ctx, program, hmc.NUTS{}, cluster.Options{Model: "schools", URL: "nats://..."})
//
// The draws are those of a local run with the same Group, bit for bit, with any number of workers and deaths, where the
// workers have the same type of processor. When the run is cancelled or tasks fail, the draws of the tasks that ended
// come back with the error. A task that failed is a [TaskError].
func Sample(ctx context.Context, program infer.Program, method infer.Method, o Options) (*draws.Draws, error) {
	d, err := sample(ctx, program, method, o)
	if err != nil {
		err = fmt.Errorf("cluster.Sample: %w", err)
	}
	return d, err
}

func sample(ctx context.Context, program infer.Program, method infer.Method, o Options) (*draws.Draws, error) {
	if ctx == nil || program == nil || method == nil {
		return nil, fmt.Errorf("context, program or method is nil: %w", infer.ErrConfig)
	}
	o, err := o.resolved(method)
	if err != nil {
		return nil, err
	}
	r, err := prepare(program, method, o)
	if err != nil {
		return nil, err
	}
	if o.URL == "" {
		if o.Folder == "" {
			if o.Folder, err = os.MkdirTemp("", "kelvin-cluster-"); err != nil {
				return nil, err
			}
			defer os.RemoveAll(o.Folder)
		}
		s, err := serve(&server.Options{DontListen: true, StoreDir: o.Folder})
		if err != nil {
			return nil, err
		}
		defer stop(s)
		o.NATS = append([]nats.Option{nats.InProcessServer(s)}, o.NATS...)
	}
	if r.link, err = connect(ctx, o.URL, o.NATS); err != nil {
		return nil, err
	}
	defer r.link.nc.Close()
	inside, cancel := context.WithCancel(ctx)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer cancel()
	failed := make(chan error, o.Workers)
	for range o.Workers {
		workers.Go(func() {
			if err := Work(inside, o.URL, o.NATS...); err != nil {
				failed <- err
				cancel()
			}
		})
	}
	d, err := r.run(inside)
	if ctx.Err() == nil && err != nil {
		select {
		case cause := <-failed:
			err = cause
		default:
		}
	}
	return d, err
}

// prepare says what the job is.
func prepare(program infer.Program, method infer.Method, o Options) (*run, error) {
	model, err := lookUp(o.Model)
	if err != nil {
		return nil, err
	}
	r := &run{program: program, results: map[int]result{}, starts: map[string]bool{}, workers: map[string]bool{},
		refused: map[string]string{}, steps: map[int]int64{}, tell: o.Progress}
	r.job = job{ID: strings.ToLower(rand.Text()), Model: o.Model, Layout: program.Layout().String(), Chains: o.Chains,
		Warmup: o.Warmup, Draws: o.Draws, Thin: o.Thin, Group: min(o.Group, o.Chains), Seed: o.Seed,
		FirstChain: o.FirstChain, Cycles: o.Cycles, Discard: o.Discard, Native: o.Native, MaxBytes: o.MaxBytes}
	if o.Checkpoint != nil {
		r.job.Every = o.Checkpoint.Every
	}
	if r.job.Method, err = model.named(method, o.Method); err != nil {
		return nil, err
	}
	if r.job.Data, err = hash(program.Batch()); err != nil {
		return nil, err
	}
	r.job.Identity, err = own()
	return r, err
}
