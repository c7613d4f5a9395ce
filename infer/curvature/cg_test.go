package curvature_test

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
)

// spd is S B S for a well-conditioned B (eigenvalues around 1) and a diagonal S from 1 to √condition.
func spd(d int, condition float64) []float64 {
	v := numbers(d*d, 11)
	a := make([]float64, d*d)
	for i := range d {
		for j := range d {
			for k := range d {
				a[i*d+j] += v[i*d+k] * v[j*d+k] / float64(d)
			}
		}
		a[i*d+i] += 1
	}
	for i := range d {
		for j := range d {
			a[i*d+j] *= math.Pow(condition, float64(i+j)/float64(2*(d-1)))
		}
	}
	return a
}

// solved is A⁻¹b by Cholesky.
func solved(t testing.TB, a, b []float64) []float64 {
	t.Helper()
	var c mat.Cholesky
	require.True(t, c.Factorize(mat.NewSymDense(len(b), append([]float64{}, a...))))
	var x mat.VecDense
	require.NoError(t, c.SolveVecTo(&x, mat.NewVecDense(len(b), b)))
	return x.RawVector().Data
}

// product is the product with a flat matrix, in the type of the vector.
func product(a []float64) func(v torch.Tensor) (torch.Tensor, error) {
	return func(v torch.Tensor) (torch.Tensor, error) {
		d := shapeOf(v)[0]
		return raw.Of(torch.Must(torch.To(vec(a, d, d), torch.CPU, v.T().DType())).T().Mv(v.T(), false))
	}
}

// jacobi divides by the diagonal.
func jacobi(a []float64) func(r torch.Tensor) (torch.Tensor, error) {
	return func(r torch.Tensor) (torch.Tensor, error) {
		return raw.Of(r.T().Div(torch.Must(torch.To(vec(diagonal(a)), torch.CPU, r.T().DType())).T(), false))
	}
}

func residual(a, x, b []float64) float64 {
	s := 0.0
	for i, v := range times(a, x) {
		s += (b[i] - v) * (b[i] - v)
	}
	return math.Sqrt(s)
}

func length(x []float64) float64 { return residual(make([]float64, len(x)*len(x)), x, x) }

// In exact arithmetic conjugate gradients end after d steps. A preconditioner that undoes the scaling leaves the
// condition of B, so that rounding does not delay it.
func TestCGWithAPreconditioner(t *testing.T) {
	for _, d := range []int{2, 6, 20} {
		a, b := spd(d, 1e5), numbers(d, 5)
		r, err := curvature.CG(product(a), vec(b), curvature.CGOptions{Tol: 1e-8, Preconditioner: jacobi(a)})
		require.NoError(t, err)
		x := floats(r.X)
		assert.True(t, r.Converged)
		assert.LessOrEqual(t, r.Iterations, d)
		assert.LessOrEqual(t, residual(a, x, b), 1e-8*length(b)*(1+1e-6))
		assert.InDelta(t, residual(a, x, b), r.Residual, 1e-12)
		t.Logf("d = %d: %d iterations to a residual of %.1e |b|", d, r.Iterations, r.Residual/length(b))
		near(t, solved(t, a, b), x, 1e-6, "solution")
	}
}

// Without a preconditioner it takes longer, and converges all the same: error of x at most
// condition times the tolerance.
func TestCGOnABadlyScaledMatrix(t *testing.T) {
	a, b := spd(6, 1e5), numbers(6, 5)
	plain, err := curvature.CG(product(a), vec(b), curvature.CGOptions{Tol: 1e-12})
	require.NoError(t, err)
	require.True(t, plain.Converged, "%+v", plain)
	near(t, solved(t, a, b), floats(plain.X), 1e-7, "solution")
	t.Logf("%d iterations", plain.Iterations)
}

