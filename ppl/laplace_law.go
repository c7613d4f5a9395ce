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

// at is the function at x, and puts its gradient into grad. An error is a panic.
func (s *scalar) at(x, grad []float64) (value float64) {
	if s.code != nil {
		return torch.Must(s.code.Eval(x, 0, grad))
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
	return value
}

// weighed is Σ wᵢ xᵢ.
func weighed(w, x torch.Tensor) torch.Tensor { return w.Mul(x.Reshape(-1)).Sum() }

// findLikelihood makes the function
//
//	a log p(y|f, φ) + Σ bᵢ gᵢ + Σ cᵢ hᵢ
//
// of φ, f, b, c and a, where g are the derivatives of log p in f and h those of Σ g: the second derivatives, as each
// datum depends on one element of f. It checks that this is so.
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
	of := func(x torch.Tensor, f func(k int) torch.Tensor, at torch.Tensor, batch infer.Batch) torch.Tensor {
		value, g, h := l.derivatives(at, f(1), batch)
		return value.Mul(x.At(l.d + 3*l.n)).Add(weighed(f(2), g)).Add(weighed(f(3), h))
	}
	part := func(x torch.Tensor, k int) torch.Tensor { return x.Slice(0, l.d+(k-1)*l.n, l.d+k*l.n) }
	var err error
	if l.data, err = newScalar(func(x torch.Tensor, batch infer.Batch) torch.Tensor {
		return of(x, func(k int) torch.Tensor { return part(x, k) }, x, batch)
	}, batch, points); err != nil {
		return err
	}
	l.near, err = newScalar(func(x torch.Tensor, batch infer.Batch) torch.Tensor {
		fixed := torch.Of(x.T().MustDetach(false))
		return of(x, func(k int) torch.Tensor {
			if k == 1 {
				return torch.Must(torch.Leaf(part(fixed, 1)))
			}
			return part(x, k)
		}, fixed, batch)
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
	room() gaussian
}

// gaussian is a law with its parameters, and memory for what is computed with them. Results go into the arguments that
// come first.
type gaussian interface {
	set(parameters []float64)
	mean() []float64
	// from is where Newton's method starts, by what origin made of a mode: f, and the prior's precision times f − mean.
	from(f, a, start []float64)
	origin(f, a []float64) []float64
	// factor prepares solutions with H = precision + diag w, w ≥ 0; false where H is not positive definite. solve is
	// H⁻¹ r, and the precision times that.
	factor(w []float64) bool
	solve(df, da, r []float64)
	// finish has log det precision/2 − log det H/2 for w = −bend of either sign, and the diagonal of H⁻¹.
	finish(bend, variances []float64) (logDet float64, ok bool)
	// adjoint are the derivatives of the log marginal in the parameters, where s are those of −log det H/2 in f, and
	// H⁻¹ s, by which the derivatives of the likelihood's gradient count.
	adjoint(parameters, along, f, a, s []float64)
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
