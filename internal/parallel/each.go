package parallel

import (
	"runtime"
	"sync/atomic"
)

// Each calls f for each number below n, several at once, until one fails, and returns its error.
func Each(n int, f func(k int) error) error {
	workers := min(n, runtime.GOMAXPROCS(0))
	if workers == 1 {
		for k := range n {
			if err := f(k); err != nil {
				return err
			}
		}
		return nil
	}
	var failed atomic.Pointer[error]
	var next atomic.Int64
	var all Group
	for range workers {
		all.Go(func() {
			for k := int(next.Add(1)) - 1; k < n && failed.Load() == nil; k = int(next.Add(1)) - 1 {
				if err := f(k); err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}
