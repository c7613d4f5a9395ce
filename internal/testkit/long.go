package testkit

import "testing"

// MostCases skips a test that takes minutes where [Slow] cases are not asked for.
func MostCases(t testing.TB) {
	t.Helper()
	if !Slow {
		t.Skip("it takes minutes: make test-slow runs it")
	}
}

// Long skips a test that takes long where short ones are asked for (go test -short), as make test-fast does.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes long: make test runs it")
	}
}
