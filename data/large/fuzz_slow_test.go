//go:build slow

package large_test

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/testkit"
)

// Any bytes in the place of a file are a table or an error, in processes of 512 MB.
func TestFuzzOpen(t *testing.T) { testkit.Fuzz(t, "FuzzOpen", testkit.FuzzExecutions) }
