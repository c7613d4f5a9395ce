package mcmc

import (
	"cmp"
	"slices"
	"sync"
)

// desk evaluates what chains in goroutines of their own ask for, in batches: a chain that needs a value waits until
// all live chains do, and the last one evaluates all points at once, in the order of the chains. Which points are in a
// batch depends on how many each chain has asked for, never on timing.
type desk struct {
	mu      sync.Mutex
	live    int
	waiting []*asked
	eval    func(x, values, grads []float64) error
	graded  bool
}

// asked is one point, and the answer.
type asked struct {
	chain int
	x, g  []float64
	v     float64
	err   error
	done  chan struct{}
}

// ask is the value at x, with the gradient in g.
func (d *desk) ask(chain int, x, g []float64) (float64, error) {
	a := &asked{chain: chain, x: x, g: g, done: make(chan struct{})}
	d.mu.Lock()
	d.waiting = append(d.waiting, a)
	d.serve()
	d.mu.Unlock()
	<-a.done
	return a.v, a.err
}

// leave is the end of a chain.
func (d *desk) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live--
	d.serve()
}

// serve evaluates what is asked for, if all live chains wait.
func (d *desk) serve() {
	if len(d.waiting) == 0 || len(d.waiting) < d.live {
		return
	}
	slices.SortFunc(d.waiting, func(a, b *asked) int { return cmp.Compare(a.chain, b.chain) })
	var x, grads []float64
	values := make([]float64, len(d.waiting))
	for _, a := range d.waiting {
		x = append(x, a.x...)
	}
	if d.graded {
		grads = make([]float64, len(x))
	}
	err := guarded(func() error { return d.eval(x, values, grads) })
	for i, a := range d.waiting {
		a.v, a.err = values[i], err
		if a.g != nil && err == nil {
			copy(a.g, grads[i*len(a.g):])
		}
		close(a.done)
	}
	d.waiting = nil
}
