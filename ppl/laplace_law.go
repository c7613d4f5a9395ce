package ppl

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/internal/sparse"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
)

// scalar is a function of dim numbers that gives one, with its gradient: compiled where it can be.
type scalar struct {
	dim   int
	of    func(x torch.Tensor, batch infer.Batch) torch.Tensor
	batch infer.Batch
	code  *native.Func
}

// newScalar compiles a function, which is compared with tensors at two points.
func newScalar(of func(x torch.Tensor, batch infer.Batch) torch.Tensor, batch infer.Batch, points [2][]float64) (
	*scalar, error) {
	s := &scalar{dim: len(points[0]), of: of, batch: batch}
	source := native.Source{Dim: s.dim, Batch: batch}
	source.Evaluate = func(x torch.Tensor, batch map[string]torch.Tensor) (values, grads []torch.Tensor,
		_ map[string]torch.Tensor, err error) {
		value, grad, err := s.eager(x, batch)
		return []torch.Tensor{value}, []torch.Tensor{grad}, nil, err
	}
	var err error
	s.code, _, err = native.Compile(source, points[:], native.Options{})
	if err != nil && !errors.Is(err, native.ErrNative) {
		return nil, err
	}
	return s, nil
}

func (s *scalar) eager(x torch.Tensor, batch infer.Batch) (value, grad torch.Tensor, err error) {
	return torch.ValueAndGrad(func(x torch.Tensor) torch.Tensor { return s.of(x, batch) }, x)
}

// at is the function at x, with its gradient. An error is a panic.
func (s *scalar) at(x []float64) (value float64, grad []float64) {
	grad = make([]float64, s.dim)
	if s.code != nil {
		return torch.Must(s.code.Eval(x, 0, grad)), grad
	}
	torch.Must(0, torch.Do(func(*torch.Scope) error {
		v, g, err := s.eager(torch.New(x), s.batch)
		if err == nil {
			value, err = torch.Item(v)
		}
		if err == nil {
			err = torch.CopyTo(grad, g)
		}
		return err
	}))
	return value, grad
}

// weighed is Σ wᵢ xᵢ.
func weighed(w, x torch.Tensor) torch.Tensor { return w.Mul(x.Reshape(-1)).Sum() }

// findLikelihood makes the function of [laplace.likelihood], and checks that it is as the method needs it.
func (l *laplace) findLikelihood(points [2][]float64) error {
	batch := l.full.converted(infer.Params{Flat: torch.Scalar(0)}, l.full.batch)
	f := func(scale float64) []float64 {
		x := make([]float64, l.n)
		for i := range x {
			x[i] = scale * math.Cos(1.3*float64(i)+0.4)
		}
		return x
	}
	if err := l.check(points[1], f(0.5), batch); err != nil {
		return err
	}
	for k := range points {
		points[k] = slices.Concat(points[k], f(0.3*float64(k+1)), f(1), f(-1), []float64{0.7})
	}
	var err error
	l.data, err = newScalar(func(x torch.Tensor, batch infer.Batch) torch.Tensor {
		part := func(k int) torch.Tensor { return x.Slice(0, l.d+(k-1)*l.n, l.d+k*l.n) }
		value, g, h := l.derivatives(x, part(1), batch)
		return value.Mul(x.At(l.d + 3*l.n)).Add(weighed(part(2), g)).Add(weighed(part(3), h))
	}, batch, points)
	return err
}

// derivatives are log p(y|f, φ), its derivatives g in f and those of Σ g, all of which can be differentiated.
func (l *laplace) derivatives(x, f torch.Tensor, batch infer.Batch) (value, g, h torch.Tensor) {
	value, _ = l.terms(x, f, batch)
	derivative := func(of torch.Tensor) torch.Tensor {
		of = of.Add(f.Pow(3).Sum().Mul(0)) // so that it depends on f
		return torch.Must(torch.Grad([]torch.Tensor{of}, []torch.Tensor{f}, &torch.GradOptions{CreateGraph: true}))[0]
	}
	g = derivative(value)
	return value, g, derivative(g.Sum())
}

