//go:build slow

package draws

import (
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/internal/fuzzing"
)

func TestFuzzCSV(t *testing.T) { fuzzing.Run(t, "FuzzReadCSV", 20*time.Second) }
