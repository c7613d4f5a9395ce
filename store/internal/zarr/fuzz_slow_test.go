//go:build slow

package zarr

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/testkit"
)

func TestFuzzChunks(t *testing.T) { testkit.Fuzz(t, "FuzzDecompress", testkit.FuzzExecutions) }