func TestCGOptions(t *testing.T) {
	d := 6
	a, b := spd(d, 100), numbers(d, 5)
	exact := solved(t, a, b)
	damped := append([]float64{}, a...)
	for i := range d {
		damped[i*d+i] += 3
	}

	r, err := curvature.CG(product(a), vec(b), curvature.CGOptions{Damping: 3, Tol: 1e-12})
	require.NoError(t, err)
	near(t, solved(t, damped, b), floats(r.X), 1e-11, "damped")

	start := vec(exact)
	r, err = curvature.CG(product(a), vec(b), curvature.CGOptions{Start: start, Tol: 1e-10})
	require.NoError(t, err)
	assert.Equal(t, 0, r.Iterations)
	near(t, exact, floats(r.X), 0, "started at the solution")

	start = vec(numbers(d, 60))
	r, err = curvature.CG(product(a), vec(b), curvature.CGOptions{Start: start, Tol: 1e-12, Preconditioner: jacobi(a)})
	require.NoError(t, err)
	near(t, exact, floats(r.X), 1e-10, "started elsewhere")
	near(t, numbers(d, 60), floats(start), 0, "the start is not overwritten")

	r, err = curvature.CG(product(a), vec(b), curvature.CGOptions{MaxIter: 2, Tol: 1e-12})
	require.NoError(t, err)
	assert.False(t, r.Converged)
	assert.Equal(t, 2, r.Iterations)
	assert.InDelta(t, residual(a, floats(r.X), b), r.Residual, 1e-14)

	// The tolerances: of the size of b, or absolute.
	for _, o := range []curvature.CGOptions{{}, {Tol: 1e-3}, {Atol: 1e-3}} {
		want := o.Tol * length(b)
		if o.Tol == 0 {
			want = 1e-5 * length(b)
		}
		if o.Atol > 0 {
			want = o.Atol
		}
		r, err = curvature.CG(product(a), vec(b), o)
		require.NoError(t, err)
		assert.True(t, r.Converged)
		assert.LessOrEqual(t, r.Residual, want)
		o.MaxIter = r.Iterations - 1
		r, err = curvature.CG(product(a), vec(b), o)
		require.NoError(t, err)
		assert.Greater(t, r.Residual, want, "one iteration less is not enough")
		assert.False(t, r.Converged)
	}

	r, err = curvature.CG(product(a), vec(make([]float64, d)), curvature.CGOptions{})
	require.NoError(t, err)
	assert.Equal(t, 0, r.Iterations)
	assert.True(t, r.Converged)
	near(t, make([]float64, d), floats(r.X), 0, "b = 0")

	// A goal below rounding ends, and says so.
	r, err = curvature.CG(product(a), vec(b), curvature.CGOptions{Tol: 1e-30, MaxIter: 1000})
	require.NoError(t, err)
	assert.False(t, r.Converged)
	near(t, exact, floats(r.X), 1e-13, "as good as rounding allows")
}

func TestCGInFloat32(t *testing.T) {
	a, b := spd(6, 100), numbers(6, 5)
	r, err := curvature.CG(product(a), torch.Must(torch.To(vec(b), torch.CPU, gotch.Float)), curvature.CGOptions{})
	require.NoError(t, err)
	assert.True(t, r.Converged)
	assert.Equal(t, gotch.Float, r.X.T().DType())
	near(t, solved(t, a, b), floats(r.X), 1e-3, "solution")
}

// The Newton step of a network: (GGN + λI) x = ∇, with products alone.
func TestCGWithGaussNewtonProducts(t *testing.T) {
	m := newNetwork(t, kinds[1])
	p, b, d := m.point(t), m.batch(), len(m.flat)
	x, err := curvature.GGN(m.forward, m.outer, p, b, curvature.Options{})
	a := must(t, x, err)
	for i := range d {
		a[i*d+i] += 0.5
	}
	v := numbers(d, 2)
	r, err := curvature.CG(func(v torch.Tensor) (torch.Tensor, error) {
		return curvature.GGNVP(m.forward, m.outer, p, b, v, curvature.Options{})
	}, vec(v), curvature.CGOptions{Damping: 0.5, Tol: 1e-11})
	require.NoError(t, err)
	near(t, solved(t, a, v), floats(r.X), 1e-9, "solution")
}

