//go:build slow

package dist

// TailsOf are log P(X ≤ x) and log P(X > x), for the tests.
var TailsOf = tailsOf
