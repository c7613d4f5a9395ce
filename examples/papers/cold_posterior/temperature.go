package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/kelvin-ppl/kelvin/examples/internal/classify"
	"github.com/kelvin-ppl/kelvin/infer"
)

// thermometer is an [infer.Thermometer] that writes its readings to a file, because a checkpoint does not hold
// them. The file is written before the checkpoint of the same update, so that a run that goes on finds all
// readings up to there.
type thermometer struct {
	infer.Thermometer
	path string
	seen bool
}

// newThermometer reads configurational temperatures on all training data.
func newThermometer(t *classify.Task, when func(updates int) bool, path string) (*thermometer, error) {
	reader, err := t.Thermometer(when)
	if err != nil {
		return nil, err
	}
	m := &thermometer{path: path, Thermometer: reader}
	switch text, err := os.ReadFile(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		if err := json.Unmarshal(text, &m.Readings); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return m, nil
}

// Observe reads the temperatures when it is time to.
func (t *thermometer) Observe(p infer.Progress) {
	if !t.seen { // readings after the checkpoint that the run goes on from will come again
		t.seen = true
		for n := len(t.Readings); n > 0 && t.Readings[n-1].Updates > p.Resumed; n-- {
			t.Readings = t.Readings[:n-1]
		}
	}
	before := len(t.Readings)
	t.Thermometer.Observe(p)
	if len(t.Readings) > before {
		t.Err = classify.WriteJSON(t.path, t.Readings)
	}
}
