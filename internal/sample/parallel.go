package sample

import (
	"runtime"
	"sync"
)

// workers is the number of goroutines that share long computations: two, or one where GOMAXPROCS is one. Results do not
// depend on it.
func workers() int { return min(2, runtime.GOMAXPROCS(0)) }

// Each calls f(0) to f(n-1) from at most two goroutines.
func Each(n int, f func(i int)) {
	var wg sync.WaitGroup
	workers := min(workers(), n)
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n; i += workers {
				f(i)
			}
		})
	}
	wg.Wait()
}
