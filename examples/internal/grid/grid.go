// Package grid runs the cells of a study, a few at once, and keeps what each gave in a file, so that a study that was
// killed goes on with the cells that are left.
package grid

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

// Grid is a study. Cells whose results are in Dir are read; those that were under way go on from their checkpoints.
type Grid[R any] struct {
	Settings any // all that the results depend on; Dir must hold no results of others
	Cells    []Cell[R]
	Dir      string
	Workers  int // cells at once
	// Observer sees all updates of all cells, one at a time: Step and Steps are those of the grid; nil for none.
	Observer infer.Observer
}

// Cell is a part of a study with a result of its own.
type Cell[R any] struct {
	Name    string // of its file
	Updates int    // of all its runs
	// Run computes it. Its checkpoints belong into dir, and identity is the model's name in them.
	Run func(ctx context.Context, dir, identity string, observer infer.Observer) (R, error)
}

// Run returns the results in the order of the cells.
func (g *Grid[R]) Run(ctx context.Context) ([]R, error) {
	if g.Workers < 1 {
		return nil, fmt.Errorf("workers is %d, it must be at least 1", g.Workers)
	}
	if err := os.MkdirAll(g.Dir, 0o755); err != nil {
		return nil, err
	}
	identity, err := json.Marshal(g.Settings)
	if err != nil {
		return nil, err
	}
	if err := g.Claim(); err != nil {
		return nil, err
	}
	results := make([]R, len(g.Cells))
	var open []int
	count := &counter{then: g.Observer}
	for i, c := range g.Cells {
		count.steps += c.Updates
		switch text, err := os.ReadFile(g.path(c)); {
		case errors.Is(err, fs.ErrNotExist):
			open = append(open, i)
		case err != nil:
			return nil, err
		default:
			if err := json.Unmarshal(text, &results[i]); err != nil {
				return nil, fmt.Errorf("%s: %w: remove it to run this cell again", g.path(c), err)
			}
			count.done += c.Updates
		}
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next := make(chan int, len(open))
	for _, i := range open {
		next <- i
	}
	close(next)
	failures := make([]error, len(g.Cells))
	var group sync.WaitGroup
	for range max(1, min(g.Workers, len(open))) {
		group.Go(func() {
			for i := range next {
				if ctx.Err() != nil {
					failures[i] = ctx.Err()
					continue
				}
				if results[i], failures[i] = g.cell(ctx, g.Cells[i], string(identity), count); failures[i] != nil {
					failures[i] = fmt.Errorf("%s: %w", g.Cells[i].Name, failures[i])
					cancel() // the others save themselves and stop
				}
			}
		})
	}
	group.Wait()
	// What failed by itself says more than what was stopped for it.
	slices.SortStableFunc(failures, func(a, b error) int { return rank(a) - rank(b) })
	if len(failures) > 0 && failures[0] != nil {
		return nil, failures[0]
	}
	return results, os.RemoveAll(filepath.Join(g.Dir, "running"))
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

func (g *Grid[R]) path(c Cell[R]) string { return filepath.Join(g.Dir, c.Name+".json") }

// cell runs one and stores it.
func (g *Grid[R]) cell(ctx context.Context, c Cell[R], identity string, count *counter) (r R, err error) {
	running := filepath.Join(g.Dir, "running", c.Name)
	if err := os.MkdirAll(running, 0o755); err != nil {
		return r, err
	}
	if r, err = c.Run(ctx, running, identity, count.of()); err != nil {
		return r, err
	}
	if err := classify.WriteJSON(g.path(c), r); err != nil {
		return r, err
	}
	return r, os.RemoveAll(running)
}

// Claim stores the settings in the folder, or compares with those that are there.
func (g *Grid[R]) Claim() error {
	path := filepath.Join(g.Dir, "settings.json")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		for _, c := range g.Cells {
			if _, err := os.Stat(g.path(c)); err == nil {
				return fmt.Errorf("%s has results and no settings.json that says of what: remove the folder, or choose another "+
					"with -dir", g.Dir)
			}
		}
		return classify.WriteJSON(path, g.Settings)
	}
	if err != nil {
		return err
	}
	here, err := json.Marshal(g.Settings)
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
				g.Dir, name, orNothing(there.String()), wanted[name])
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
	done, steps int
	then        infer.Observer
}

// of is the observer of one cell.
func (c *counter) of() infer.Observer {
	last := 0
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
