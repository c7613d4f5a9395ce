package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/kelvin-ppl/kelvin/examples/internal/classify"
	"github.com/kelvin-ppl/kelvin/infer"
)

// sweep runs all cells, a few at once, and stores each in dir when it is done. Cells that are there already are read,
// and those that were under way go on from their last checkpoint. Every is the number of updates between checkpoints.
type sweep struct {
	settings settings
	task     *classify.Task
	dir      string
	workers  int
	every    int64
	// of all updates of all cells, one at a time: Step and Steps are those of the sweep; nil for none
	observer infer.Observer
}

// run returns the results in the order of the cells.
func (w *sweep) run(ctx context.Context) ([]*result, error) {
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		return nil, err
	}
	identity, err := json.Marshal(w.settings)
	if err != nil {
		return nil, err
	}
	if err := w.claim(); err != nil {
		return nil, err
	}
	cells := w.settings.cells()
	results := make([]*result, len(cells))
	var open []int
	count := &counter{then: w.observer}
	for i, c := range cells {
		updates := w.settings.updates(c) * int64(c.runs)
		count.steps += updates
		switch text, err := os.ReadFile(w.path(c)); {
		case errors.Is(err, fs.ErrNotExist):
			open = append(open, i)
		case err != nil:
			return nil, err
		default:
			if err := json.Unmarshal(text, &results[i]); err != nil {
				return nil, fmt.Errorf("%s: %w: remove it to run this cell again", w.path(c), err)
			}
			count.done += updates
		}
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next := make(chan int, len(open))
	for _, i := range open {
		next <- i
	}
	close(next)
	failures := make([]error, len(cells))
	var group sync.WaitGroup
	for range max(1, min(w.workers, len(open))) {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range next {
				if ctx.Err() != nil {
					failures[i] = ctx.Err()
					continue
				}
				if results[i], failures[i] = w.cell(ctx, cells[i], string(identity), count); failures[i] != nil {
					failures[i] = fmt.Errorf("%s: %w", cells[i].name(), failures[i])
					cancel() // the others save themselves and stop
				}
			}
		}()
	}
	group.Wait()
	// What failed by itself says more than what was stopped for it.
	slices.SortStableFunc(failures, func(a, b error) int { return rank(a) - rank(b) })
	if failures[0] != nil {
		return nil, failures[0]
	}
	return results, os.RemoveAll(filepath.Join(w.dir, "running"))
}

// rank orders errors: real ones, cancelled runs, none.
func rank(err error) int {
	switch {
	case err == nil:
		return 2
	case errors.Is(err, context.Canceled):
		return 1
	}
	return 0
}

func (w *sweep) path(c cell) string { return filepath.Join(w.dir, c.name()+".json") }

// cell runs one and stores it.
func (w *sweep) cell(ctx context.Context, c cell, identity string, count *counter) (*result, error) {
	running := filepath.Join(w.dir, "running", c.name())
	r, err := w.settings.runCell(ctx, w.task, c, running, identity, w.every, count.of())
	if err != nil {
		return nil, err
	}
	if err := classify.WriteJSON(w.path(c), r); err != nil {
		return nil, err
	}
	return r, os.RemoveAll(running)
}

// claim stores the settings in dir, or compares with those that are there.
func (w *sweep) claim() error {
	path := filepath.Join(w.dir, "settings.json")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return classify.WriteJSON(path, w.settings)
	}
	if err != nil {
		return err
	}
	here, err := json.Marshal(w.settings)
	if err != nil {
		return err
	}
	var stored, wanted map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(text, &stored), json.Unmarshal(here, &wanted)); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var names []string
	for name := range wanted {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		var there bytes.Buffer
		if len(stored[name]) > 0 {
			if err := json.Compact(&there, stored[name]); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		if !bytes.Equal(there.Bytes(), wanted[name]) {
			return fmt.Errorf(
				"%s holds a sweep with other settings: %s is %s there and %s here: remove the folder, or choose another with -dir",
				w.dir, name, orNothing(there.String()), wanted[name])
		}
	}
	return nil
}

func orNothing(s string) string {
	if s == "" {
		return "missing"
	}
	return s
}

// counter makes one progress of those of all cells.
type counter struct {
	mu          sync.Mutex
	done, steps int64
	then        infer.Observer
}

// of is the observer of one cell.
func (c *counter) of() infer.Observer {
	last := int64(0)
	return infer.ObserverFunc(func(p infer.Progress) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if p.Step < last { // the next run of the cell
			last = 0
		}
		c.done += p.Step - last
		last = p.Step
		if c.then != nil {
			p.Step, p.Steps = c.done, c.steps
			c.then.Observe(p)
		}
	})
}
