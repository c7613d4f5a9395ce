// Package tally lets what runs inside models, beside tensors, tell a run how it went: solutions of differential
// equations that fail, for instance, which to a method are divergences like others.
package tally

import (
	"sync"

	"github.com/kelvin-ppl/kelvin/draws"
)

// Counter begins to count.
type Counter func() Count

// Count is of the time since a counter began.
type Count struct {
	Notes func() []draws.Note // what there is to say
	Aside func(f func())      // calls f, which does not count
}

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
func Begin() Count {
	mu.Lock()
	defer mu.Unlock()
	all := Count{Notes: func() []draws.Note { return nil }, Aside: func(f func()) { f() }}
	for _, c := range counters {
		before, one := all, c()
		all.Notes = func() []draws.Note { return append(before.Notes(), one.Notes()...) }
		all.Aside = func(f func()) { before.Aside(func() { one.Aside(f) }) }
	}
	return all
}
