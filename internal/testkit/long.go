package testkit

import "testing"

// Long skips a test that takes long where short ones are asked for (go test -short), as make test-fast does.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes long: make test runs it")
	}
}
