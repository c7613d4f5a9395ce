package ppl

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/parallel"
	"github.com/kelvin-ppl/kelvin/torch"
	"gonum.org/v1/gonum/floats"
)

// MarginalLaplace compiles a model with a latent Gaussian variable f integrated out by Laplace's method (Tierney and
// Kadane 1986; Rue, Martino and Chopin 2009): with H = −∂²/∂f² log p(y, f|φ) at the mode f̂ of f given y and all other
// latent variables φ,
//
//	p(y|φ) ≈ p(y, f̂|φ) (2π)^(n/2) |H|^(-½)
//
// whose gradient in φ is exact, by the implicit function theorem (Margossian, Vehtari, Simpson and Agrawal 2020). It is
// the log density of a program of φ alone, for any method that needs no second derivatives. Its draws, the predictions
// and the cross-validation have f too, drawn for each draw of φ from N(f̂ + q, H⁻¹). The shift
//
//	q = ½ H⁻¹ t,  tᵢ = (H⁻¹)ᵢᵢ ∂³/∂fᵢ³ log p(y|f, φ)
//
// leads from the mode to the mean, to the first order (Tierney, Kass and Kadane 1989; it is that of the simplified
// Laplace approximation of Rue, Martino and Chopin).
//
// f is a field of package dist (ICAR, BYM2, CAR, RandomWalk, Matern), whose precision stays sparse, independent normal
// numbers, or a multivariate normal variable with a covariance or its factor. Each observation must depend on one
// element of f, or on none; f, and what depends on it, must be no parameter of another latent variable. Observations
// are best where their log density is concave in f, as that of counts and of binary data is: then f has one mode. The
// approximation is exact for normal data, and good where an element of f has much data, or little against its prior.
//
// A point at which Newton's method finds no mode has the density 0.
func MarginalLaplace(m Model, batch infer.Batch, site string) (*Program, error) {
	fail := func(err error) (*Program, error) { return nil, fmt.Errorf("ppl.MarginalLaplace: %w", err) }
	full, err := Compile(levelled(m, site), batch)
	if err != nil {
		return nil, err
	}
	l := &laplace{full: full, site: site}
	if err := l.prepare(); err != nil {
		return fail(err)
	}
	p, err := Compile(l.hyper, full.batch)
	if err != nil {
		return fail(err)
	}
	p.laplace = l
	if err := l.findOuter(p); err != nil {
		return fail(err)
	}
	return p, nil
}

// levelled is a model whose variable f has a flat prior, as its law given φ is not asked for.
func levelled(m Model, site string) Model {
	return handle(m, func(*Ctx) Handler {
		return process(func(s *Site) {
			if s.Name == site && s.Kind == KindSample && !s.Observed {
				d := s.Dist
				s.Dist = dist.ImproperUniform(d.Support(), d.BatchShape(), d.EventShape())
			}
		})
	})
}

// laplace is a model with a variable that is integrated out.
type laplace struct {
	full  *Program // of f and φ
	site  string
	names []string // φ
	shape [][]int  // of each
	d, n  int      // how many numbers φ and f have
	law   law
	prior *scalar // of φ and weights: see lawOf
	data  *scalar // of φ, f and weights: see findLikelihood
	near  *scalar // the same for fixed φ and f, of weights alone
	outer *scalar // of a point of unconstrained space and weights: see direct
	start []float64
	rooms sync.Pool // of *newton
}

// newton is f at its mode, and what is known there, with the memory of one evaluation.
type newton struct {
	law            gaussian
	f, a           []float64 // f̂, and the prior's precision times f̂ − its mean
	value          float64   // log p(y, f̂|φ) without the prior's determinant
	gradient, bend []float64 // of the log likelihood in each element: first and second derivatives
	variances      []float64

	from, at, df, da, r, w []float64 // the point and a before a step, the step, its right side, and weights
	x, slopes              []float64 // of data and near: φ, f and the weights b, c and a; and their gradient
	px, parameters         []float64 // of prior
}