// terms are the log likelihood and the log prior of φ, at φ, the first numbers of x, and f.
func (l *laplace) terms(x, f torch.Tensor, batch infer.Batch) (likelihood, prior torch.Tensor) {
	values := l.given(x)
	values[l.site] = f.Reshape(l.full.latents[l.site].shape...)
	likelihood, prior = torch.Of(0), torch.Of(0)
	run(l.full.model, &execution{batch: batch, values: values}, []Handler{&evaluator{program: l.full,
		collect: func(s *Site) {
			switch {
			case !s.counts() || s.Name == l.site:
			case s.density != nil:
				s.fail("it is a Go function, of which second derivatives are not known")
			case s.Prior():
				prior = prior.Add(sumAll(s.elementwise()).Mul(s.Scale))
			default:
				likelihood = likelihood.Add(sumAll(s.elementwise()).Mul(s.Scale))
			}
		}}})
	return likelihood, prior
}

// check makes sure that f is no parameter of φ, and that each datum depends on one of its elements: that the second
// derivatives times a vector are their sums times it.
func (l *laplace) check(phi, at []float64, batch infer.Batch) error {
	return torch.Do(func(*torch.Scope) error {
		x, f := torch.New(phi), torch.Must(torch.Leaf(torch.New(at)))
		_, prior := l.terms(x, f, batch)
		prior = prior.Add(f.Sum().Mul(0))
		slopes, err := torch.Grad([]torch.Tensor{prior}, []torch.Tensor{f}, nil)
		if err != nil {
			return err
		}
		for _, v := range slopes[0].Values() {
			if v != 0 {
				return fmt.Errorf("another latent variable has a law that depends on %q, and would have to be integrated out "+
					"with it: %w", l.site, infer.ErrConfig)
			}
		}
		_, g, h := l.derivatives(x, f, batch)
		v := make([]float64, l.n)
		for i := range v {
			v[i] = math.Sin(2.9*float64(i) + 1)
		}
		of := weighed(torch.New(v), g).Add(f.Pow(3).Sum().Mul(0))
		all, err := torch.Grad([]torch.Tensor{of}, []torch.Tensor{f}, nil)
		if err != nil {
			return err
		}
		largest, sums := 0.0, h.Values()
		for _, s := range sums {
			largest = max(largest, math.Abs(s))
		}
		for i, got := range all[0].Values() {
			if want := sums[i] * v[i]; math.Abs(got-want) > 1e-8*max(largest, math.Abs(got)) {
				return fmt.Errorf("an observation depends on element %d of %q and on others: each must depend on one element; "+
					"declare the sum that they have in common as the variable, with its covariance: %w", i, l.site,
					infer.ErrConfig)
			}
		}
		return nil
	})
}

// law is what f is given φ. Its parameters are numbers: those of its precision or covariance, then its mean, then the
// logarithm of the precision's determinant, which may be 0 where it is not known.
type law interface {
	with(parameters []float64) gaussian
}

// gaussian is a law with its parameters.
type gaussian interface {
	mean() []float64
	// from is where Newton's method starts, by what origin made of a mode: f, and the prior's precision times f − mean.
	from(start []float64) (f, a []float64)
	origin(f, a []float64) []float64
	// factor prepares solutions with H = precision + diag w, w ≥ 0; false where H is not positive definite. solve is
	// H⁻¹ r, and the precision times that.
	factor(w []float64) bool
	solve(r []float64) (df, da []float64)
	// finish has log det precision/2 − log det H/2 for w = −bend of either sign, and the diagonal of H⁻¹.
	finish(bend []float64) (logDet float64, variances []float64, ok bool)
	// adjoint are the derivatives of the log marginal in the parameters, where s are those of −log det H/2 in f, and
	// what the derivatives of the likelihood's gradient count.
	adjoint(f, a, s []float64) (parameters, along []float64)
	// draw is a draw from N(0, H⁻¹), after finish.
	draw(normal func() float64) []float64
}

