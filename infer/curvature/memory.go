package curvature

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// MemoryError is a request that does not fit into [Options].Memory. It is made before anything of that size is allocated.
type MemoryError struct {
	What    string // what was asked for, with its shape
	Bytes   int64  // what it takes
	Allowed int64  // Options.Memory
	Instead string // what to use instead
}

// Error says how much is needed, how much is allowed, and what to do.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("%s takes %s, and Options.Memory allows %s: %s, or raise Options.Memory", e.What, size(e.Bytes), size(e.Allowed), e.Instead)
}

// Unwrap makes the error an infer.ErrConfig.
func (e *MemoryError) Unwrap() error { return infer.ErrConfig }

// defaultMemory is the meaning of Options.Memory = 0.
const defaultMemory = 1 << 30

// size writes a number of bytes in decimal units.
func size(bytes int64) string {
	v, unit := float64(bytes), "bytes"
	for _, u := range []string{"kB", "MB", "GB", "TB", "PB"} {
		if v < 1000 {
			break
		}
		v, unit = v/1000, u
	}
	if unit == "bytes" {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%.3g %s", v, unit)
}

// dense is what to use instead of a d x d matrix.
func dense(diag string) string {
	return "use " + diag + " for the diagonal, or the last layer alone by infer.Subspace"
}

// need refuses what does not fit. The count is a float64 because it may exceed an int64.
func (q *problem) need(what string, numbers float64, instead string) error {
	bytes := numbers * float64(q.bytes)
	if bytes <= float64(q.memory) {
		return nil
	}
	return &MemoryError{What: what, Bytes: int64(min(bytes, 9e18)), Allowed: q.memory, Instead: instead}
}

// matrix refuses a d x d matrix that does not fit.
func (q *problem) matrix(diag string) error {
	return q.need(fmt.Sprintf("a matrix of shape [%d, %d]", q.d, q.d), float64(q.d)*float64(q.d), dense(diag))
}

// largestBlock is the size in bytes of the gradients of a block in main memory. Larger ones are slower: the work of a row is
// then moving memory that no longer stays in the processor's caches. On a GPU a block is as large as Options.Memory allows.
const largestBlock = 4 << 20

// rows is the number of rows of a block: as many as fit beside what the result holds, at least 1 and at most most. A row
// takes as many numbers as given.
func (q *problem) rows(most int64, result, row float64) int64 {
	fit := min(float64(most), (float64(q.memory)/float64(q.bytes)-result)/row)
	if q.device == torch.CPU {
		fit = min(fit, largestBlock/float64(q.d*q.bytes))
	}
	return max(1, int64(fit))
}
