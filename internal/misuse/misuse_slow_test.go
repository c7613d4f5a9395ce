//go:build slow

package main

import "testing"

// Hostile arguments are an error, or a typed panic where a function has no error to return, and never the end of the
// process: every public function is called with one argument after the other nil, negative, huge, not a number, empty,
// or a function that panics, while the others are right, and then so are the methods of what it returns.
func TestMisuse(t *testing.T) {
	calls := supervise(t, "rows", len(rows), func(i int) string { return rows[i].key }, exceptions)
	t.Logf("seen: %d public functions and methods, %d calls, %d exceptions", len(rows), calls, len(exceptions))
}