func TestCGErrors(t *testing.T) {
	indefinite := []float64{1, 0, 0, 0, -1, 0, 0, 0, 2}
	a, b := spd(3, 10), numbers(3, 5)
	own := errors.New("own error")
	minus := func(r torch.Tensor) (torch.Tensor, error) { return raw.Of(r.T().Neg(false)) }
	single := torch.Must(torch.To(vec(b), torch.CPU, gotch.Float))
	for _, c := range []struct {
		name  string
		apply func(v torch.Tensor) (torch.Tensor, error)
		b     torch.Tensor
		o     curvature.CGOptions
		text  string
		is    error
	}{
		{"indefinite", product(indefinite), vec(b), curvature.CGOptions{Tol: 1e-9},
			"the matrix is not positive definite: a direction v with vᵀAv = -", curvature.ErrIndefinite},
		{"singular", product(make([]float64, 9)), vec(b), curvature.CGOptions{}, "vᵀAv = 0 was met at iteration 1",
			curvature.ErrIndefinite},
		{"indefinite preconditioner", product(a), vec(b), curvature.CGOptions{Preconditioner: minus},
			"the preconditioner is not positive definite", curvature.ErrIndefinite},
		{"not finite", product([]float64{math.NaN(), 0, 0, 0, 1, 0, 0, 0, 1}), vec(b), curvature.CGOptions{}, "not finite",
			infer.ErrNonFinite},
		{"b not finite", product(a), vec([]float64{1, math.Inf(1), 0}), curvature.CGOptions{},
			"the right-hand side is not finite", infer.ErrNonFinite},
		{"own error", func(torch.Tensor) (torch.Tensor, error) { return torch.Tensor{}, own }, vec(b), curvature.CGOptions{},
			"own error",
			own},
		{"no matrix", nil, vec(b), curvature.CGOptions{}, "the product with the matrix is nil", infer.ErrConfig},
		{"no b", product(a), torch.Tensor{}, curvature.CGOptions{}, "the right-hand side is nil, expected shape [d]", nil},
		{"b a matrix", product(a), vec(b, 3, 1), curvature.CGOptions{}, "the right-hand side has shape [3 1], expected [d]",
			nil},
		{"start", product(a), vec(b), curvature.CGOptions{Start: vec(b[:2])}, "Start has shape [2], expected [3]", nil},
		{"type of start", product(a), vec(b), curvature.CGOptions{Start: single},
			"Start is Float and the right-hand side is Double: they must be of one type", nil},
		{"product", func(v torch.Tensor) (torch.Tensor, error) { return raw.Of(v.T().Narrow(0, 0, 2, false)) }, vec(b),
			curvature.CGOptions{},
			"the product with the matrix has shape [2], expected [3]", nil},
		{"nil product", func(v torch.Tensor) (torch.Tensor, error) { return torch.Tensor{}, nil }, vec(b),
			curvature.CGOptions{},
			"the product with the matrix is nil", nil},
		{"MaxIter", product(a), vec(b), curvature.CGOptions{MaxIter: -1},
			"curvature.CGOptions: MaxIter is -1: it must be finite and at least 0", infer.ErrConfig},
		{"Tol", product(a), vec(b), curvature.CGOptions{Tol: math.NaN()}, "Tol is NaN", infer.ErrConfig},
		{"Atol", product(a), vec(b), curvature.CGOptions{Atol: -1}, "Atol is -1", infer.ErrConfig},
		{"Damping", product(a), vec(b), curvature.CGOptions{Damping: -1}, "Damping is -1", infer.ErrConfig},
	} {
		_, err := curvature.CG(c.apply, c.b, c.o)
		require.Error(t, err, c.name)
		assert.Contains(t, err.Error(), "curvature.CG: ", c.name)
		assert.Contains(t, err.Error(), c.text, c.name)
		if c.is != nil {
			assert.ErrorIs(t, err, c.is, c.name)
		}
	}
	// Damping by more than the lowest eigenvalue makes the matrix positive definite.
	r, err := curvature.CG(product(indefinite), vec(b), curvature.CGOptions{Tol: 1e-9, Damping: 2})
	require.NoError(t, err)
	near(t, []float64{b[0] / 3, b[1], b[2] / 4}, floats(r.X), 1e-9, "damped")
}