// findLaw finds the law of f, and makes the function whose gradient in the weights of its parameters they are.
func (l *laplace) findLaw(points [2][]float64) error {
	batch := l.full.converted(infer.Params{Flat: torch.Scalar(0)}, l.full.batch)
	m := 0
	err := torch.Do(func(*torch.Scope) error {
		d := l.distribution(torch.New(points[0]), batch)
		parameters, _, _ := l.parameters(d)
		m = parameters.Numel()
		l.law = l.lawOf(d)
		return nil
	})
	if err != nil {
		return err
	}
	for k := range points {
		w := make([]float64, m+l.n+1)
		for i := range w {
			w[i] = math.Cos(1.9*float64(i) + float64(k))
		}
		points[k] = slices.Concat(points[k], w)
	}
	l.prior, err = newScalar(func(x torch.Tensor, batch infer.Batch) torch.Tensor {
		matrix, mean, logDet := l.parameters(l.distribution(x, batch))
		value := weighed(x.Slice(0, l.d, l.d+m), matrix)
		value = value.Add(weighed(x.Slice(0, l.d+m, l.d+m+l.n), mean.Expand(l.full.latents[l.site].shape...)))
		return value.Add(x.At(l.d + m + l.n).Mul(logDet))
	}, batch, points)
	return err
}

// distribution is the law of f at φ, the first numbers of x.
func (l *laplace) distribution(x torch.Tensor, batch infer.Batch) (d dist.Distribution) {
	until(func() {
		run(l.full.model, &execution{batch: batch, values: l.given(x)}, []Handler{&evaluator{program: l.full}, process(
			func(s *Site) {
				if s.Name == l.site {
					d = s.given
					panic(stopped{})
				}
			})})
	})
	return d
}

// precise is a distribution whose precision is sparse.
type precise interface {
	Precision() (pattern *sparse.Pattern, values, logDet torch.Tensor)
}

// parameters are those of the law: the values of the precision or covariance, the mean, and the determinant of the
// precision where it is known.
func (l *laplace) parameters(d dist.Distribution) (matrix, mean, logDet torch.Tensor) {
	shape := l.full.latents[l.site].shape
	if f, ok := d.(precise); ok {
		if len(d.BatchShape()) == 0 && len(shape) == 1 {
			if _, matrix, logDet = f.Precision(); logDet == (torch.Tensor{}) {
				logDet = torch.Of(0)
			}
			return matrix, torch.Zeros(shape...), logDet
		}
	} else if loc, scale, _, ok := (&Site{Dist: d}).normalParams(); ok {
		return torch.Of(scale.T()).Expand(shape...).Pow(-2), torch.Of(loc.T()), torch.Of(0)
	} else if p, ok := d.(dist.Parameterised); ok && len(d.BatchShape()) == 0 && len(shape) == 1 {
		params := p.Params()
		if cov, ok := params["covariance_matrix"].(torch.Tensor); ok {
			return cov, torch.Of(params["loc"].(torch.Tensor).T()), torch.Of(0)
		}
		if tril, ok := params["scale_tril"].(torch.Tensor); ok && d.Name() == "MultivariateNormalCholesky" {
			tril = torch.Of(tril.T().MustTril(0, false))
			return tril.MatMul(tril.Transpose()), torch.Of(params["loc"].(torch.Tensor).T()), torch.Of(0)
		}
	}
	panic(&SiteError{Site: l.site, Distribution: d.Name(), Message: fmt.Sprintf("its law, of shape %v, cannot be "+
		"integrated out: it must be one field of package dist, one MultivariateNormal or MultivariateNormalCholesky, or "+
		"independent Normal numbers", shape)})
}

// lawOf is the law by a distribution.
func (l *laplace) lawOf(d dist.Distribution) law {
	f, ok := d.(precise)
	switch {
	case ok:
		pattern, _, logDet := f.Precision()
		s := &sparseLaw{n: l.n, pattern: pattern, analysis: pattern.Analyse(), known: logDet != (torch.Tensor{})}
		s.group(d.Support())
		return s
	case d.Name() == "MultivariateNormal" || d.Name() == "MultivariateNormalCholesky":
		return denseLaw{l.n}
	}
	pattern := sparse.NewPattern(l.n, nil)
	return &sparseLaw{n: l.n, pattern: pattern, analysis: pattern.Analyse()}
}

// denseLaw is one by its covariance K: with B = I + √W K √W all is as in Rasmussen and Williams (2006), algorithms 3.1
// and 5.1. No precision is needed, so that K may be nearly singular.
type denseLaw struct{ n int }

