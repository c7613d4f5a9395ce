package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A worker of another build, libtorch, processor or number of threads is named as such; Mixed allows all but the build.
func TestMachineDiffers(t *testing.T) {
	want := identity{Build: "a", LibTorch: "1", Processor: "x", Threads: 1}
	require.Nil(t, want.machineDiffers(want, false))
	for what, own := range map[string]identity{
		"build":     {Build: "b", LibTorch: "1", Processor: "x", Threads: 1},
		"libtorch":  {Build: "a", LibTorch: "2", Processor: "x", Threads: 1},
		"processor": {Build: "a", LibTorch: "1", Processor: "y", Threads: 1},
		"threads":   {Build: "a", LibTorch: "1", Processor: "x", Threads: 2},
	} {
		m := want.machineDiffers(own, false)
		require.NotNil(t, m, what)
		assert.Equal(t, what, m.What)
		assert.NotEqual(t, m.Client, m.Worker)
		assert.Equal(t, what == "build", want.machineDiffers(own, true) != nil, what)
	}
}
