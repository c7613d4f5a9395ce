// Package parallel runs functions in goroutines whose panics do not end the process: they come back to whoever waits.
// It does not limit how many run. Every goroutine of the library is one of these, or recovers by itself, which
// `lint goroutines` checks.
package parallel

import "sync"

// Group is functions that run beside the caller. The zero value is one of none.
type Group struct {
	wait     sync.WaitGroup
	mu       sync.Mutex
	panicked any
}

// Go runs f in a goroutine of its own.
func (g *Group) Go(f func()) {
	g.wait.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				g.mu.Lock()
				defer g.mu.Unlock()
				if g.panicked == nil {
					g.panicked = v
				}
			}
		}()
		f()
	})
}

// Wait waits for all functions, and panics with what the first of them panicked with that did.
func (g *Group) Wait() {
	g.wait.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.panicked != nil {
		panic(g.panicked)
	}
}
