package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/kelvin-ppl/kelvin/examples/internal/classify"
)

// trial is one run with one seed: what is stored when it is done.
type trial interface {
	kind() string // part of the name of its file
	run(ctx context.Context) (values, error)
}

// values are what a trial measured, by name.
type values map[string]float64

// stored is a file: the settings say what it is of.
type stored struct {
	Settings json.RawMessage `json:"settings"`
	Values   values          `json:"values"`
}

// key names a trial by its settings, which are all that its values depend on.
func key(t trial) (string, []byte, error) {
	settings, err := json.Marshal(t)
	sum := sha256.Sum256(settings)
	return fmt.Sprintf("%s-%x", t.kind(), sum[:8]), settings, err
}

// study runs trials, a few at once, and stores each in dir when it is done. Those that are there already are read.
type study struct {
	dir      string
	trials   []trial
	workers  int
	progress io.Writer
}

// run returns the values by key.
func (s *study) run(ctx context.Context) (map[string]values, error) {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, err
	}
	results := map[string]values{}
	open := map[string]trial{}
	var order []string
	for _, t := range s.trials {
		name, settings, err := key(t)
		if err != nil {
			return nil, err
		}
		if results[name] != nil || open[name] != nil {
			continue
		}
		path := filepath.Join(s.dir, name+".json")
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			open[name], order = t, append(order, name)
			continue
		}
		if err != nil {
			return nil, err
		}
		var there stored
		if err := json.Unmarshal(text, &there); err != nil {
			return nil, fmt.Errorf("%s: %w: remove it to run this trial again", path, err)
		}
		if have, err := compact(there.Settings); err != nil || have != string(settings) || there.Values == nil {
			return nil, fmt.Errorf("%s is of other settings than its name says: remove it to run this trial again", path)
		}
		results[name] = there.Values
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next := make(chan string, len(order))
	for _, name := range order {
		next <- name
	}
	close(next)
	var mu sync.Mutex
	var first error
	var group sync.WaitGroup
	for range min(s.workers, len(order)) {
		group.Add(1)
		go func() {
			defer group.Done()
			for name := range next {
				if ctx.Err() != nil {
					return
				}
				v, err := s.one(ctx, name, open[name])
				mu.Lock()
				if err != nil && first == nil {
					settings, _ := json.Marshal(open[name])
					first = fmt.Errorf("trial %s: %w", settings, err)
					cancel()
				}
				results[name] = v
				if s.progress != nil {
					fmt.Fprintf(s.progress, "\r\x1b[K%d of %d trials", len(results), len(results)+len(next))
				}
				mu.Unlock()
			}
		}()
	}
	group.Wait()
	if first == nil {
		first = ctx.Err()
	}
	return results, first
}

// one runs a trial and stores it.
func (s *study) one(ctx context.Context, name string, t trial) (values, error) {
	v, err := t.run(ctx)
	if err != nil {
		return nil, err
	}
	settings, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	return v, classify.WriteJSON(filepath.Join(s.dir, name+".json"), stored{Settings: settings, Values: v})
}

// compact is JSON without spaces.
func compact(text json.RawMessage) (string, error) {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return "", err
	}
	out, err := json.Marshal(text)
	return string(out), err
}
