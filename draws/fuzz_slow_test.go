//go:build slow

package draws

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/fuzzing"
)

func TestFuzzCSV(t *testing.T) { fuzzing.Run(t, "FuzzReadCSV", fuzzing.Executions) }
