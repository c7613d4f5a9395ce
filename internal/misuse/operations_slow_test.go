//go:build slow

package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// perProcess is how many operations a process calls.
const perProcess = 100

// Operations of libtorch with random arguments give an error or a value. Those that end the process or hang are known:
// they are outside the promise, and docs/reliability.md names them. Where a process ends, the next one goes on with the
// operation after; one that is not known to end it is called again in a process of its own.
func TestOperations(t *testing.T) {
	patience := func(call string) time.Duration {
		if isOutside(call) != "" {
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
			if isOutside(name) == "" {
				alone := start(t, dir, "operations", c.at, c.at+1, patience)
				t.Errorf("%s ended the process (%v, hangs: %t; by itself: %v, hangs: %t): %s", name, c.err, c.hangs, alone.err,
					alone.hangs, c.stderr)
			}
			next = c.at + 1
		}
	}
	known := map[string]bool{}
	for _, op := range operations {
		known[op.name] = true
	}
	for name := range outside {
		assert.True(t, known[name], "%s is no operation", name)
	}
	names := slices.Sorted(maps.Keys(ended))
	t.Logf("ended the process: %s", strings.Join(names, " "))
	t.Logf("seen: %d operations, %d calls, %d end the process or hang, as is known", len(operations), calls, len(names))
}
