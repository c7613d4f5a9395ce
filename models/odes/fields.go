package odes

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
)

// fields checks the fields of a configuration. It keeps the first error.
type fields struct {
	config string // "odes.SIR"
	err    error
}

func (f *fields) fail(field string, value any, allowed string, args ...any) {
	if f.err == nil {
		f.err = &infer.FieldError{Type: f.config, Field: field, Value: value, Allowed: fmt.Sprintf(allowed, args...)}
	}
}

// times checks the times of observations.
func (f *fields) times(t []float64) {
	if len(t) == 0 {
		f.fail("Times", "empty", "it needs data")
	}
	before := 0.0
	for i, x := range t {
		if !(x >= before) || x-x != 0 {
			f.fail("Times", fmt.Sprintf("%v at index %d", x, i), "times must be finite, not negative and not decrease")
		}
		before = x
	}
}

// numbers checks n numbers.
func (f *fields) numbers(field string, v []float64, n int, ok func(float64) bool, allowed string) {
	if len(v) != n {
		f.fail(field, fmt.Sprintf("%d numbers", len(v)), "there must be %d, one for each time", n)
	}
	for i, x := range v {
		if !ok(x) {
			f.fail(field, fmt.Sprintf("%v at index %d", x, i), "every number must be %s", allowed)
			return
		}
	}
}
