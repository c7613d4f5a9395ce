//go:build slow

package infer

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/testkit"
)

func TestFuzzCheckpoints(t *testing.T) { testkit.Fuzz(t, "FuzzReadCheckpoint", testkit.FuzzExecutions) }
