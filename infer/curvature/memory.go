package curvature

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
)

// dense is what to use instead of a d x d matrix.
func dense(diag string) string {
	return "use " + diag + " for the diagonal, or the last layer alone by infer.Subspace"
}

// need refuses what does not fit. The count is a float64 because it may exceed an int64.
func (q *problem) need(what string, numbers float64, instead string) error {
	return method.CheckMemory(what, numbers*float64(q.bytes), q.memory, q.field, instead)
}

// matrix refuses a d x d matrix that does not fit.
func (q *problem) matrix(diag string) error {
	return q.need(fmt.Sprintf("a matrix of shape [%d, %d]", q.d, q.d), float64(q.d)*float64(q.d), dense(diag))
}

// largestBlock is the size in bytes of the gradients of a block in main memory. Larger ones are slower: the work of a
// row is then moving memory that no longer stays in the processor's caches. On a GPU a block is as large as
// Options.Memory allows.
const largestBlock = 4 << 20

// rows is the number of rows of a block: as many as fit beside what the result holds, at least 1 and at most most. A
// row takes as many numbers as given.
func (q *problem) rows(most int64, result, row float64) int64 {
	fit := min(float64(most), (float64(q.memory)/float64(q.bytes)-result)/row)
	if q.device == torch.CPU {
		fit = min(fit, largestBlock/float64(q.width()*q.bytes))
	}
	return max(1, int64(fit))
}
