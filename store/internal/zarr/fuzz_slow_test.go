//go:build slow

package zarr

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/fuzzing"
)

func TestFuzzChunks(t *testing.T) { fuzzing.Run(t, "FuzzDecompress", fuzzing.Executions) }
