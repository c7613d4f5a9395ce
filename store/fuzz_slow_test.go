//go:build slow

package store

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/testkit"
)

// Any bytes in the place of stored draws are an error or draws, in a process of 512 MB.
func TestFuzzReaders(t *testing.T) {
	for _, target := range []string{"FuzzReadCSV", "FuzzReadJSON", "FuzzReadZarr"} {
		t.Run(target, func(t *testing.T) { testkit.Fuzz(t, target, testkit.FuzzExecutions) })
	}
}
