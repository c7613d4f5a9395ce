package support_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

func vec(data []float64, shape ...int) *ts.Tensor {
	return torch.New(data, shape...).T()
}

// Values inside pass; of those outside the first is named, with its place, its value and what is allowed.
func TestCheck(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	ends := vec([]float64{0, 10})
	scalar := []int{}
	cases := []struct {
		s     support.Support
		data  []float64
		shape []int
		want  string // empty for inside
	}{
		{support.Real, []float64{-1e300, 0, 1e300}, nil, ""},
		{support.Real, []float64{1, nan}, nil, "element [1] of shape [2] is NaN: it must be a real number"},
		{support.Real, []float64{1, 2, 3, inf}, []int{2, 2},
			"element [1 1] of shape [2 2] is +Inf: it must be a real number"},
		{support.Positive, []float64{1e-300, 1}, nil, ""},
		{support.Positive, []float64{0}, scalar, "the value is 0: it must be a number greater than 0"},
		{support.Nonnegative, []float64{0, 3}, nil, ""},
		{support.Nonnegative, []float64{-0.5}, scalar, "the value is -0.5: it must be a number of at least 0"},
		{support.UnitInterval, []float64{0, 0.5, 1}, nil, ""},
		{support.UnitInterval, []float64{0, 1.5, 2}, nil, "element [1] of shape [3] is 1.5: it must be a number from 0 to 1"},
		{support.Interval(-1, 2), []float64{-1, 2}, nil, ""},
		{support.Interval(-1, 2), []float64{-1, -2}, nil, "element [1] of shape [2] is -2: it must be a number from -1 to 2"},
		{support.Interval(ends, 12), []float64{0, 11, 1, 9}, []int{2, 2},
			"element [1 1] of shape [2 2] is 9: it must be a number from 10 to 12"},
		{support.Interval(ends, 12), []float64{1, 2, 3}, nil, "the shape of the value is [3]: an end of the support has " +
			"shape [2], which does not broadcast to it"},
		{support.GreaterThan(1.5), []float64{2, 1.5}, nil,
			"element [1] of shape [2] is 1.5: it must be a number greater than 1.5"},
		{support.LessThan(ends), []float64{-1, 9}, nil, ""},
		{support.LessThan(ends), []float64{-1, 10}, nil, "element [1] of shape [2] is 10: it must be a number less than 10"},
		{support.Simplex, []float64{0.2, 0.3, 0.5, 1, 0, 0}, []int{2, 3}, ""},
		{support.Simplex, []float64{0.2, 0.3, 0.5, 0.5, 0.4, 0}, []int{2, 3}, "the vector at [1] of [2] is [0.5 0.4 0]: " +
			"it must be a vector of positive numbers with sum 1: its sum is 0.9"},
		{support.Simplex, []float64{1.5, -0.5}, nil, "the vector is [1.5 -0.5]: it must be a vector of positive numbers " +
			"with sum 1: element 1 is -0.5"},
		{support.Simplex, []float64{1}, scalar, "the shape of the value is []: a value of this kind, a vector of positive " +
			"numbers with sum 1, has at least 1 dimensions"},
		{support.Simplex.Independent(1), []float64{1, 0}, nil, "the shape of the value is [2]: a value of this kind, a " +
			"vector of positive numbers with sum 1, has at least 2 dimensions"},
		{support.Ordered, []float64{-1, 0, 2}, nil, ""},
		{support.Ordered, []float64{-1, 0, 0}, nil,
			"the vector is [-1 0 0]: it must be an increasing vector: element 2 is 0, and 0 comes before it"},
		{support.PositiveOrdered, []float64{1, 2}, nil, ""},
		{support.PositiveOrdered, []float64{-1, 2}, nil, "the vector is [-1 2]: it must be an increasing vector of " +
			"positive numbers: element 0 is -1"},
		{support.UnitVector, []float64{0.6, -0.8}, nil, ""},
		{support.UnitVector, []float64{3, 4}, nil, "the vector is [3 4]: it must be a vector of length 1: its length is 5"},
		{support.ZeroSum, []float64{1, 2, -3, 1e9, 1, -1e9}, []int{2, 3}, ""},
		{support.ZeroSum, []float64{1, 2, -2}, nil,
			"the vector is [1 2 -2]: it must be a vector of numbers with sum 0: its sum is 1"},
		{support.LowerCholesky, []float64{1, 0, -3, 2}, []int{2, 2}, ""},
		{support.LowerCholesky, []float64{1, 0.5, -3, 2}, []int{2, 2}, "the matrix is [1 0.5 -3 2]: it must be a " +
			"lower-triangular matrix with positive diagonal: element [0 1] is 0.5"},
		{support.LowerCholesky, []float64{1, 0, -3, 0}, []int{2, 2}, "the matrix is [1 0 -3 0]: it must be a " +
			"lower-triangular matrix with positive diagonal: element [1 1] is 0"},
		{support.LowerCholesky, []float64{1, 0, 2, 3, 4, 5}, []int{2, 3},
			"the shape of the value is [2 3]: its matrices must be square"},
		{support.CorrCholesky, []float64{1, 0, 0.6, 0.8}, []int{2, 2}, ""},
		{support.CorrCholesky, []float64{1, 0, 3, 4}, []int{2, 2}, "the matrix is [1 0 3 4]: it must be the Cholesky " +
			"factor of a correlation matrix: row 1 has length 5"},
		{support.PositiveDefinite, []float64{1, 0.5, 0.5, 1}, []int{2, 2}, ""},
		{support.PositiveDefinite, []float64{1, 0.5, 0.25, 1}, []int{2, 2}, "the matrix is [1 0.5 0.25 1]: it must be a " +
			"symmetric positive-definite matrix: element [1 0] is 0.25 and element [0 1] is 0.5"},
		{support.PositiveDefinite, []float64{1, 0, 0, 1, 1, 2, 2, 1}, []int{2, 2, 2}, "the matrix at [1] of [2] is [1 2 " +
			"2 1]: it must be a symmetric positive-definite matrix: its leading 2 x 2 block is not positive definite"},
		{support.PositiveDefinite, []float64{nan}, []int{1, 1}, "the matrix is [NaN]: it must be a symmetric " +
			"positive-definite matrix: element 0 is NaN"},
		{support.Boolean, []float64{0, 1}, nil, ""},
		{support.Boolean, []float64{0, 1, 2}, nil, "element [2] of shape [3] is 2: it must be 0 or 1"},
		{support.NonnegativeInteger, []float64{0, 1e9}, nil, ""},
		{support.NonnegativeInteger, []float64{1, -1}, nil,
			"element [1] of shape [2] is -1: it must be a whole number of at least 0"},
		{support.NonnegativeInteger, []float64{1, 1.5}, nil,
			"element [1] of shape [2] is 1.5: it must be a whole number of at least 0"},
		{support.IntegerInterval(0, 3), []float64{0, 3}, nil, ""},
		{support.IntegerInterval(0, 3), []float64{4}, scalar, "the value is 4: it must be a whole number from 0 to 3"},
		{support.IntegerInterval(0, ends), []float64{0, 3}, nil, ""},
		{support.IntegerInterval(0, ends), []float64{1, 3}, nil,
			"element [0] of shape [2] is 1: it must be a whole number from 0 to 0"},
		{support.Counts(3), []float64{1, 2, 0}, nil, ""},
		{support.Counts(3), []float64{1, 3, 0}, nil,
			"the vector is [1 3 0]: it must be a vector of whole numbers from 0 with sum 3: its sum is 4"},
		{support.Counts(3), []float64{0.5, 2.5}, nil, "the vector is [0.5 2.5]: it must be a vector of whole numbers from " +
			"0 with sum 3: element 0 is 0.5"},
		{support.Counts(ends), []float64{0, 0, 9, 1}, []int{2, 2}, ""},
		{support.Counts(ends), []float64{0, 0, 9, 2}, []int{2, 2}, "the vector at [1] of [2] is [9 2]: it must be a " +
			"vector of whole numbers from 0 with sum 10: its sum is 11"},
		{support.Point, []float64{-7, nan}, nil, ""},
		{support.At(3), []float64{3, 3}, nil, ""},
		{support.At(inf), []float64{inf}, nil, ""},
		{support.At(3), []float64{3, 2.5}, nil, "element [1] of shape [2] is 2.5: it must be 3"},
		{support.At(ends), []float64{0, 10}, nil, ""},
		{support.At(ends), []float64{0, 10, 0, 9}, []int{2, 2}, "element [1 1] of shape [2 2] is 9: it must be 10"},
		{support.At(ends).Independent(1), []float64{10, 10}, nil, "element [0] of shape [2] is 10: it must be 0"},
	}
	for _, c := range cases {
		err := c.s.Check(vec(c.data, c.shape...))
		if c.want == "" {
			require.NoError(t, err, "%v in %s", c.data, c.s)
			continue
		}
		require.EqualError(t, err, c.want)
		var e *support.Error
		require.ErrorAs(t, err, &e)
	}
	long := make([]float64, 20)
	require.ErrorContains(t, support.Simplex.Check(vec(long)), "the vector is [0 0 0 0 0 0 0 0 … 20 in all]: it must be")
}

