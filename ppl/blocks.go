package ppl

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
)

// What is computed for many draws at once goes through memory operation by operation. In blocks of about cacheElements
// numbers it stays in the caches. The first block tells how many numbers a draw has.
const (
	firstBlock    = 64
	cacheElements = 1 << 17
)

// evaluation evaluates some of the draws: in are their values, and the tensors that it returns have a leading dimension
// of to - from.
type evaluation func(in []torch.Tensor, from, to int) ([]torch.Tensor, error)

// inBlocks evaluates all n draws, block by block, and joins what f returns.
func inBlocks(in []torch.Tensor, n int, f evaluation) ([]torch.Tensor, error) {
	if n <= 2*firstBlock {
		return f(in, 0, n)
	}
	var out []torch.Tensor // of all draws
	size := firstBlock
	for from := 0; from < n; {
		to := min(from+size, n)
		err := torch.Do(func(scope *torch.Scope) error {
			values, err := evaluateBlock(in, from, to, f)
			if err != nil {
				return err
			}
			if from == 0 {
				widest := 1
				for _, v := range values {
					shape := shapeOf(v)
					widest = max(widest, count(shape[1:]))
					all, err := v.T().NewEmpty(torch.Int64s(append([]int{n}, shape[1:]...)), v.T().DType(),
						torch.Must(torch.DeviceOf(v)),
						false)
					if err != nil {
						return err
					}
					out = append(out, torch.Of(all))
				}
				scope.Keep(out...)
				size = max(firstBlock, cacheElements/widest)
			}
			return place(out, values, from, to)
		})
		if err != nil {
			torch.Free(out...)
			return nil, err
		}
		from = to
	}
	return out, nil
}

// evaluateBlock evaluates the draws from to to.
func evaluateBlock(in []torch.Tensor, from, to int, f evaluation) ([]torch.Tensor, error) {
	part := make([]torch.Tensor, len(in))
	for i, t := range in {
		var err error
		if part[i], err = raw.Of(t.T().Narrow(0, int64(from), int64(to-from), false)); err != nil {
			return nil, err
		}
	}
	return f(part, from, to)
}

// place copies the values of some draws to where they belong.
func place(out, values []torch.Tensor, from, to int) error {
	if len(values) != len(out) {
		return fmt.Errorf("the model has %d sites in one run and %d in another", len(out), len(values))
	}
	for i, v := range values {
		at, err := out[i].T().Narrow(0, int64(from), int64(to-from), false)
		if err != nil {
			return err
		}
		if have, want := shapeOf(v), shapeOf(torch.Of(at)); !slices.Equal(have, want) {
			return fmt.Errorf("a site has shape %v in one run and %v in another", have[1:], want[1:])
		}
		at.Copy_(v.T())
	}
	return nil
}
