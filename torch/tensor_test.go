package torch_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
	"gonum.org/v1/gonum/mathext"

	"github.com/kelvin-ppl/kelvin/torch"
)

// matrix is x as a torch.Tensor, with a shape.
func matrix(x []float64, shape ...int) torch.Tensor { return vec(x, shape...) }

// unary are the functions of one argument, with what they are of one number.
var unary = map[string]struct {
	f    func(torch.Tensor) torch.Tensor
	want func(float64) float64
}{
	"Neg":        {torch.Tensor.Neg, func(x float64) float64 { return -x }},
	"Reciprocal": {torch.Tensor.Reciprocal, func(x float64) float64 { return 1 / x }},
	"Exp":        {torch.Tensor.Exp, math.Exp},
	"Expm1":      {torch.Tensor.Expm1, math.Expm1},
	"Log":        {torch.Tensor.Log, math.Log},
	"Log1p":      {torch.Tensor.Log1p, math.Log1p},
	"Sqrt":       {torch.Tensor.Sqrt, math.Sqrt},
	"Square":     {torch.Tensor.Square, func(x float64) float64 { return x * x }},
	"Abs":        {torch.Tensor.Abs, math.Abs},
	"Sigmoid":    {torch.Tensor.Sigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }},
	"LogSigmoid": {torch.Tensor.LogSigmoid, func(x float64) float64 { return -math.Log1p(math.Exp(-x)) }},
	"Softplus":   {torch.Tensor.Softplus, func(x float64) float64 { return math.Log1p(math.Exp(x)) }},
	"Tanh":       {torch.Tensor.Tanh, math.Tanh},
	"Relu":       {torch.Tensor.Relu, func(x float64) float64 { return math.Max(x, 0) }},
	"Sin":        {torch.Tensor.Sin, math.Sin},
	"Cos":        {torch.Tensor.Cos, math.Cos},
	"Lgamma":     {torch.Tensor.Lgamma, func(x float64) float64 { l, _ := math.Lgamma(x); return l }},
	"Digamma":    {torch.Tensor.Digamma, mathext.Digamma},
	"Erf":        {torch.Tensor.Erf, math.Erf},
	"Erfc":       {torch.Tensor.Erfc, math.Erfc},
}

// Functions of one argument agree with Go's, on numbers and on tensors, and under vmap.
func TestTensorUnary(t *testing.T) {
	at := []float64{0.2, 0.7, 1, 2.5, 6, 30, -0.4, -3}
	for name, c := range unary {
		t.Run(name, func(t *testing.T) {
			inScope(t, func(*torch.Scope) {
				want, tol := make([]float64, len(at)), 1e-13
				if name == "Digamma" {
					tol = 1e-10 // gonum's own error
				}
				for i, x := range at {
					want[i] = c.want(x)
					got := c.f(torch.Of(x))
					if _, ok := got.Number(); !ok {
						assert.Equal(t, "Digamma", name, "a number stays a number")
					}
					near(t, want[i:i+1], []float64{got.Item()}, tol, x)
				}
				near(t, want, c.f(matrix(at)).Values(), tol)
				out := torch.Must(torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
					return []torch.Tensor{c.f(in[0])}, nil
				}, []torch.Tensor{vec(at)}, nil))
				near(t, want, floats(out[0]), tol)
			})
		})
	}
}

