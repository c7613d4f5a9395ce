// Package sample has the statistics of plain samples that draws and their diagnostics share: moments, quantiles and
// what is built from them. It knows nothing of sites and chains: what needs those is in packages draws and diag.
package sample

import (
	"fmt"
	"runtime"

	"github.com/kelvin-ppl/kelvin/internal/parallel"
)

// failure is an error of a kind with a text of its own.
type failure struct {
	kind error
	text string
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.kind }

// Failf is an error that wraps kind and reads "where: text".
func Failf(where string, kind error, format string, args ...any) error {
	return &failure{kind, where + ": " + fmt.Sprintf(format, args...)}
}

// CheckProbability refuses numbers outside [0, 1], with an error of the kind given.
func CheckProbability(where string, kind error, what string, p float64) error {
	if !(p >= 0 && p <= 1) { // a NaN too
		return Failf(where, kind, "%s: probability is %v, want 0 to 1", what, p)
	}
	return nil
}

// workers is the number of goroutines that share long computations: two, or one where GOMAXPROCS is one. Results do not
// depend on it.
func workers() int { return min(2, runtime.GOMAXPROCS(0)) }

// Each calls f(0) to f(n-1) from at most two goroutines.
func Each(n int, f func(i int)) {
	var all parallel.Group
	workers := min(workers(), n)
	for w := range workers {
		all.Go(func() {
			for i := w; i < n; i += workers {
				f(i)
			}
		})
	}
	all.Wait()
}

// Evenly is at most n of the entries, evenly spaced.
func Evenly[T any](x []T, n int) []T {
	if len(x) <= n {
		return x
	}
	out := make([]T, n)
	for k := range out {
		out[k] = x[k*len(x)/n]
	}
	return out
}
