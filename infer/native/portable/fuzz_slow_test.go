//go:build slow

package portable

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/testkit"
)

// Any bytes in the place of an exported model are an error or a model, in a process of 512 MB.
func TestFuzzReaders(t *testing.T) { testkit.Fuzz(t, "FuzzBody", testkit.FuzzExecutions) }