// binary are the functions of two arguments, with what they are of two numbers.
var binary = map[string]struct {
	f    func(x torch.Tensor, y any) torch.Tensor
	want func(x, y float64) float64
}{
	"Add": {torch.Tensor.Add, func(x, y float64) float64 { return x + y }},
	"Sub": {torch.Tensor.Sub, func(x, y float64) float64 { return x - y }},
	"Mul": {torch.Tensor.Mul, func(x, y float64) float64 { return x * y }},
	"Div": {torch.Tensor.Div, func(x, y float64) float64 { return x / y }},
	"Pow": {torch.Tensor.Pow, math.Pow},
	"Min": {torch.Tensor.Min, math.Min},
	"Max": {torch.Tensor.Max, math.Max},
	"Gt":  {torch.Tensor.Gt, func(x, y float64) float64 { return truth(x > y) }},
	"Lt":  {torch.Tensor.Lt, func(x, y float64) float64 { return truth(x < y) }},
	"Ge":  {torch.Tensor.Ge, func(x, y float64) float64 { return truth(x >= y) }},
	"Le":  {torch.Tensor.Le, func(x, y float64) float64 { return truth(x <= y) }},
	"Eq":  {torch.Tensor.Eq, func(x, y float64) float64 { return truth(x == y) }},
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Functions of two arguments agree with Go's for every kind of operand on either side.
func TestTensorBinary(t *testing.T) {
	pairs := [][2]float64{{0, 2}, {1, 2}, {2, 1}, {3, 3}, {2.5, 0.5}, {0.5, 4}}
	for name, c := range binary {
		t.Run(name, func(t *testing.T) {
			inScope(t, func(*torch.Scope) {
				for _, p := range pairs {
					want := []float64{c.want(p[0], p[1])}
					for i, y := range []any{p[1], scalar(p[1]), torch.Of(p[1]), matrix(p[1:2]), vec(p[1:2], 1, 1)} {
						for j, x := range []torch.Tensor{torch.Of(p[0]), scalar(p[0]), matrix(p[:1])} {
							near(t, want, c.f(x, y).Values(), 1e-15, p, i, j)
						}
					}
					if p[1] == math.Trunc(p[1]) {
						near(t, want, c.f(torch.Of(p[0]), int(p[1])).Values(), 0)
						near(t, want, c.f(torch.Of(p[0]), int(p[1])).Values(), 0)
					}
					near(t, want, c.f(torch.Of(p[0]), float32(p[1])).Values(), 1e-15)
				}
			})
		})
	}
}

// What costs nothing makes no tensor: numbers with numbers, adding 0, multiplying by 1.
func TestTensorFolds(t *testing.T) {
	inScope(t, func(s *torch.Scope) {
		x := matrix([]float64{1, 2})
		before := s.Owned()
		same := []torch.Tensor{x.Add(0), torch.Of(0).Add(x), x.Sub(0), x.Mul(1), torch.Of(1).Mul(x), x.Div(1), x.Pow(1)}
		for i, y := range same {
			assert.Same(t, x.T(), y.T(), i)
		}
		two := torch.Of(3).Sub(1).Exp().Log().Mul(2).Div(2).Clamp(0, 5).Sum().Mean()
		v, ok := two.Number()
		assert.True(t, ok)
		assert.InDelta(t, 2, v, 1e-15)
		assert.Equal(t, before, s.Owned())
		assert.Equal(t, []int{}, two.Shape())
		assert.Equal(t, 1, two.Numel())
		assert.Equal(t, []float64{v}, two.Values())
		var sum torch.Tensor
		assert.Equal(t, 2.0, sum.Add(2).Item(), "the zero value begins a sum")
	})
}

// Reductions, shapes, indexing and matrices, against values worked out by hand; the same under vmap, over two rows.
func TestTensorShapes(t *testing.T) {
	e := math.E
	cases := []struct {
		name  string
		f     func(x torch.Tensor) torch.Tensor // x is 1 2 3 / 4 5 6
		shape []int
		want  []float64
	}{
		{"Sum", func(x torch.Tensor) torch.Tensor { return x.Sum() }, []int{}, []float64{21}},
		{"Sum 0", func(x torch.Tensor) torch.Tensor { return x.Sum(0) }, []int{3}, []float64{5, 7, 9}},
		{"Sum -1", func(x torch.Tensor) torch.Tensor { return x.Sum(-1) }, []int{2}, []float64{6, 15}},
		{"Sum 0 1", func(x torch.Tensor) torch.Tensor { return x.Sum(0, 1) }, []int{}, []float64{21}},
		{"Mean", func(x torch.Tensor) torch.Tensor { return x.Mean() }, []int{}, []float64{3.5}},
		{"Mean 1", func(x torch.Tensor) torch.Tensor { return x.Mean(1) }, []int{2}, []float64{2, 5}},
		{"Std", func(x torch.Tensor) torch.Tensor { return x.Std() }, []int{}, []float64{math.Sqrt(3.5)}},
		{"Std 1", func(x torch.Tensor) torch.Tensor { return x.Std(1) }, []int{2}, []float64{1, 1}},
		{"Prod", func(x torch.Tensor) torch.Tensor { return x.Prod() }, []int{}, []float64{720}},
		{
			"CumSum",
			func(x torch.Tensor) torch.Tensor { return x.CumSum(-1) },
			[]int{2, 3},
			[]float64{1, 3, 6, 4, 9, 15},
		},
		{"LogSumExp", func(x torch.Tensor) torch.Tensor { return x.LogSumExp(-1) }, []int{2},
			[]float64{3 + math.Log(1+1/e+1/e/e), 6 + math.Log(1+1/e+1/e/e)}},
		{"LogSumExp of all", func(x torch.Tensor) torch.Tensor { return x.LogSumExp() }, []int{},
			[]float64{6 + math.Log(1+1/e+1/e/e) + math.Log1p(1/e/e/e)}},
		{"Softmax", func(x torch.Tensor) torch.Tensor { return x.Slice(1, 0, 2).Softmax(1) }, []int{2, 2},
			[]float64{1 / (1 + e), e / (1 + e), 1 / (1 + e), e / (1 + e)}},
		{"LogSoftmax", func(x torch.Tensor) torch.Tensor { return x.LogSoftmax(0).At(0) }, []int{3},
			[]float64{-math.Log1p(e * e * e), -math.Log1p(e * e * e), -math.Log1p(e * e * e)}},
		{
			"MatMul",
			func(x torch.Tensor) torch.Tensor { return x.MatMul(x.Transpose()) },
			[]int{2, 2},
			[]float64{14, 32, 32, 77},
		},
		{
			"MatMul vector",
			func(x torch.Tensor) torch.Tensor { return x.MatMul(vec([]float64{1, 0, -1})) },
			[]int{2},
			[]float64{-2, -2},
		},
		{"Dot", func(x torch.Tensor) torch.Tensor { return x.At(0).Dot(x.At(1)) }, []int{}, []float64{32}},
		{
			"Outer",
			func(x torch.Tensor) torch.Tensor { return x.At(0).Outer(x.At(1, -1).Reshape(1)) },
			[]int{3, 1},
			[]float64{6, 12, 18},
		},
		{"Transpose", torch.Tensor.Transpose, []int{3, 2}, []float64{1, 4, 2, 5, 3, 6}},
		{
			"Reshape",
			func(x torch.Tensor) torch.Tensor { return x.Reshape(-1) },
			[]int{6},
			[]float64{1, 2, 3, 4, 5, 6},
		},
		{
			"Unsqueeze",
			func(x torch.Tensor) torch.Tensor { return x.Unsqueeze(-1).Unsqueeze(0) },
			[]int{1, 2, 3, 1},
			[]float64{1, 2, 3, 4, 5, 6},
		},
		{
			"Squeeze",
			func(x torch.Tensor) torch.Tensor { return x.Slice(0, 1, 2).Squeeze(0).Squeeze(0) },
			[]int{3},
			[]float64{4, 5, 6},
		},
		{
			"Expand",
			func(x torch.Tensor) torch.Tensor { return x.At(0).Expand(2, -1) },
			[]int{2, 3},
			[]float64{1, 2, 3, 1, 2, 3},
		},
		{"At", func(x torch.Tensor) torch.Tensor { return x.At(1, -3) }, []int{}, []float64{4}},
		{"Slice", func(x torch.Tensor) torch.Tensor { return x.Slice(-1, 1, 3) }, []int{2, 2}, []float64{2, 3, 5, 6}},
		{
			"Slice from the end",
			func(x torch.Tensor) torch.Tensor { return x.Slice(-1, -3, -1) },
			[]int{2, 2},
			[]float64{1, 2, 4, 5},
		},
		{
			"IndexSelect",
			func(x torch.Tensor) torch.Tensor { return x.IndexSelect(-1, ints([]int{2, 2, 0, 1})) },
			[]int{2, 4},
			[]float64{3, 3, 1, 2, 6, 6, 4, 5},
		},
		{
			"IndexSelect by floats",
			func(x torch.Tensor) torch.Tensor { return x.IndexSelect(0, vec([]float64{1})) },
			[]int{1, 3},
			[]float64{4, 5, 6},
		},
		{
			"Gather",
			func(x torch.Tensor) torch.Tensor { return x.Gather(-1, ints([]int{2, 0}, 2, 1)) },
			[]int{2, 1},
			[]float64{3, 4},
		},
		{"Diag of a matrix", torch.Tensor.Diag, []int{2}, []float64{1, 5}},
		{
			"Diag of a vector",
			func(x torch.Tensor) torch.Tensor { return x.Diag().Diag() },
			[]int{2, 2},
			[]float64{1, 0, 0, 5},
		},
		{
			"Stack",
			func(x torch.Tensor) torch.Tensor { return torch.Stack(-1, x.At(0, 0), 7, x.At(1, 0)) },
			[]int{3},
			[]float64{1, 7, 4},
		},
		{
			"Stack a slice",
			func(x torch.Tensor) torch.Tensor { return torch.Stack(0, []torch.Tensor{x.At(1), x.At(0)}) },
			[]int{2, 3},
			[]float64{4, 5, 6, 1, 2, 3},
		},
		{
			"Cat",
			func(x torch.Tensor) torch.Tensor { return torch.Cat(0, 0, x.At(1), []torch.Tensor{x.At(0)}, 9) },
			[]int{8},
			[]float64{0, 4, 5, 6, 1, 2, 3, 9},
		},
		{
			"Where",
			func(x torch.Tensor) torch.Tensor { return torch.Where(x.Gt(3), x, 0) },
			[]int{2, 3},
			[]float64{0, 0, 0, 4, 5, 6},
		},
		{"Where numbers", func(x torch.Tensor) torch.Tensor { return torch.Where(x.Le(3), 0.1, -0.1) }, []int{2, 3},
			[]float64{0.1, 0.1, 0.1, -0.1, -0.1, -0.1}},
		{
			"Where number first",
			func(x torch.Tensor) torch.Tensor { return torch.Where(x.Eq(3), -1, x) },
			[]int{2, 3},
			[]float64{1, 2, -1, 4, 5, 6},
		},
		{
			"Clamp",
			func(x torch.Tensor) torch.Tensor { return x.Clamp(2, x.At(1, 1)) },
			[]int{2, 3},
			[]float64{2, 2, 3, 4, 5, 5},
		},
		{
			"Clamp to numbers",
			func(x torch.Tensor) torch.Tensor { return x.Clamp(2, 5) },
			[]int{2, 3},
			[]float64{2, 2, 3, 4, 5, 5},
		},
		// x xᵀ = 14 32 / 32 77 = L Lᵀ by hand: L = √14 0 / 32/√14 √(77 − 1024/14).
		{"Cholesky", func(x torch.Tensor) torch.Tensor { return x.MatMul(x.Transpose()).Cholesky() }, []int{2, 2},
			[]float64{math.Sqrt(14), 0, 32 / math.Sqrt(14), math.Sqrt(77 - 1024./14)}},
		// 1 0 / 4 5 y = 1, 2 has y = 1, −2/5, and 1 2 / 0 5 y = 1, 2 has y = 1/5, 2/5.
		{"SolveTriangular lower", func(x torch.Tensor) torch.Tensor {
			return x.Slice(1, 0, 2).SolveTriangular(vec([]float64{1, 2}), false)
		}, []int{2}, []float64{1, -0.4}},
		{"SolveTriangular upper", func(x torch.Tensor) torch.Tensor {
			return x.Slice(1, 0, 2).SolveTriangular(vec([]float64{1, 2}, 2, 1), true)
		}, []int{2, 1}, []float64{0.2, 0.4}},
		{
			"Zeros",
			func(x torch.Tensor) torch.Tensor { return torch.Zeros(2).Add(x.At(0, 0)) },
			[]int{2},
			[]float64{1, 1},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inScope(t, func(*torch.Scope) {
				x := vec([]float64{1, 2, 3, 4, 5, 6}, 2, 3)
				y := c.f(x)
				assert.Equal(t, c.shape, y.Shape())
				near(t, c.want, y.Values(), 1e-14)
				rows := torch.Must(torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
					return []torch.Tensor{c.f(in[0])}, nil
				}, []torch.Tensor{torch.Of(ts.MustStack([]*ts.Tensor{x.T(), x.T()}, 0))}, nil))
				assert.Equal(t, append([]int{2}, c.shape...), shapeOf(rows[0]))
				near(t, append(append([]float64{}, c.want...), c.want...), floats(rows[0]), 1e-14)
			})
		})
	}
}

