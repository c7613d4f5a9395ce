//go:build slow

package store

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/testkit"
)

func TestFuzzChunks(t *testing.T) { testkit.Fuzz(t, "FuzzDecompress", testkit.FuzzExecutions) }
