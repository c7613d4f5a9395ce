package main

import "testing"

// The comparison runs on small networks: shapes, types and layers fit.
func TestQuick(t *testing.T) {
	if err := run(true); err != nil {
		t.Fatal(err)
	}
}