// Sums of booleans count, Cholesky of what is not positive definite is NaN, and a matrix prints as its shape.
func TestTensorEdges(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		x := matrix([]float64{1, 2, 2, 1}, 2, 2)
		assert.Equal(t, 2.0, x.Gt(1).Sum().Item())
		assert.Equal(t, []float64{1, 1}, x.Gt(1).Sum(0).Values())
		assert.True(t, math.IsNaN(x.Cholesky().At(0, 0).Item()))
		assert.Equal(t, "[2 2] Double", x.String())
		assert.Equal(t, "0.5", fmt.Sprint(torch.Of(0.5)))
		whole := torch.Must(torch.To(x, torch.CPU, gotch.Int64))
		assert.Equal(t, 6.0, whole.Sum().Item())
	})
}

// ∇ Σ (x b + a)² by the chain rule: 2 (x b + a) x summed.
func TestTensorGradient(t *testing.T) {
	x := vec([]float64{1, 2, 3})
	defer torch.Free(x)
	value, grad, err := torch.ValueAndGrad(func(b torch.Tensor) torch.Tensor {
		return x.Mul(b).Add(0.5).Square().Sum()
	}, scalar(2))
	require.NoError(t, err)
	assert.InDelta(t, 2.5*2.5+4.5*4.5+6.5*6.5, value.Item(), 1e-12)
	assert.InDelta(t, 2*(2.5+4.5*2+6.5*3), grad.Item(), 1e-12)
}