// room is memory for an evaluation at φ, which goes back to rooms.
func (l *laplace) room(phi []float64) *newton {
	m, ok := l.rooms.Get().(*newton)
	if !ok {
		m = &newton{law: l.law.room()}
		for _, v := range []*[]float64{&m.f, &m.a, &m.variances, &m.from, &m.at, &m.df, &m.da, &m.r, &m.w} {
			*v = make([]float64, l.n)
		}
		m.x, m.slopes = make([]float64, l.data.dim), make([]float64, l.data.dim)
		m.px, m.parameters = make([]float64, l.prior.dim), make([]float64, l.prior.dim)
		m.gradient, m.bend = l.block(m.slopes, 2), l.block(m.slopes, 3)
	}
	for _, x := range [][]float64{m.x, m.px} {
		clear(x[copy(x, phi):])
	}
	m.x[len(m.x)-1] = 1
	return m
}

// prepare finds φ and the law of f, and makes the functions of them.
func (l *laplace) prepare() error {
	p := l.full
	if _, ok := p.latents[l.site]; !ok {
		return fmt.Errorf("the model has no latent variable %q; it has %q: %w", l.site, p.order, infer.ErrConfig)
	}
	if p.sums != nil {
		return fmt.Errorf("the model has discrete variables that are summed out: %w", infer.ErrConfig)
	}
	for _, name := range p.order {
		if name != l.site {
			shape := p.latents[name].shape
			l.names, l.shape = append(l.names, name), append(l.shape, shape)
			l.d += int(count(shape))
		}
	}
	if l.d == 0 {
		return fmt.Errorf("the model has no latent variable beside %q: nothing is left to infer; infer/laplace fits a "+
			"normal distribution: %w", l.site, infer.ErrConfig)
	}
	l.n = int(count(p.latents[l.site].shape))
	var points [2][]float64
	for k := range points {
		var err error
		if points[k], err = l.pointAt(0.3 * float64(k)); err != nil {
			return err
		}
	}
	if err := l.findLaw(points); err != nil {
		return err
	}
	if err := l.findLikelihood(points); err != nil {
		return err
	}
	l.start = make([]float64, l.n)
	m := l.room(points[0])
	defer l.rooms.Put(m)
	if l.mode(m) { // where Newton's method always starts: runs are the same, bit for bit
		l.start = slices.Clone(m.law.origin(m.f, m.a))
	}
	return nil
}

// pointAt are values of φ at a point of unconstrained space.
func (l *laplace) pointAt(scale float64) (phi []float64, err error) {
	point, err := l.full.scattered(scale)
	if err != nil {
		return nil, err
	}
	defer torch.Free(point.Flat)
	values, err := l.full.Constrain(point, l.full.batch)
	if err != nil {
		return nil, err
	}
	for _, name := range l.names {
		v, err := torch.ToSlice[float64](values[name])
		if err != nil {
			return nil, err
		}
		phi = append(phi, v...)
	}
	for _, v := range values {
		torch.Free(v)
	}
	return phi, nil
}

// given are φ, the first numbers of x, by name.
func (l *laplace) given(x torch.Tensor) Values {
	values, at := Values{}, 0
	for i, name := range l.names {
		n := int(count(l.shape[i]))
		values[name] = x.Slice(0, at, at+n).Reshape(l.shape[i]...)
		at += n
	}
	return values
}

// predicting is the program whose model predicts: that with f, where it is integrated out.
func (p *Program) predicting() *Program {
	if p.laplace != nil {
		return p.laplace.full
	}
	return p
}

// stopped is the panic of a run that has seen what it was for.
type stopped struct{}

// until runs f, which may stop.
func until(f func()) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(stopped); !ok {
				panic(r)
			}
		}
	}()
	f()
}

