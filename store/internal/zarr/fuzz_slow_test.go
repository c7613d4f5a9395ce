//go:build slow

package zarr

import (
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/internal/fuzzing"
)

func TestFuzzChunks(t *testing.T) { fuzzing.Run(t, "FuzzDecompress", 20*time.Second) }