// Mistakes are typed errors that name the line that asked, whether libtorch or this package finds them.
func TestTensorErrors(t *testing.T) {
	var at string
	for name, c := range map[string]struct {
		f    func(x torch.Tensor)
		want string
	}{
		"shapes":   {func(x torch.Tensor) { at = here(0); x.Add(vec([]float64{1, 2, 3, 4})) }, "must match"},
		"operand":  {func(x torch.Tensor) { at = here(0); x.Mul("2") }, "a string is no operand: a number, a"},
		"nil":      {func(x torch.Tensor) { at = here(0); x.Mul((*ts.Tensor)(nil)) }, "a *ts.Tensor that is nil"},
		"Of":       {func(torch.Tensor) { at = here(0); torch.Of([]float64{1}) }, "a []float64 is no operand"},
		"index":    {func(x torch.Tensor) { at = here(0); x.At(7) }, "out of range"},
		"range":    {func(x torch.Tensor) { at = here(0); x.Slice(0, 2, 1) }, "the range from 2 to 1"},
		"past end": {func(x torch.Tensor) { at = here(0); x.Slice(0, 0, 5) }, "exceeds"},
		"dim":      {func(x torch.Tensor) { at = here(0); x.Slice(4, -1, 2) }, "no dimension 4 in shape [2 3]"},
		"item":     {func(x torch.Tensor) { at = here(0); x.Item() }, "6 elements"},
	} {
		t.Run(name, func(t *testing.T) {
			err := torch.Do(func(*torch.Scope) error {
				c.f(matrix([]float64{1, 2, 3, 4, 5, 6}, 2, 3))
				return nil
			})
			require.ErrorContains(t, err, c.want)
			assert.ErrorContains(t, err, "(at "+at+")")
		})
	}
}

