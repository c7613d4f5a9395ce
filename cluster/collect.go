package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/nats-io/nats.go/jetstream"
)

// pollEvery is how often the results are looked for where no worker tells of one, because the server was away.
const pollEvery = time.Second

// refusedFor is how long a run waits for a worker that takes its tasks where others refuse them.
const refusedFor = 2 * time.Second

// wait ends when all tasks have a result.
func (c *client) wait(ctx context.Context) error {
	failed := c.local(ctx)
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	left := len(c.tasks)
	fetch := func(i int) error {
		if c.results[i] != nil {
			return nil
		}
		var o outcome
		err := again(ctx, func(ctx context.Context) error {
			entry, err := c.bucket.keys.Get(ctx, c.tasks[i].key())
			if err != nil {
				return err
			}
			return json.Unmarshal(entry.Value(), &o)
		})
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			return nil
		}
		if err == nil {
			c.results[i] = &o
			left--
			c.board.finished(len(c.tasks) - left)
		}
		return err
	}
	for left > 0 {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
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
		if err != nil {
			return err
		}
	}
	return nil
}

// remove ends the run on the server and for all its workers.
func (c *client) remove() error {
	c.board.end()
	if c.stop != nil {
		c.stop()
	}
	_ = c.link.nc.Publish(cancelSubject+c.bucket.run, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
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
	chains := 0
	for _, t := range c.tasks {
		if t.cell == cell {
			chains = max(chains, t.from+t.Options.Chains)
		}
	}
	ctx := context.Background()
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
		if o.Object == "" {
			continue
		}
		one, cancel := context.WithTimeout(ctx, time.Minute)
		raw, err := c.bucket.get(one, o.Object)
		cancel()
		if err == nil && all == nil {
			all, err = draws.New(program.Layout().Sites, o.Stats, chains)
		}
		if err == nil {
			err = addRows(all, t.from, program.Layout().Dim(), *o, raw)
		}
		if err != nil {
			return nil, errors.Join(failed, fmt.Errorf("the draws of task %d: %w", t.Number, err))
		}
		for key, value := range o.Attrs {
			all.SetAttr(key, value)
		}
		for _, n := range o.Notes {
			if !slices.Contains(all.Notes(), n) {
				all.AddNote(n)
			}
		}
		if o.Differs != "" {
			all.AddNote(draws.Note{Kind: "mixed_cluster",
				Text: fmt.Sprintf("chains %d to %d were drawn by a worker of another %s: they equal those of a local "+
					"run in law, not in every bit", t.from, t.from+t.Options.Chains-1, o.Differs),
				Advice: "leave cluster.Options.Mixed false for equal bits"})
		}
	}
	if all == nil || all.Total() == 0 {
		return nil, failed
	}
	named, err := program.Draws(all, program.Batch())
	if err == nil && named != all {
		for key, value := range all.Attrs() {
			named.SetAttr(key, value)
		}
		for _, n := range all.Notes() {
			named.AddNote(n)
		}
	}
	return named, errors.Join(failed, err)
}
