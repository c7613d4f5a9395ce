package infertest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer/evidence"
)

// Estimates agree up to three joint standard errors, here of 0.05 = √(0.03² + 0.04²), and none may be too wide.
func TestAgree(t *testing.T) {
	two := func(apart float64) map[string]*evidence.Result {
		return map[string]*evidence.Result{"a": {LogZ: -7, SE: 0.03}, "b": {LogZ: -7 + apart, SE: 0.04}}
	}
	require.NoError(t, EvidenceAgree(two(0.149), 0.041))
	require.NoError(t, EvidenceAgree(two(-0.149), 0.041))
	require.ErrorContains(t, EvidenceAgree(two(0.151), 0.041), "a and b differ")
	require.ErrorContains(t, EvidenceAgree(two(-0.151), 0.041), "a and b differ")
	require.ErrorContains(t, EvidenceAgree(two(0), 0.04), "the standard error of b is 0.04, not below 0.04")
}