// Take is x[i], and x[i, j] for two indices, of the shapes that the documentation says. An index that is too large is
// an error.
func TestTake(t *testing.T) {
	x := torch.New([]float64{0, 1, 2, 3, 4, 5}, 3, 2)
	i := torch.New([]float64{2, 0, 1, 1}, 2, 2)
	assert.Equal(t, []float64{4, 5, 0, 1, 2, 3, 2, 3}, x.Take(i).Values())
	assert.Equal(t, []int{2, 2, 2}, x.Take(i).Shape())
	assert.Equal(t, []int{2}, x.Take(1).Shape())
	j := torch.New([]float64{1, 0})
	assert.Equal(t, []float64{5, 0, 3, 2}, x.Take(i, j).Values())
	for _, wrong := range [][]any{{3}, {-1}, {0, 2}, {0, -1}, {}, {0, 0, 0}} {
		assert.Error(t, torch.Do(func(*torch.Scope) error { x.Take(wrong...); return nil }), "%v", wrong)
	}
	r := i.Remembered()
	assert.Same(t, x.Take(r).T(), x.Take(r).T())
	assert.NotSame(t, x.Take(i).T(), x.Take(i).T())
	assert.Equal(t, x.Take(i).Values(), x.Take(r).Values())
}

// Arithmetic of whole numbers has the digits of float64: libtorch makes float32 of them beside a number, in which
// 1,700,000,007 is 1,700,000,000. Sums of bytes do not wrap around, and one minus a truth value is its opposite.
func TestWholeNumbersKeepTheirDigits(t *testing.T) {
	times := torch.New([]int{1_700_000_007, 1_700_000_014})
	counts := torch.New([]int32{1_700_000_007, 1_700_000_014})
	for _, x := range []torch.Tensor{times, counts} {
		for name, c := range map[string]struct {
			got  torch.Tensor
			want []float64
		}{
			"Sub":  {x.Sub(1.7e9), []float64{7, 14}},
			"Add":  {x.Add(-1.7e9), []float64{7, 14}},
			"from": {torch.Of(1.7e9).Sub(x), []float64{-7, -14}},
			"Mul":  {x.Mul(2), []float64{3_400_000_014, 3_400_000_028}},
			"Div":  {x.Div(2), []float64{850_000_003.5, 850_000_007}},
			"Pow":  {x.Pow(2).Sub(1.7e9 * 1.7e9).Div(1e9), []float64{23.800000049, 47.600000196}},
			"Min":  {x.Min(1_700_000_010), []float64{1_700_000_007, 1_700_000_010}},
			"Max":  {x.Max(1_700_000_010), []float64{1_700_000_010, 1_700_000_014}},
			"Gt":   {x.Gt(1_700_000_007), []float64{0, 1}},
			"Eq":   {x.Eq(1_700_000_014), []float64{0, 1}},
			"Mean": {x.Mean(), []float64{1_700_000_010.5}},
			"Std":  {x.Std(), []float64{7 / math.Sqrt2}},
		} {
			require.InDeltaSlice(t, c.want, c.got.Values(), 1e-6, name)
		}
	}
	bytes := torch.New([]uint8{100, 200, 255})
	require.Equal(t, []float64{555}, bytes.Sum().Values())
	require.Equal(t, []float64{100, 300, 555}, bytes.CumSum(0).Values())
	require.Equal(t, []float64{185}, bytes.Mean().Values())
	require.Equal(t, []float64{1, 0, 0}, torch.Of(1).Sub(bytes.Gt(150)).Values())
}

// Where of a condition that is not of booleans says that it must be compared.
func TestWhereOfNumbers(t *testing.T) {
	x := torch.New([]float64{1, 2})
	for dtype, d := range map[string]any{
		"Int64":  torch.New([]int{0, 1}),
		"Double": torch.New([]float64{0, 1}),
	} {
		for _, branches := range [][2]any{{x, x}, {x, 0}, {0, x}, {0, 1}} {
			err := torch.Do(func(*torch.Scope) error { torch.Where(d, branches[0], branches[1]); return nil })
			require.ErrorContains(t, err, "the condition is of type "+dtype+", and must be of booleans: compare, as in d.Gt(0)")
			require.ErrorContains(t, err, "(at torch/tensor_test.go:")
		}
	}
}
