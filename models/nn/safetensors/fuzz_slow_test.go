//go:build slow

package safetensors

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/testkit"
)

// Any bytes in the place of weights are an error or weights, in a process of 512 MB.
func TestFuzzReader(t *testing.T) { testkit.Fuzz(t, "FuzzRead", testkit.FuzzExecutions) }
