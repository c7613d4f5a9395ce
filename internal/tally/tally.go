// Package tally lets what runs inside models, beside tensors, tell a run how it went: solutions of differential
// equations that fail, for instance, which to a method are divergences like others.
package tally

import (
	"sync"

	"github.com/kelvin-ppl/kelvin/draws"
)

// Counter begins to count. What it returns says what there is to say of the time since.
type Counter func() (notes func() []draws.Note)

var (
	mu       sync.Mutex
	counters []Counter
)

// Add adds a counter to all runs that begin later.
func Add(c Counter) {
	mu.Lock()
	defer mu.Unlock()
	counters = append(counters, c)
}

// Begin begins to count for a run. The counters are those of the process: what other runs do at the same time is
// counted too.
func Begin() (notes func() []draws.Note) {
	mu.Lock()
	defer mu.Unlock()
	var all []func() []draws.Note
	for _, c := range counters {
		all = append(all, c())
	}
	return func() (out []draws.Note) {
		for _, one := range all {
			out = append(out, one()...)
		}
		return out
	}
}
