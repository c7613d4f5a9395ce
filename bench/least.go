package bench

import (
	"math"
	"runtime"
	"runtime/debug"
	"time"
)

// Least is the least CPU time of a call, in microseconds, over segments of at least a fifth of a millisecond.
func Least(seconds float64, call func() error) (float64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	n, best := 1, math.Inf(1)
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	for time.Now().Before(end) || math.IsInf(best, 1) {
		runtime.GC()
		before := debug.SetGCPercent(-1)
		for range 20 {
			began := threadTime()
			for range n {
				if err := call(); err != nil {
					debug.SetGCPercent(before)
					return 0, err
				}
			}
			took := threadTime() - began
			if took < 200*time.Microsecond {
				n *= 2
				continue
			}
			best = min(best, float64(took.Nanoseconds())/1e3/float64(n))
		}
		debug.SetGCPercent(before)
	}
	return best, nil
}
