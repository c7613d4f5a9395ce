package torch

import (
	"fmt"
	"sync"

	"github.com/kelvin-ppl/kelvin/internal/needsetup"
	"github.com/kelvin-ppl/kelvin/torch/internal/blas"
	"github.com/sugarme/gotch/ts"
)

// LibraryInfo describes the libtorch in use.
type LibraryInfo = ts.KelvinLibrary

var library = sync.OnceValue(ts.KelvinLibraryInfo)

// Library describes the libtorch in use, as it was at the first call.
func Library() LibraryInfo { return library() }

// Version is libtorch's version, for example "1.13.1".
func Version() string { return library().Version }

// Missing names the operations of gotch that this libtorch lacks; calling one is an error that says so.
func Missing() []string { return append([]string(nil), ts.KelvinMissing...) }

// SetThreads sets how many threads one operation may use, in every scope that is opened afterwards: [Do], [Vmap] and
// the gradients open one. The default is libtorch's own choice. Where libtorch calls OpenBLAS for products of matrices,
// which has threads of its own, their number is set at once, so that nothing else should calculate during the call.
func SetThreads(n int) error {
	if n < 1 {
		return fmt.Errorf("torch.SetThreads: %d threads asked for; there must be at least 1", n)
	}
	ts.KelvinSetThreads(n)
	blas.SetThreads(n)
	return nil
}

// Where the compiler stops in needsetup, set-up has not run: see its documentation.
const _ = needsetup.Done
