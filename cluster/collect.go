package cluster

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/parallel"
	"github.com/nats-io/nats.go/jetstream"
)

// pollEvery is how often the results are looked for where no worker tells of one, because the server was away.
const pollEvery = time.Second

// refusedFor is how long a run waits for a worker that takes its tasks where others refuse them.
const refusedFor = 2 * time.Second

// wait ends when all tasks have a result.
func (c *client) wait(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	failed := c.local(ctx)
	var watching parallel.Group
	defer watching.Wait()
	defer cancel(nil)
	watching.Go(func() {
		if err := c.watch(ctx); err != nil {
			cancel(err)
		}
	})
	// libtorch keeps memory of each thread that has mapped draws to values. One thread is enough for all blocks.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	left := len(c.tasks)
	fetch := func(i int) error {
		had := c.results[i] != nil
		err := c.fetch(ctx, i)
		if !had && c.results[i] != nil {
			left--
			c.board.finished(len(c.tasks) - left)
		}
		return err
	}
	for left > 0 {
		var err error
		select {
		case <-ctx.Done():
			return c.over(ctx)
		case err = <-failed:
		case i := <-c.board.done:
			err = fetch(i)
		case <-poll.C:
			for i := range c.tasks {
				if err = fetch(i); err != nil {
					break
				}
			}
			if m := c.board.refused(refusedFor); m != nil && err == nil {
				err = m
			}
		}
		if err != nil && ctx.Err() != nil {
			return c.over(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fetch gets the result of a task, where there is one, and hands its draws to Save.
func (c *client) fetch(ctx context.Context, i int) error {
	if c.results[i] != nil {
		return nil
	}
	var raw []byte
	err := again(ctx, func(ctx context.Context) error {
		entry, err := c.bucket.keys.Get(ctx, c.tasks[i].key())
		if err == nil {
			raw = entry.Value()
		}
		return err
	})
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	o, err := c.tasks[i].unseal(c.link.secret, raw)
	if err == nil {
		err = c.tasks[i].check(o)
	}
	if err != nil {
		return err
	}
	c.results[i] = o
	c.got[i].Store(true)
	return c.stream(ctx, c.tasks[i], o)
}

// over is why a run ended before its tasks.
func (c *client) over(ctx context.Context) error {
	err := context.Cause(ctx)
	c.lost = errors.As(err, new(*lostError))
	return err
}

// atMost is how long the end of a run may ask the server; one that has lost the run gives no more answers.
func (c *client) atMost(long time.Duration) time.Duration {
	if c.lost {
		return min(long, time.Second)
	}
	return long
}

// remove ends the run on the server and for all its workers.
func (c *client) remove() error {
	c.board.end()
	if c.stop != nil {
		c.stop()
	}
	_ = c.link.nc.Publish(cancelSubject+c.bucket.run, nil)
	ctx, cancel := context.WithTimeout(context.Background(), c.atMost(20*time.Second))
	defer cancel()
	return c.bucket.remove(ctx)
}

// collect puts the draws of the tasks together.
func (c *client) collect() ([]*draws.Draws, error) {
	all := make([]*draws.Draws, len(c.cells))
	var failed error
	for i := range c.cells {
		d, err := c.collectCell(i)
		failed = errors.Join(failed, err)
		all[i] = d
	}
	return all, failed
}

func (c *client) collectCell(cell int) (*draws.Draws, error) {
	program := c.cells[cell].Program
	var all *draws.Draws
	var failed error
	for i, t := range c.tasks {
		o := c.results[i]
		if t.cell != cell || o == nil {
			continue
		}
		if o.Error != "" {
			failed = errors.Join(failed, &TaskError{Cell: cell, Chains: [2]int{t.from, t.from + t.Options.Chains - 1},
				Tries: o.Tries, Text: o.Error})
			continue
		}
		if o.Draws == "" || c.o.Discard {
			continue
		}
		var err error
		if all == nil {
			all, err = draws.New(program.Layout().Sites, o.Stats, c.chains(cell))
		}
		if err == nil {
			err = unpackRows(t.from, all.Dim(), o, c.blocks(context.Background(), o), all.AppendChain)
		}
		if err != nil {
			return nil, errors.Join(failed, fmt.Errorf("the draws of task %d: %w", t.Number, err))
		}
		annotate(all, t, o)
	}
	if all == nil || all.Total() == 0 {
		return nil, failed
	}
	named, err := named(program, all)
	return named, errors.Join(failed, err)
}

// chains is the number of chains of a cell.
func (c *client) chains(cell int) (n int) {
	for _, t := range c.tasks {
		if t.cell == cell {
			n = max(n, t.from+t.Options.Chains)
		}
	}
	return n
}

// blocks gives the blocks of a task's draws, one after the other.
func (c *client) blocks(ctx context.Context, o *outcome) func() ([]byte, error) {
	next := 0
	return func() ([]byte, error) {
		next++
		if o.Blocks == 0 && next == 1 {
			return o.Small, nil
		}
		if next > o.Blocks {
			return nil, nil
		}
		one, cancel := context.WithTimeout(ctx, c.atMost(time.Minute))
		defer cancel()
		block, err := c.bucket.draws.get(one, o.block(next-1))
		if err == nil {
			err = o.intact(next-1, block)
		}
		return block, err
	}
}

// annotate copies what a task tells of its draws.
func annotate(d *draws.Draws, t task, o *outcome) {
	for key, value := range o.Attrs {
		d.SetAttr(key, value)
	}
	for _, n := range o.Notes {
		d.AddNote(n)
	}
	if o.Differs != "" {
		d.AddNote(draws.Note{Kind: "mixed_cluster",
			Text: fmt.Sprintf("chains %d to %d were drawn by a worker of another %s: they equal those of a local "+
				"run in law, not in every bit", t.from, t.from+t.Options.Chains-1, o.Differs),
			Advice: "leave cluster.Options.Mixed false for equal bits"})
	}
}

// named maps draws to named values, and keeps what is told of them.
func named(program infer.Program, d *draws.Draws) (*draws.Draws, error) {
	named, err := program.Draws(d, program.Batch())
	if err == nil {
		d.NamedAs(named)
	}
	return named, err
}