// hyper is the model of φ: the model until all of φ is there, and then one density.
func (l *laplace) hyper(c *Ctx) {
	inputs := map[string]torch.Tensor{}
	until(func() {
		l.full.open.in(c.With(hyperOnly{l, inputs}))
	})
	phi := make([]torch.Tensor, len(l.names))
	for i, name := range l.names {
		phi[i] = inputs[name]
	}
	s := &Site{Kind: KindFactor, Name: l.site + "_integrated", Observed: true, Scale: 1,
		density: &density{f: l.logDensity, inputs: phi, exact: true}}
	c.visit(s)
}

// findOuter makes the function of a point x of unconstrained space, weights w for φ and the weight j
//
//	log p(φ) + j log |∂φ/∂x| + Σ wᵢ φᵢ
func (l *laplace) findOuter(p *Program) error {
	dim := p.layout.Dim()
	var points [2][]float64
	for k := range points {
		points[k] = make([]float64, dim+l.d+1)
		for i := range points[k] {
			points[k][i] = 0.4 * math.Cos(2.1*float64(i)+float64(k))
		}
	}
	var err error
	l.outer, err = newScalar(func(x torch.Tensor, batch infer.Batch) torch.Tensor {
		point := torch.Must(infer.Params{Layout: p.layout, Flat: x.Slice(0, 0, dim)}.Split())
		sum, values := x.Sum().Mul(0), Values{}
		execute(p.model, batch, nil, &evaluator{program: p, point: point, weights: infer.Weights{Jacobian: 1},
			collect: func(s *Site) {
				if slices.Contains(l.names, s.Name) {
					values[s.Name] = s.Value
				}
				if s.counts() && s.density == nil {
					sum = sum.Add(sumAll(s.elementwise()).Mul(s.Scale))
				}
				if s.Jacobian != (torch.Tensor{}) {
					sum = sum.Add(s.Jacobian.Mul(x.At(dim + l.d)))
				}
			}})
		at := dim
		for i, name := range l.names {
			n := int(count(l.shape[i]))
			sum = sum.Add(weighed(x.Slice(0, at, at+n), values[name]))
			at += n
		}
		return sum
	}, p.converted(infer.Params{Flat: torch.Scalar(0)}, p.batch), points)
	return err
}

// Direct is the log density of a program of [MarginalLaplace] in Go, nil of others: with no tensors but those of the
// model's own parts.
func (p *Program) Direct() func(x []float64, jacobian float64, grad []float64) (float64, error) {
	l := p.laplace
	if l == nil || l.outer == nil {
		return nil
	}
	dim := p.layout.Dim()
	return func(x []float64, jacobian float64, grad []float64) (value float64, err error) {
		err = torch.Do(func(*torch.Scope) error {
			at := slices.Concat(x, make([]float64, l.d), []float64{jacobian})
			g := make([]float64, len(at))
			l.outer.at(at, g)
			phi, slope := g[dim:dim+l.d], at[dim:dim+l.d]
			value = l.logDensity([][]float64{phi}, [][]float64{slope})
			value += l.outer.at(at, g)
			for i, v := range phi {
				value -= v * slope[i]
			}
			copy(grad, g)
			return nil
		})
		return value, err
	}
}

// hyperOnly hides f, and what depends on data.
type hyperOnly struct {
	*laplace
	inputs map[string]torch.Tensor
}

func (h hyperOnly) Process(s *Site) {
	switch {
	case s.Name == h.site && s.Kind == KindSample:
		s.Value = zeros(h.full.latents[h.site].shape)
		s.Observed, s.hidden = true, true
	case s.Observed && (s.Kind == KindSample || s.Kind == KindFactor):
		s.hidden = true
	}
}

func (h hyperOnly) Finish(s *Site) {
	if slices.Contains(h.names, s.Name) {
		h.inputs[s.Name] = s.Value
		if len(h.inputs) == len(h.names) && len(s.ctx.plates) == 0 {
			panic(stopped{})
		}
	}
}