// A softmax in float32 has sum 1 only to its own rounding, which is allowed; the same error in float64 is not.
func TestCheckAllowsRounding(t *testing.T) {
	x := []float64{0.5, 0.50002}
	require.NoError(t, support.Simplex.Check(torch.Must(torch.FromSliceOn(torch.CPU, gotch.Float, x))))
	require.ErrorContains(t, support.Simplex.Check(vec(x)), "its sum is 1.00002")
	require.NoError(t, support.Boolean.Check(torch.New([]bool{true, false})))
	require.ErrorContains(t, support.Boolean.Check(torch.New([]int{3})), "is 3: it must be 0 or 1")
}

func TestConstructorErrors(t *testing.T) {
	for want, f := range map[string]func(){
		"support.Interval: low is 2: it must be less than high, which is 1": func() {
			support.Interval(2, 1)
		},
		"support.Interval: high is a string: a number, a torch.Tensor or a *ts.Tensor is required": func() {
			support.Interval(2, "1")
		},
		"support.GreaterThan: low is nil: a number or a tensor is required": func() {
			support.GreaterThan((*ts.Tensor)(nil))
		},
		"support.LessThan: high is NaN: a number is required": func() {
			support.LessThan(math.NaN())
		},
		"support.At: value is a string: a number, a torch.Tensor or a *ts.Tensor is required": func() {
			support.At("1")
		},
		"support.IntegerInterval: low is 2: it must be at most high, which is 1": func() {
			support.IntegerInterval(2, 1)
		},
		"support.Counts: total is a []int: a number, a torch.Tensor or a *ts.Tensor is required": func() {
			support.Counts([]int{1})
		},
	} {
		err := torch.Do(func(*torch.Scope) error { f(); return nil })
		require.ErrorContains(t, err, want+" (at support/support_test.go:")
	}
}

