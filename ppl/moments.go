package ppl

import (
	"math"

	"github.com/kelvin-ppl/kelvin/diag/loo"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/sample"
	"github.com/kelvin-ppl/kelvin/torch"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// matcher moves draws to the posterior without one observation.
type matcher struct {
	program *Program
	o       observations
	x       *mat.Dense // the draws on unconstrained space, a row for each
	logp    []float64  // their log posterior
	reff    []float64  // relative efficiencies of the observations
}

func (p *Program) matcher(posterior *draws.Draws, o observations) (*matcher, error) {
	free, err := p.UnconstrainDraws(posterior, p.batch)
	if err != nil {
		return nil, err
	}
	if free.MinLen() != free.MaxLen() {
		if free, err = free.Slice(0, free.MinLen()); err != nil {
			return nil, err
		}
	}
	m := &matcher{program: p, o: o, x: mat.NewDense(free.Total(), free.Dim(), nil)}
	for s, row := range free.Rows() {
		m.x.SetRow(s, row)
	}
	if m.reff, err = loo.RelativeEfficiency(o.rows, o.chains); err != nil {
		return nil, err
	}
	m.logp, err = m.posterior(m.x)
	return m, err
}

// posterior is the log posterior of points.
func (m *matcher) posterior(x *mat.Dense) (out []float64, err error) {
	p := m.program
	n, d := x.Dims()
	for from := 0; from < n; from += constrainRows {
		to := min(from+constrainRows, n)
		err := torch.Do(func(*torch.Scope) error {
			flat, err := torch.FromSlice(x.RawMatrix().Data[from*d:to*d], to-from, d)
			if err != nil {
				return err
			}
			values, err := torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
				v, _ := p.density()(infer.Params{Layout: p.layout, Flat: in[0]}, p.batch)
				return []torch.Tensor{v}, nil
			}, []torch.Tensor{flat}, nil)
			if err != nil {
				return err
			}
			v, err := torch.ToSlice[float64](values[0])
			out = append(out, v...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// likelihood is the log density of an observation at points.
func (m *matcher) likelihood(x *mat.Dense, i int) ([]float64, error) {
	p := m.program
	var sites []draws.Site
	for _, s := range p.layout.Sites {
		sites = append(sites, draws.Site{Name: s.Name, Shape: s.Shape, Offset: s.Offset, Size: s.Size})
	}
	free, err := draws.New(sites, nil, 1)
	if err != nil {
		return nil, err
	}
	n, _ := x.Dims()
	for s := range n {
		if err := free.AppendChain(0, x.RawRowView(s), nil); err != nil {
			return nil, err
		}
	}
	free.SetSpace(draws.Unconstrained)
	named, err := p.Draws(free, p.batch)
	if err != nil {
		return nil, err
	}
	o, err := p.LogLikelihood(named)
	if err != nil {
		return nil, err
	}
	if len(m.o.names) > 0 {
		if o, err = o.Select(m.o.names...); err != nil {
			return nil, err
		}
	}
	out := make([]float64, n)
	for s, row := range o.Rows() {
		out[s] = row[m.o.column[i]]
	}
	return out, nil
}

// affine is x ↦ M x + b.
type affine struct {
	m *mat.Dense
	b []float64
}

func (a affine) of(x *mat.Dense) *mat.Dense {
	var out mat.Dense
	out.Mul(x, a.m.T())
	n, _ := out.Dims()
	for s := range n {
		row := out.RawRowView(s)
		for k, v := range a.b {
			row[k] += v
		}
	}
	return &out
}

// inverse is the way back, with log |det M|; false where there is none.
func (a affine) inverse() (back affine, logDet float64, ok bool) {
	var lu mat.LU
	lu.Factorize(a.m)
	logDet, sign := lu.LogDet()
	back.m = new(mat.Dense)
	if sign == 0 || back.m.Inverse(a.m) != nil {
		return back, 0, false
	}
	b := mat.NewVecDense(len(a.b), nil)
	b.MulVec(back.m, mat.NewVecDense(len(a.b), a.b))
	b.ScaleVec(-1, b)
	back.b = b.RawVector().Data
	return back, logDet, true
}

// moves are the affine maps that give points the mean, the variances too, and the covariance too, of their weighted
// ones.
func moves(x *mat.Dense, logWeights []float64) (out []affine) {
	n, d := x.Dims()
	w := make([]float64, n)
	for s, v := range logWeights {
		w[s] = math.Exp(v) * float64(n)
	}
	mean, to, ratio := make([]float64, d), make([]float64, d), make([]float64, d)
	column := make([]float64, n)
	for k := range d {
		mat.Col(column, k, x)
		var v, u float64
		mean[k], v = stat.MeanVariance(column, nil)
		to[k] = stat.Mean(column, w)
		for s, c := range column {
			u += w[s] * (c - to[k]) * (c - to[k]) / float64(n)
		}
		ratio[k] = math.Sqrt(u / v)
	}
	about := func(m *mat.Dense) affine { // with mean ↦ to
		b := mat.NewVecDense(d, nil)
		b.MulVec(m, mat.NewVecDense(d, mean))
		b.SubVec(mat.NewVecDense(d, to), b)
		return affine{m, b.RawVector().Data}
	}
	ones, scaled := mat.NewDense(d, d, nil), mat.NewDense(d, d, nil)
	for k := range d {
		ones.Set(k, k, 1)
		scaled.Set(k, k, ratio[k])
	}
	out = append(out, about(ones), about(scaled))
	if n < 10*d {
		return out
	}
	var from, into mat.SymDense
	stat.CovarianceMatrix(&from, x, nil)
	stat.CovarianceMatrix(&into, x, w)
	var a, b mat.Cholesky
	if a.Factorize(&from) && b.Factorize(&into) {
		var l, r mat.TriDense
		a.LTo(&l)
		b.LTo(&r)
		var m mat.Dense
		if m.Inverse(&l) == nil {
			m.Mul(&r, &m)
			out = append(out, about(&m))
		}
	}
	return out
}

// mostMoves bounds the moves for an observation.
const mostMoves = 30

// match moves the draws while k falls.
func (m *matcher) match(i int, point loo.Point, limit float64) (loo.Point, error) {
	n, d := m.x.Dims()
	reff := m.reff[i]
	total := affine{mat.NewDense(d, d, nil), make([]float64, d)}
	for k := range d {
		total.m.Set(k, k, 1)
	}
	x := m.x
	ratios := make([]float64, n)
	for s, row := range m.o.rows {
		ratios[s] = -row[i]
	}
	w, err := loo.PSIS(ratios, reff)
	if err != nil {
		return point, err
	}
	moved := false
	for step := 0; step < mostMoves && w.K > limit; step++ {
		better := false
		for _, move := range moves(x, w.LogWeights) {
			next := affine{new(mat.Dense), move.of(mat.NewDense(1, d, total.b)).RawRowView(0)}
			next.m.Mul(move.m, total.m)
			at := next.of(m.x)
			logp, ll, err := m.at(at, i)
			if err != nil {
				return point, err
			}
			for s := range ratios {
				ratios[s] = orNone(logp[s] - ll[s] - m.logp[s])
			}
			v, err := loo.PSIS(ratios, reff)
			if err != nil || !(v.K < w.K) {
				continue
			}
			w, x, total, better, moved = v, at, next, true, true
			break
		}
		if !better {
			break
		}
	}
	if !moved {
		return point, nil
	}
	return m.split(i, point, total, x, w.K)
}

// split estimates by half of the draws moved to x and half as they were, whose law is a mixture of the posterior and
// its image (Paananen et al. 2021, section 3). k is that of x alone.
func (m *matcher) split(i int, point loo.Point, total affine, x *mat.Dense, k float64) (loo.Point, error) {
	back, logDet, ok := total.inverse()
	if !ok {
		return point, nil
	}
	n, d := x.Dims()
	ratios, reff := make([]float64, n), m.reff[i]
	half := mat.NewDense(n, d, nil)
	for s := range n {
		if s%2 == 0 {
			half.SetRow(s, x.RawRowView(s))
		} else {
			half.SetRow(s, m.x.RawRowView(s))
		}
	}
	logp, ll, err := m.at(half, i)
	if err != nil {
		return point, err
	}
	before, err := m.posterior(back.of(half))
	if err != nil {
		return point, err
	}
	for s := range ratios {
		mixed := sample.LogSumExp([]float64{logp[s], before[s] - logDet})
		ratios[s] = orNone(logp[s] - ll[s] - mixed)
	}
	v, err := loo.PSIS(ratios, reff)
	if err != nil {
		return point, nil
	}
	both := make([]float64, n)
	for s := range both {
		both[s] = v.LogWeights[s] + ll[s]
	}
	elpd, variance := sample.LogSumExp(both), 0.0
	for s := range both {
		e := math.Exp(v.LogWeights[s]) * (math.Exp(ll[s]-elpd) - 1)
		variance += e * e
	}
	return loo.Point{ELPD: elpd, K: max(v.K, k), ESS: v.ESS, MCSE: math.Sqrt(math.Log1p(variance) / reff)}, nil
}

// at are the log posterior and the log density of an observation at points.
func (m *matcher) at(x *mat.Dense, i int) (logp, ll []float64, err error) {
	if logp, err = m.posterior(x); err == nil {
		ll, err = m.likelihood(x, i)
	}
	return logp, ll, err
}

// orNone is a log ratio, or that of a weight of 0 where it is not a number.
func orNone(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 1) {
		return math.Inf(-1)
	}
	return v
}
