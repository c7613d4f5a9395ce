package foreign

import (
	"sync"

	"github.com/kelvin-ppl/kelvin/draws"
)

// Counter begins to count how what runs inside models beside tensors goes: solutions of differential equations that
// fail, for instance, which to a method are divergences like others.
type Counter func() Count

// Count is of the time since a counter began.
type Count struct {
	Notes func() []draws.Note // what there is to say
	Aside func(f func())      // calls f, which does not count
}

var counters struct {
	sync.Mutex
	all []Counter
}

// AddCounter adds a counter to all runs that begin later.
func AddCounter(c Counter) {
	counters.Lock()
	defer counters.Unlock()
	counters.all = append(counters.all, c)
}

// BeginCount begins to count for a run. The counters are those of the process: what other runs do at the same time is
// counted too.
func BeginCount() Count {
	counters.Lock()
	defer counters.Unlock()
	all := Count{Notes: func() []draws.Note { return nil }, Aside: func(f func()) { f() }}
	for _, c := range counters.all {
		before, one := all, c()
		all.Notes = func() []draws.Note { return append(before.Notes(), one.Notes()...) }
		all.Aside = func(f func()) { before.Aside(func() { one.Aside(f) }) }
	}
	return all
}