// expand finds the mode, the determinants log det precision/2 − log det H/2 there, and the shift q from mode to mean,
// which are the weights b, as the gradient has use for it too. The weights c are those of −log det H/2. It is false
// where there is no mode.
func (l *laplace) expand(m *newton) (logDet float64, ok bool) {
	if !l.mode(m) {
		return 0, false
	}
	if logDet, ok = m.law.finish(m.bend, m.variances); !ok {
		return 0, false
	}
	half, last := l.block(m.x, 3), len(m.x)-1
	for i, v := range m.variances {
		half[i] = v / 2
	}
	m.x[last] = 0
	l.data.at(m.x, m.slopes)
	m.x[last] = 1
	m.law.adjoint(m.px[l.d:], l.block(m.x, 2), m.f, m.a, l.block(m.slopes, 1))
	return logDet, true
}

// logDensity is the approximate log p(y|φ), with its gradient.
func (l *laplace) logDensity(x, grad [][]float64) float64 {
	m := l.room(slices.Concat(x...))
	defer l.rooms.Put(m)
	logDet, ok := l.expand(m)
	if !ok {
		return math.Inf(-1)
	}
	l.data.at(m.x, m.slopes)
	l.prior.at(m.px, m.parameters)
	at := 0
	for i := range grad {
		for j := range grad[i] {
			grad[i][j] = m.slopes[at] + m.parameters[at]
			at++
		}
	}
	return m.value + logDet
}

// block is what x has for f (1), and for the weights b (2) and c (3).
func (l *laplace) block(x []float64, k int) []float64 {
	from := l.d + (k-1)*l.n
	return x[from : from+l.n]
}

// mostNewton bounds the steps to a mode.
const mostNewton = 200

// mode finds the mode of f by Newton's method, in which a factor serves as long as steps become ten times shorter;
// false where there is none. Where the likelihood is not concave its curvature is left out. It ends where the next step
// would be below 1e-10 of f, were it shorter than the last one as that was than the one before.
func (l *laplace) mode(m *newton) bool {
	l.prior.at(m.px, m.parameters)
	m.law.set(m.parameters[l.d:])
	m.law.from(m.f, m.a, l.start)
	l.look(m)
	length, factored := 0.0, false
	for range mostNewton {
		if math.IsNaN(m.value) || math.IsInf(m.value, 0) {
			return false
		}
		if !factored {
			for i, h := range m.bend {
				m.w[i] = max(-h, 0)
			}
			if !m.law.factor(m.w) {
				return false
			}
			factored = true
		}
		for i, a := range m.a {
			m.r[i] = m.gradient[i] - a
		}
		m.law.solve(m.df, m.da, m.r)
		longest, size, rise := 0.0, 1.0, 0.0
		for i, v := range m.df {
			longest, size = max(longest, math.Abs(v)), max(size, math.Abs(m.f[i]))
			rise += v * m.r[i]
		}
		if math.IsNaN(longest) {
			return false
		}
		t := l.climb(m, rise)
		if t == 1 && longest*min(1, longest/length) < 1e-10*size {
			return true
		}
		factored = t == 1 && longest <= length/10
		length = longest
	}
	return false
}

// climb goes along a step as far as the density rises: t of it.
func (l *laplace) climb(m *newton, rise float64) (t float64) {
	m.f, m.from, m.a, m.at = m.from, m.f, m.at, m.a
	before := m.value
	t = 1
	for range 40 {
		for i, v := range m.from {
			m.f[i], m.a[i] = v+t*m.df[i], m.at[i]+t*m.da[i]
		}
		l.look(m)
		if m.value >= before+1e-4*t*rise-1e-9*(1+math.Abs(before)) {
			break
		}
		t /= 2
	}
	return t
}

// look evaluates the density and the likelihood's derivatives at f.
func (l *laplace) look(m *newton) {
	copy(m.x[l.d:], m.f)
	l.near.at(m.x, m.slopes)
	m.value = m.slopes[len(m.x)-1]
	mean := m.law.mean()
	for i, v := range m.f {
		m.value -= m.a[i] * (v - mean[i]) / 2
	}
}

