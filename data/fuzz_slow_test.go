//go:build slow

package data_test

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/testkit"
)

// Any bytes in the place of a file are a table or an error, in processes of 512 MB.
func TestFuzzCSV(t *testing.T) { testkit.Fuzz(t, "FuzzCSV", testkit.FuzzExecutions) }

// Any bytes in the place of a saved design are a design or an error, in such processes too.
func TestFuzzDesign(t *testing.T) { testkit.Fuzz(t, "FuzzDesign", testkit.FuzzExecutions) }
