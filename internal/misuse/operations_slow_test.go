//go:build slow

package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// perProcess is how many operations a process calls.
const perProcess = 100

// Operations of libtorch with random arguments give an error or a value, but for those that are outside the promise, as
// docs/reliability.md has it. Where a process ends, the next one goes on with the
// operation after; one within the promise is called again in a process of its own.
func TestOperations(t *testing.T) {
	patience := func(call string) time.Duration {
		if isOutside(call) {
			return 5 * time.Second
		}
		return time.Minute
	}
	dir := t.TempDir()
	calls := 0
	ended := map[string]bool{}
	for from := 0; from < len(operations); from += perProcess {
		to := min(from+perProcess, len(operations))
		for next := from; next < to; {
			c := start(t, dir, "operations", next, to, patience)
			calls += c.calls
			if c.done {
				break
			}
			name := operations[c.at].name
			ended[name] = true
			if !isOutside(name) {
				alone := start(t, dir, "operations", c.at, c.at+1, patience)
				t.Errorf("%s ended the process (%v, hangs: %t; by itself: %v, hangs: %t): %s", name, c.err, c.hangs, alone.err,
					alone.hangs, c.stderr)
			}
			next = c.at + 1
		}
	}
	names := slices.Sorted(maps.Keys(ended))
	t.Logf("took too long: %s", strings.Join(names, " "))
	t.Logf("seen: %d operations, %d calls, %d take too long, as is known", len(operations), calls, len(names))
}