// draw draws f given φ.
func (l *laplace) draw(phi []float64, source *rand.Rand) ([]float64, error) {
	m := l.room(phi)
	defer l.rooms.Put(m)
	if _, ok := l.expand(m); !ok {
		return nil, fmt.Errorf("there is no mode of %q at a draw: %w", l.site, infer.ErrNonFinite)
	}
	f := m.law.draw(source.NormFloat64)
	floats.Add(f, m.f)
	floats.Add(f, l.block(m.x, 2))
	return f, nil
}

// draws are draws of the model from those of φ on unconstrained space: f is drawn for each, by a stream of its own.
func (l *laplace) draws(p *Program, in *draws.Draws, batch infer.Batch) (*draws.Draws, error) {
	var sites []draws.Site
	for _, s := range l.full.layout.Sites {
		sites = append(sites, draws.Site{Name: s.Name, Shape: s.Shape, Offset: s.Offset, Size: s.Size})
	}
	out, err := draws.New(sites, in.Stats(), in.Chains())
	if err != nil {
		return nil, err
	}
	stats := make([]float64, len(in.Stats()))
	for chain := range in.Chains() {
		columns := make([][]float64, len(stats))
		for i, name := range in.Stats() {
			if columns[i], err = in.Stat(name, chain); err != nil {
				return nil, err
			}
		}
		for from := 0; from < in.Len(chain); from += constrainRows {
			to := min(from+constrainRows, in.Len(chain))
			rows, err := l.rows(p, in, batch, chain, from, to)
			if err != nil {
				return nil, err
			}
			for i, row := range rows {
				for j := range stats {
					stats[j] = columns[j][from+i]
				}
				if err := out.AppendChain(chain, row, stats); err != nil {
					return nil, err
				}
			}
		}
	}
	out.SetSpace(draws.Unconstrained)
	return l.full.Draws(out, l.full.batch)
}

// rows are points of the full model: φ as it was drawn, and f.
func (l *laplace) rows(p *Program, in *draws.Draws, batch infer.Batch, chain, from, to int) ([][]float64, error) {
	rows := make([][]float64, to-from)
	err := torch.Do(func(*torch.Scope) error {
		var flat []float64
		for i := from; i < to; i++ {
			flat = append(flat, in.Row(chain, i)[:in.Dim()]...)
		}
		t, err := torch.FromSlice(flat, to-from, in.Dim())
		if err != nil {
			return err
		}
		values, err := p.Constrain(infer.Params{Layout: p.layout, Flat: t}, batch)
		if err != nil {
			return err
		}
		parts := make([][]float64, len(l.names))
		for i, name := range l.names {
			if parts[i], err = torch.ToSlice[float64](values[name]); err != nil {
				return err
			}
		}
		fields := make([]float64, (to-from)*l.n)
		if err := parallel.Each(to-from, func(k int) error {
			var phi []float64
			for i, part := range parts {
				n := int(count(l.shape[i]))
				phi = append(phi, part[k*n:(k+1)*n]...)
			}
			f, err := l.draw(phi, rand.New(rand.NewPCG(uint64(chain), uint64(from+k))))
			copy(fields[k*l.n:], f)
			return err
		}); err != nil {
			return err
		}
		latent := l.full.latents[l.site]
		f := torch.New(fields, append([]int{to - from}, latent.shape...)...)
		free, err := torch.ToSlice[float64](latent.bijector.Inverse(f))
		if err != nil {
			return err
		}
		for k := range rows {
			rows[k] = make([]float64, l.full.layout.Dim())
			for _, s := range l.full.layout.Sites {
				if s.Name == l.site {
					copy(rows[k][s.Offset:s.Offset+s.Size], free[k*s.Size:(k+1)*s.Size])
					continue
				}
				for _, own := range p.layout.Sites {
					if own.Name == s.Name {
						copy(rows[k][s.Offset:s.Offset+s.Size], in.Row(chain, from+k)[own.Offset:own.Offset+own.Size])
					}
				}
			}
		}
		return nil
	})
	return rows, err
}
