//go:build slow

package data_test

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/fuzzing"
)

// Any bytes in the place of a file are a table or an error, in processes of 512 MB.
func TestFuzzCSV(t *testing.T) { fuzzing.Run(t, "FuzzCSV", fuzzing.Executions) }
