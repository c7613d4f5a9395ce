package infer

import "time"

// Observer sees a run as it goes. It is called after every update, on the goroutine of [Run], and must not keep what it is
// given.
type Observer interface {
	Observe(Progress)
}

// ObserverFunc is a function as an observer.
type ObserverFunc func(Progress)

// Observe calls f.
func (f ObserverFunc) Observe(p Progress) { f(p) }

// Progress is where a run stands.
type Progress struct {
	Step     int64         // updates done, of all runs of a resumed run
	Steps    int64         // updates asked for
	Draws    int           // draws of each chain so far
	Diverged int64         // updates of single chains that were held because something was not finite
	Elapsed  time.Duration // since this run started or was resumed
	Resumed  int64         // the update that this run was resumed after; 0 when it started afresh
	State    State
	Info     Info
	// FirstChain is the number of the first chain, other than 0 in the groups of an ensemble.
	FirstChain uint64
	// Transform made the state. Optional interfaces tell more about it, for example [Thermal].
	Transform Transform
}
