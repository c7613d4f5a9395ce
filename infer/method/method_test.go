package method_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/torch"
)

var (
	vector = infertest.Vector
	values = infertest.Values
)

func must[T any](v T, err error) T { return infertest.Must(v, err) }

// A default stands in for a schedule that is missing; the value at the first update is looked at.
func TestCheckSchedule(t *testing.T) {
	s, err := method.CheckSchedule("m.M", "LR", infer.Constant(2), infer.Constant(3), 0, true)
	require.NoError(t, err)
	assert.Equal(t, 2.0, s(0))
	s, err = method.CheckSchedule("m.M", "LR", nil, infer.Constant(3), 0, true)
	require.NoError(t, err)
	assert.Equal(t, 3.0, s(0))
	_, err = method.CheckSchedule("m.M", "T", infer.Constant(0), nil, 0, false)
	assert.NoError(t, err, "the least value itself is allowed unless the check is strict")

	for want, e := range map[string]struct {
		s      infer.Schedule
		least  float64
		strict bool
	}{
		"m.M: T is missing: a schedule is required, for example infer.Constant(0.01)": {nil, 0, true},
		"m.M: T is 0: it must be finite and greater than 0":                           {infer.Constant(0), 0, true},
		"m.M: T is -1: it must be finite and greater than 0":                          {infer.Constant(-1), 0, true},
		"m.M: T is -1: it must be finite and at least 0":                              {infer.Constant(-1), 0, false},
		"m.M: T is NaN: it must be finite and at least 0": {infer.Constant(math.NaN()), 0,
			false},
		"m.M: T is +Inf: it must be finite and at least 0": {infer.Constant(math.Inf(1)), 0,
			false},
		"m.M: T is 2: it must be finite and at least 2.5": {infer.Constant(2), 2.5, false},
	} {
		_, err := method.CheckSchedule("m.M", "T", e.s, nil, e.least, e.strict)
		require.EqualError(t, err, want)
		require.ErrorIs(t, err, infer.ErrConfig)
		if e.s != nil {
			require.EqualError(t, method.CheckValue("m.M", "T", e.s(0), e.least, e.strict), want)
		}
	}
}

// Hold takes the rows of the chains that diverged from the old tensor, whatever the new one has there.
func TestHold(t *testing.T) {
	nan := math.NaN()
	old, next := vector([]float64{1, 2, 3, 4, 5, 6}, 3, 2), vector([]float64{10, 20, nan, 40, 50, nan}, 3, 2)
	same, err := method.Hold(torch.Of(old), torch.Of(next), nil)
	require.NoError(t, err)
	assert.Same(t, next, same.T())
	held, err := method.Hold(torch.Of(old), torch.Of(next), []bool{false, true, true})
	require.NoError(t, err)
	assert.Equal(t, []float64{10, 20, 3, 4, 5, 6}, values(held.T()))
	held, err = method.Hold(torch.Of(old), torch.Of(next), []bool{false, false, false})
	require.NoError(t, err)
	infertest.Identical(t, values(next), values(held.T()), "nothing held")
	held, err = method.Hold(torch.Of(vector([]float64{1, 2})), torch.Of(vector([]float64{nan, 3})), []bool{true})
	require.NoError(t, err)
	assert.Equal(t, []float64{1, 2}, values(held.T()))
	// A quantity of more dimensions, and one number for each chain.
	held, err = method.Hold(torch.Of(vector([]float64{1, 2, 3, 4}, 2, 1, 2)),
		torch.Of(vector([]float64{5, 6, 7, 8}, 2, 1, 2)), []bool{true,
			false})
	require.NoError(t, err)
	assert.Equal(t, []float64{1, 2, 7, 8}, values(held.T()))
	assert.Equal(t, []int{2, 1, 2}, held.Shape())
	held, err = method.Hold(torch.Of(vector([]float64{1, 2})), torch.Of(vector([]float64{5, 6})), []bool{false, true})
	require.NoError(t, err)
	assert.Equal(t, []float64{5, 2}, values(held.T()))
	single := func(v float64) torch.Tensor { return torch.Of(vector([]float64{v}, 1).MustTotype(gotch.Float, false)) }
	held, err = method.Hold(single(1), single(5), []bool{true})
	require.NoError(t, err)
	assert.Equal(t, gotch.Float, held.T().DType())
}

func TestEpsilon(t *testing.T) {
	x := vector([]float64{1})
	assert.Equal(t, math.Nextafter(1, 2)-1, method.Epsilon(torch.Of(x)))
	assert.Equal(t, float64(math.Nextafter32(1, 2)-1), method.Epsilon(must(torch.To(torch.Of(x), torch.CPU, gotch.Float))))
}