func TestEventDimsAndWords(t *testing.T) {
	require.Equal(t, 0, support.Real.EventDims())
	require.Equal(t, 2, support.Positive.Independent(2).EventDims())
	require.Equal(t, 2, support.Simplex.Independent(1).EventDims())
	require.Equal(t, 2, support.CorrCholesky.EventDims())
	require.True(t, support.Boolean.Discrete() && support.Counts(3).Discrete() && support.NonnegativeInteger.Discrete())
	require.False(t, support.Real.Discrete() || support.Point.Discrete() || support.Simplex.Discrete())
	low := vec([]float64{1, 2})
	for want, s := range map[string]support.Support{
		"a number from its low end to 5":                      support.Interval(low, 5),
		"a number greater than its low end":                   support.GreaterThan(low),
		"a whole number from 0 to its high end":               support.IntegerInterval(0, low),
		"a vector of whole numbers from 0 with sum its total": support.Counts(low),
		"a number of at most 3":                               support.Interval(math.Inf(-1), 3),
		"a whole number of at most 3":                         support.IntegerInterval(math.Inf(-1), 3),
		"a whole number":                                      support.IntegerInterval(math.Inf(-1), math.Inf(1)),
		"a number between 0 and 1":                            {Kind: support.KindInterval, High: torch.Of(1)},
		"a real number":                                       support.Interval(math.Inf(-1), math.Inf(1)),
		"a single value":                                      support.Point,
		"its single value":                                    support.At(low),
		"2.5":                                                 support.At(2.5),
	} {
		require.Equal(t, want, s.String())
	}
}
