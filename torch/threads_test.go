package torch_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/internal/thread"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The threads of OpenBLAS, where libtorch has it, are as many as those of other operations.
func TestThreadsOfBLAS(t *testing.T) {
	before := ts.KelvinLibraryInfo().Threads
	defer func() { require.NoError(t, torch.SetThreads(before)) }()
	if thread.BLAS() == 0 {
		require.NoError(t, torch.SetThreads(2))
		assert.Zero(t, thread.BLAS(), "there is no OpenBLAS")
		return
	}
	for _, n := range []int{1, 2, 1} {
		require.NoError(t, torch.SetThreads(n))
		assert.Equal(t, n, thread.BLAS())
		inScope(t, func(*torch.Scope) {
			x := torch.Zeros(300, 300).Add(1)
			assert.Equal(t, 300.0, floats(x.MatMul(x))[7])
			assert.Equal(t, n, ts.KelvinLibraryInfo().Threads)
		})
	}
}
