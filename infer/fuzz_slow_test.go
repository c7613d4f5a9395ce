//go:build slow

package infer

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/fuzzing"
)

func TestFuzzCheckpoints(t *testing.T) { fuzzing.Run(t, "FuzzReadCheckpoint", fuzzing.Executions) }
