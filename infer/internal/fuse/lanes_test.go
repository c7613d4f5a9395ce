package fuse_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// The noise of a pass and that of torch.Streams are one source. It is here twice, because vendoring copies the folders
// of packages only.
func TestOneSource(t *testing.T) {
	own, err := os.ReadFile("random_lanes.h")
	require.NoError(t, err)
	streams, err := os.ReadFile("../../../internal/gotch/native/random_lanes.h")
	require.NoError(t, err)
	require.Equal(t, string(streams), string(own))
}