type denseGaussian struct {
	n      int
	k      *mat.SymDense
	loc    []float64
	root   []float64         // √w
	b      blas64.Triangular // U with UᵀU = B
	r      *mat.SymDense     // √W B⁻¹ √W = (K + W⁻¹)⁻¹
	signed bool              // w has elements below 0
}

func (l denseLaw) with(p []float64) gaussian {
	return &denseGaussian{n: l.n, k: mat.NewSymDense(l.n, p[:l.n*l.n]), loc: p[l.n*l.n : l.n*l.n+l.n]}
}

func (g *denseGaussian) mean() []float64 { return g.loc }

// times is A x for a symmetric A.
func times(a *mat.SymDense, x []float64) []float64 {
	out := make([]float64, len(x))
	blas64.Symv(1, a.RawSymmetric(), vector(x), 0, vector(out))
	return out
}

func vector(x []float64) blas64.Vector { return blas64.Vector{N: len(x), Data: x, Inc: 1} }

func (g *denseGaussian) from(start []float64) (f, a []float64) {
	return plus(g.loc, times(g.k, start), 1), slices.Clone(start)
}

func (g *denseGaussian) origin(_, a []float64) []float64 { return a }

func (g *denseGaussian) factor(w []float64) (ok bool) {
	g.root = make([]float64, g.n)
	for i, v := range w {
		g.root[i] = math.Sqrt(v)
	}
	b := make([]float64, g.n*g.n)
	k := g.k.RawSymmetric().Data // of which the upper triangle counts
	for i, v := range g.root {
		for j := i; j < g.n; j++ {
			b[i*g.n+j] = v * k[i*g.n+j] * g.root[j]
		}
		b[i*g.n+i]++
	}
	g.b = blas64.Triangular{N: g.n, Stride: g.n, Data: b, Uplo: blas.Upper, Diag: blas.NonUnit}
	return inPlace(b, g.n, func(t *ts.Tensor) *ts.Tensor {
		l, info := t.MustLinalgCholeskyEx(true, false, false)
		ok = torch.Of(info).Item() == 0
		return l
	}) && ok
}

// inPlace replaces an n x n matrix by what libtorch makes of it, whose LAPACK is several times as fast as one in Go.
func inPlace(a []float64, n int, f func(t *ts.Tensor) *ts.Tensor) bool {
	err := torch.Do(func(*torch.Scope) error {
		t, err := torch.FromSlice(a, n, n)
		if err != nil {
			return err
		}
		return torch.CopyTo(a, torch.Of(f(t.T())))
	})
	return err == nil
}

// inner is √W B⁻¹ √W x, with add to √W x.
func (g *denseGaussian) inner(x, add []float64) []float64 {
	y := make([]float64, g.n)
	for i, v := range g.root {
		y[i] = v * x[i]
		if add != nil {
			y[i] += add[i]
		}
	}
	blas64.Trsv(blas.Trans, g.b, vector(y))
	blas64.Trsv(blas.NoTrans, g.b, vector(y))
	for i, v := range g.root {
		y[i] *= v
	}
	return y
}

// solve: H⁻¹ r = K (r − √W B⁻¹ √W K r).
func (g *denseGaussian) solve(r []float64) (df, da []float64) {
	da = plus(r, g.inner(times(g.k, r), nil), -1)
	return times(g.k, da), da
}

// finish has the diagonal of H⁻¹ = W⁻¹ − W⁻¹ R W⁻¹, and where w is so small that the difference would lose digits, that
// of K − K R K.
func (g *denseGaussian) finish(bend []float64) (logDet float64, variances []float64, ok bool) {
	w := make([]float64, g.n)
	for i, h := range bend {
		w[i] = -h
		g.signed = g.signed || h > 0
	}
	if g.signed {
		return g.finishSigned(w)
	}
	if !g.factor(w) {
		return 0, nil, false
	}
	for i := range g.n {
		logDet -= math.Log(g.b.Data[i*g.n+i])
	}
	inverse := slices.Clone(g.b.Data)
	if !inPlace(inverse, g.n, func(t *ts.Tensor) *ts.Tensor { return t.MustCholeskyInverse(true, false) }) {
		return 0, nil, false
	}
	g.r = mat.NewSymDense(g.n, nil)
	for i := range g.n {
		for j := i; j < g.n; j++ {
			g.r.SetSym(i, j, g.root[i]*inverse[i*g.n+j]*g.root[j])
		}
	}
	variances = make([]float64, g.n)
	for i, v := range w {
		left := 1 - g.r.At(i, i)/v
		if left > 1e-4 {
			variances[i] = left / v
			continue
		}
		row := make([]float64, g.n)
		for j := range row {
			row[j] = g.k.At(i, j)
		}
		variances[i] = g.k.At(i, i) - blas64.Dot(vector(row), vector(times(g.r, row)))
	}
	return logDet, variances, true
}

