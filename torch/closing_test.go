package torch_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
)

// using are operations of each form that gotch has, and Kelvin's own, with the value that each must have on tensors of
// 64 twos. What is in place changes another tensor than the one that is differentiated.
var using = map[string]func(x, y torch.Tensor, two *ts.Scalar) (have, want float64, err error){
	"one operand": func(x, _ torch.Tensor, _ *ts.Scalar) (float64, float64, error) {
		return sumOf(raw.Of(x.T().Square(false)))(4 * 64)
	},
	"two operands": func(x, _ torch.Tensor, _ *ts.Scalar) (float64, float64, error) {
		return sumOf(raw.Of(x.T().Mul(x.T(), false)))(4 * 64)
	},
	"a scalar": func(x, _ torch.Tensor, two *ts.Scalar) (float64, float64, error) {
		return sumOf(raw.Of(x.T().MulScalar(two, false)))(4 * 64)
	},
	"a list": func(x, _ torch.Tensor, _ *ts.Scalar) (float64, float64, error) {
		return sumOf(raw.Of(ts.Cat([]*ts.Tensor{x.T(), x.T(), x.T()}, 0)))(6 * 64)
	},
	"a list as result": func(x, _ torch.Tensor, _ *ts.Scalar) (float64, float64, error) {
		parts, err := x.T().Split(32, 0)
		if err != nil {
			return 0, 0, err
		}
		return sumOf(torch.Of(parts[1]), nil)(2 * 32)
	},
	"in place": func(_, y torch.Tensor, _ *ts.Scalar) (float64, float64, error) {
		return 0, 0, y.T().Clamp_(ts.FloatScalar(1), ts.FloatScalar(3))
	},
	"a question": func(x, _ torch.Tensor, _ *ts.Scalar) (float64, float64, error) {
		_, err := x.T().IsContiguous()
		return 0, 0, err
	},
	"the numbers": func(x, _ torch.Tensor, _ *ts.Scalar) (float64, float64, error) {
		s, err := torch.ToSlice[float64](x)
		if err != nil {
			return 0, 0, err
		}
		return s[63], 2, nil
	},
	"the memory": func(x, _ torch.Tensor, _ *ts.Scalar) (have, want float64, err error) {
		err = torch.View(x, func(data []float64) error {
			for _, v := range data {
				have += v
			}
			return nil
		})
		return have, 2 * 64, err
	},
	"the gradient": func(x, _ torch.Tensor, _ *ts.Scalar) (float64, float64, error) {
		_, grad, err := torch.ValueAndGrad(func(x torch.Tensor) torch.Tensor { return sum(x.Square()) }, x)
		if err != nil {
			return 0, 0, err
		}
		return sumOf(grad, nil)(4 * 64)
	},
	"the gradient of each": func(x, _ torch.Tensor, _ *ts.Scalar) (float64, float64, error) {
		_, grad, err := torch.VmapValueAndGrad(torch.Tensor.Square, x)
		if err != nil {
			return 0, 0, err
		}
		return sumOf(grad, nil)(4 * 64)
	},
	"in words": func(x, _ torch.Tensor, _ *ts.Scalar) (float64, float64, error) {
		_, err := x.T().ToString(80)
		return 0, 0, err
	},
}

// sumOf reads the sum of the result of an operation; its elements are wanted to sum to what is given then.
func sumOf(x torch.Tensor, err error) func(want float64) (float64, float64, error) {
	return func(want float64) (float64, float64, error) {
		if err != nil {
			return 0, 0, err
		}
		sum, err := x.T().Sum(gotch.Double, false)
		if err != nil {
			return 0, 0, err
		}
		have, err := torch.Item(torch.Of(sum))
		return have, want, err
	}
}

// Eight goroutines use the tensors of a scope while it closes, thousands of times. Each use gives the number that it
// gives alone, or an error that says that the tensor was freed; the process lives, and so does nothing longer than the
// last use.
func TestUseWhileScopeCloses(t *testing.T) {
	const rounds, users = 3000, 8
	names := make([]string, 0, len(using))
	for name := range using {
		names = append(names, name)
	}
	var worked, refused atomic.Int64
	var tensors [rounds]torch.Tensor
	for round := range rounds {
		var ready, done sync.WaitGroup
		ready.Add(users)
		done.Add(users)
		require.NoError(t, torch.Do(func(s *torch.Scope) error {
			x := ts.MustFull([]int64{64}, ts.FloatScalar(2), gotch.Double, gotch.CPU)
			y, two := ts.MustFull([]int64{64}, ts.FloatScalar(2), gotch.Double, gotch.CPU), ts.FloatScalar(2)
			tensors[round] = torch.Of(x)
			for g := range users {
				go func() {
					defer done.Done()
					ready.Done()
					for i := 0; ; i++ {
						name := names[(round+g+i)%len(names)]
						err := torch.Do(func(*torch.Scope) error {
							have, want, err := using[name](torch.Of(x), torch.Of(y), two)
							if err == nil && have != want {
								return fmt.Errorf("%v instead of %v", have, want)
							}
							return err
						})
						if err == nil {
							worked.Add(1)
							runtime.Gosched() // a scope that waits for a processor closes too
							continue
						}
						var e *torch.Error
						if assert.ErrorAs(t, err, &e, name) && assert.True(t, e.Freed, "%s: %v", name, err) {
							assert.Contains(t, e.Error(), "used after", name)
						}
						refused.Add(1)
						return
					}
				}()
			}
			ready.Wait()
			return nil
		}))
		done.Wait()
		assert.True(t, torch.Freed(tensors[round]))
	}
	assert.Greater(t, worked.Load(), int(rounds), "scopes close before they are used")
	assert.Equal(t, int(rounds*users), refused.Load())
	t.Logf("seen: %d scopes closed under %d goroutines, %d uses worked, %d were refused", rounds, users, worked.Load(),
		refused.Load())
}
