//go:build slow

package infer

import (
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/internal/fuzzing"
)

func TestFuzzCheckpoints(t *testing.T) { fuzzing.Run(t, "FuzzReadCheckpoint", 20*time.Second) }
