package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Labels of an axis are the values that they stand at.
func TestPlainTicks(t *testing.T) {
	var labels []string
	for _, tick := range plainTicks(0.996, 1.107) {
		if tick.Label != "" {
			labels = append(labels, tick.Label)
		}
	}
	require.Equal(t, []string{"1", "1.05", "1.1"}, labels)
}
