package torch_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/torch"
)

// Many goroutines map and differentiate at once, with maps inside maps, errors and panics among them, and each gets the
// numbers of a loop: libtorch's levels and gradient modes belong to threads, and so do the scopes.
func TestManyGoroutinesMapAndDifferentiate(t *testing.T) {
	const goroutines, rounds, rows = 12, 25, 5
	x := vec(numbers(rows*6, 0), rows, 6)
	data := vec(numbers(8, 70), 4, 2)
	defer torch.Free(x, data)
	// The log density of one row: the data's outputs under the network's weights, squared and summed by an inner map.
	logDensity := func(scale float64) func(w torch.Tensor) torch.Tensor {
		return func(w torch.Tensor) torch.Tensor {
			out := torch.Must(torch.Vmap(maps(func(in []torch.Tensor) []torch.Tensor {
				return []torch.Tensor{torch.Of(net(w, in[0]).T().MustSquare(false))}
			}), []torch.Tensor{data}, nil))
			return torch.Of(sum(out[0]).T().MustMulScalar(ts.FloatScalar(-scale), false))
		}
	}
	loop := func(scale float64) (values, grads []float64) {
		for k := range int(rows) {
			row := x.T().MustSelect(0, int64(k), false)
			value, grad, err := torch.ValueAndGrad(func(w torch.Tensor) torch.Tensor {
				var total torch.Tensor
				for n := range 4 {
					y := net(w, torch.Of(data.T().MustSelect(0, int64(n), false))).T().MustSquare(false)
					if total == (torch.Tensor{}) {
						total = torch.Of(y)
					} else {
						total = torch.Of(total.T().MustAdd(y, false))
					}
				}
				return torch.Of(total.T().MustMulScalar(ts.FloatScalar(-scale), false))
			}, torch.Of(row))
			assert.NoError(t, err)
			values, grads = append(values, floats(value)...), append(grads, floats(grad)...)
		}
		return values, grads
	}
	var wg sync.WaitGroup
	for g := range goroutines {
		scale := 1 + float64(g)/10
		values, grads := loop(scale)
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range rounds {
				err := torch.Do(func(s *torch.Scope) error {
					v, d, err := torch.VmapValueAndGrad(logDensity(scale), x)
					if err != nil {
						return err
					}
					near(t, values, floats(v), 1e-13, fmt.Sprint("goroutine ", g))
					near(t, grads, floats(d), 1e-13, fmt.Sprint("goroutine ", g))
					if s.Owned() != 2 {
						return fmt.Errorf("the scope owns %d tensors, expected the values and the gradients", s.Owned())
					}
					return nil
				})
				assert.NoError(t, err)
				switch (i + g) % 5 {
				case 0:
					_, _, err = torch.VmapValueAndGrad(func(w torch.Tensor) torch.Tensor {
						return torch.Of(w.T().MustView([]int64{7},
							false))
					}, x)
					assert.Error(t, err)
				case 1:
					assert.Panics(t, func() {
						_, _ = torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) { panic("in the map") }, []torch.Tensor{x}, nil)
					})
				case 2:
					assert.NoError(t, torch.NoGrad(func() error {
						y := x.T().MustMulScalar(ts.FloatScalar(2), false)
						defer torch.Free(torch.Of(y))
						if y.MustRequiresGrad() || y.DType() != gotch.Double {
							return fmt.Errorf("gradients are recorded inside NoGrad")
						}
						return nil
					}))
				}
			}
		}()
	}
	wg.Wait()
}