// finishSigned is finish by I + K W, of which H⁻¹ = (I + K W)⁻¹ K and R = W − W H⁻¹ W.
func (g *denseGaussian) finishSigned(w []float64) (logDet float64, variances []float64, ok bool) {
	m := mat.NewDense(g.n, g.n, nil)
	for i := range g.n {
		for j, v := range w {
			m.Set(i, j, g.k.At(i, j)*v)
		}
		m.Set(i, i, m.At(i, i)+1)
	}
	var lu mat.LU
	lu.Factorize(m)
	logDet, sign := lu.LogDet()
	if lu.SolveTo(m, false, g.k) != nil || sign <= 0 {
		return 0, nil, false
	}
	g.r = mat.NewSymDense(g.n, nil)
	variances = make([]float64, g.n)
	for i := range g.n {
		if variances[i] = m.At(i, i); !(variances[i] > 0) {
			return 0, nil, false
		}
		for j := i; j < g.n; j++ {
			g.r.SetSym(i, j, -w[i]*w[j]*(m.At(i, j)+m.At(j, i))/2)
		}
		g.r.SetSym(i, i, g.r.At(i, i)+w[i])
	}
	return -logDet / 2, variances, true
}

// adjoint: with q = s − R K s, of K they are (a aᵀ − R)/2 + q aᵀ, and of the mean a + q.
func (g *denseGaussian) adjoint(_, a, s []float64) (parameters, weights []float64) {
	q := plus(s, times(g.r, times(g.k, s)), -1)
	parameters = make([]float64, g.n*g.n, g.n*g.n+g.n+1)
	r := g.r.RawSymmetric().Data
	for i := range g.n {
		for j := range g.n {
			parameters[i*g.n+j] = (a[i]*a[j]-r[min(i, j)*g.n+max(i, j)])/2 + q[i]*a[j]
		}
	}
	return append(append(parameters, plus(a, q, 1)...), 0), times(g.k, q)
}

// draw is u − K √W B⁻¹ (√W u + z) for u ~ N(0, K) and z ~ N(0, I), or by the eigenvalues of K − K R K, of which
// rounding leaves small ones of either sign.
func (g *denseGaussian) draw(normal func() float64) []float64 {
	z := make([]float64, g.n)
	for i := range z {
		z[i] = normal()
	}
	own := mat.NewSymDense(g.n, nil)
	own.CopySym(g.k)
	if !g.signed {
		if l, ok := lapack64.Potrf(own.RawSymmetric()); ok {
			u := slices.Clone(z)
			blas64.Trmv(blas.Trans, l, vector(u)) // of an upper triangle
			for i := range z {
				z[i] = normal()
			}
			return plus(u, times(g.k, g.inner(u, z)), -1)
		}
	}
	var c mat.Dense
	c.Product(g.k, g.r, g.k)
	for i := range g.n {
		for j := i; j < g.n; j++ {
			own.SetSym(i, j, g.k.At(i, j)-(c.At(i, j)+c.At(j, i))/2)
		}
	}
	var e mat.EigenSym
	if !e.Factorize(own, true) {
		return slices.Repeat([]float64{math.NaN()}, g.n)
	}
	for i, v := range e.Values(nil) {
		z[i] *= math.Sqrt(max(v, 0))
	}
	var vectors mat.Dense
	e.VectorsTo(&vectors)
	out := mat.NewVecDense(g.n, nil)
	out.MulVec(&vectors, mat.NewVecDense(g.n, z))
	return out.RawVector().Data
}
