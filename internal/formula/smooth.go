package formula

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/internal/sample"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// cubic is a penalised cubic regression spline (Wood 2017, section 5.3.1): a natural cubic spline with values β at
// knots t_1 < ... < t_k. Between t_j and t_{j+1}, with h_j their distance, it is
//
//	f(u) = a₋ β_j + a₊ β_{j+1} + c₋ δ_j + c₊ δ_{j+1},
//	a₋ = (t_{j+1} - u)/h_j,  c₋ = ((t_{j+1} - u)³/h_j - h_j (t_{j+1} - u))/6,  and a₊, c₊ with u - t_j,
//
// where δ = F β are its second derivatives at the knots, 0 at the ends: beyond them it is linear. The penalty is
// ∫ f”² = βᵀ S β, S = Dᵀ B⁻¹ D, of the tridiagonal B and D of that section, and F = B⁻¹ D inside.
//
// A constraint Σ f(u_i) = 0 over the training data is absorbed (section 5.4.1), and the rest is turned so that the
// penalty is a sum of squares (section 5.8; smooth2random of mgcv): the spline is a linear function and Z b, with b iid
// normal. S is divided by the number that mgcv divides it by, so that the sd of b has no unit of u.
type cubic struct {
	mean, sd float64   // of the training data: u = (x - mean)/sd
	knots    []float64 // of u
	value    *mat.Dense
	second   *mat.Dense // derivatives at the knots; a row of k-2 coefficients for each knot, as of value
}

// newCubic learns a spline of k knots at quantiles of the different values of x. A centred one has the constraint.
func newCubic(x []float64, k int, centred bool) cubic {
	c := cubic{}
	c.mean, c.sd = sample.Moments(x)
	u := each(x, c.standard)
	c.knots = quantiles(slices.Compact(slices.Sorted(slices.Values(u))), k)
	curvature, penalty := c.penalty()
	free := mat.NewDense(k, k, nil)
	for i := range k {
		free.Set(i, i, 1)
	}
	c.value, c.second = free, curvature
	sums, largest := c.sums(u)
	scale := mat.Norm(penalty, 1) / (largest * largest)
	if centred {
		free = complement(sums)
	}
	_, n := free.Dims()
	var inner, turned, second mat.Dense
	inner.Product(free.T(), penalty, free)
	sym := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			sym.SetSym(i, j, (inner.At(i, j)+inner.At(j, i))/2/scale)
		}
	}
	turned.Mul(free, roots(sym, k-2))
	second.Mul(curvature, &turned)
	c.value, c.second = &turned, &second
	return c
}

// roots are the eigenvectors of the m largest eigenvalues, divided by the roots of these. The largest element of each
// is positive.
func roots(s *mat.SymDense, m int) *mat.Dense {
	var eigen mat.EigenSym
	eigen.Factorize(s, true)
	values := eigen.Values(nil)
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	n := len(values)
	out := mat.NewDense(n, m, nil)
	for j := range m {
		from := n - 1 - j
		v := mat.Col(nil, from, &vectors)
		largest := 0
		for i := range v {
			if math.Abs(v[i]) > math.Abs(v[largest])*(1+1e-8) {
				largest = i
			}
		}
		by := math.Copysign(math.Sqrt(values[from]), v[largest])
		for i := range v {
			out.Set(i, j, v[i]/by)
		}
	}
	return out
}

// penalty has F, of a row for each knot, and S.
func (c cubic) penalty() (f, s *mat.Dense) {
	k := len(c.knots)
	d := mat.NewDense(k-2, k, nil)
	var diagonal, beside []float64 // of B
	for i := range k - 2 {
		h, next := c.knots[i+1]-c.knots[i], c.knots[i+2]-c.knots[i+1]
		d.Set(i, i, 1/h)
		d.Set(i, i+1, -1/h-1/next)
		d.Set(i, i+2, 1/next)
		diagonal, beside = append(diagonal, (h+next)/3), append(beside, next/6)
	}
	beside = beside[:k-3]
	inside := mat.NewDense(k-2, k, nil)
	if err := mat.NewTridiag(k-2, beside, diagonal, beside).SolveTo(inside, false, d); err != nil {
		panic(err) // B is diagonally dominant
	}
	f, s = mat.NewDense(k, k, nil), &mat.Dense{}
	f.Slice(1, k-1, 0, k).(*mat.Dense).Copy(inside)
	s.Mul(d.T(), inside)
	return f, s
}

// complement is an orthonormal basis of the vectors whose product with c is 0, by a Householder reflection.
func complement(c []float64) *mat.Dense {
	k := len(c)
	v := slices.Clone(c)
	v[0] += math.Copysign(floats.Norm(c, 2), c[0])
	square := floats.Dot(v, v)
	out := mat.NewDense(k, k-1, nil)
	for i := range k {
		for j := 1; j < k; j++ {
			out.Set(i, j-1, float64(number01(i == j))-2*v[i]*v[j]/square)
		}
	}
	return out
}

// standard is a number of the table as the spline has it.
func (c cubic) standard(x float64) float64 { return (x - c.mean) / c.sd }

// sums are those of the columns over the rows, and the largest sum of absolute values of a row.
func (c cubic) sums(u []float64) (sums []float64, largest float64) {
	sums = make([]float64, len(c.knots))
	row := make([]float64, len(sums))
	for _, v := range u {
		c.evaluate(v, row)
		floats.Add(sums, row)
		largest = math.Max(largest, floats.Norm(row, 1))
	}
	return sums, largest
}

// evaluate sets the columns at u, beyond the knots by the tangent.
func (c cubic) evaluate(u float64, to []float64) {
	last := len(c.knots) - 1
	place, _ := slices.BinarySearch(c.knots, u)
	j := min(max(place-1, 0), last-1)
	h := c.knots[j+1] - c.knots[j]
	before, after := c.knots[j+1]-u, u-c.knots[j]
	a0, a1 := before/h, after/h
	c0, c1 := (before*before*before/h-h*before)/6, (after*after*after/h-h*after)/6
	if u < c.knots[0] { // the derivatives of c₋ and c₊ at the first knot
		c0, c1 = -h/3*after, -h/6*after
	} else if u > c.knots[last] { // and at the last one
		beyond := u - c.knots[last]
		c0, c1 = h/6*beyond, h/3*beyond
	}
	v0, v1, d0, d1 := c.value.RawRowView(j), c.value.RawRowView(j+1), c.second.RawRowView(j), c.second.RawRowView(j+1)
	for i := range to {
		to[i] = a0*v0[i] + a1*v1[i] + c0*d0[i] + c1*d1[i]
	}
}

// newSmooths are those of a term: one for each level of a factor By.
func (s *source) newSmooths(of Smooth) ([]smooth, error) {
	levels, factor, err := []string(nil), false, error(nil)
	if !of.By.None() {
		if factor, err = s.isFactor(of.By); err == nil && factor {
			levels, err = s.learnFactor(of.By)
		} else if err == nil {
			_, err = s.numeric(of.By)
		}
	}
	if err != nil {
		return nil, err
	}
	if of.Kind == "t2" {
		return s.newTensor(of)
	}
	x, err := s.number(of.X)
	if err != nil {
		return nil, err
	}
	k := of.k()
	if n := distinctCount(x, k); of.Kind == "gp" {
		if n < 2 {
			return nil, s.f.wrong(of.at, fmt.Sprintf("%s has one value in all rows: gp() needs different ones", of.X))
		}
	} else if n < k && of.Kind != "gp" {
		return nil, s.f.wrong(of.at, few(Smooth{Kind: of.Kind, X: of.X, K: k}, of.X, n))
	}
	centred := of.By.None() || factor
	base := smooth{of: of, level: -1, name: of.String()}
	if of.Kind == "s" {
		base.cubic = newCubic(x, k, centred)
	}
	if !factor && of.Kind == "gp" {
		return []smooth{base}, nil
	}
	if !factor {
		if !centred {
			base.linear = []string{base.name + "[constant]"}
		}
		base.linear = append(base.linear, base.name+"[linear]")
		return []smooth{base}, nil
	}
	var out []smooth
	for i, l := range levels {
		of := base
		if of.level, of.name = i, base.name+"["+l+"]"; of.of.Kind == "s" {
			of.linear = []string{of.name + "[linear]"}
		}
		out = append(out, of)
	}
	return out, nil
}

// few says that a number has fewer values than its smooth has knots.
func few(s Smooth, x Expr, n int) string {
	out := fmt.Sprintf("%s has %s, and the basis of %s() has dimension %d", x, differing(n), s.Kind, s.K)
	if n < 3 {
		return out + ": a factor or a line is enough for so few"
	}
	s.K = n
	return out + ": write " + s.String()
}

// rowsOf are those of the level that a smooth is of, or numbers that multiply it; nil is all rows, or 1.
func (s *source) rowsOf(m smooth) (in []bool, by []float64, err error) {
	if m.level < 0 {
		if !m.of.By.None() {
			by, err = s.numeric(m.of.By)
		}
		return nil, by, err
	}
	codes, err := s.levels(m.of.By)
	for _, c := range codes {
		in = append(in, int(c) == m.level)
	}
	return in, nil, err
}

// smooth has the penalised columns, and writes the others into the common ones. Those of one level are 0 in rows of
// other levels.
func (s *source) smooth(m smooth, x []float64, p, at int) ([]float64, error) {
	v, err := s.number(m.of.X)
	if err != nil {
		return nil, err
	}
	in, by, err := s.rowsOf(m)
	if err != nil {
		return nil, err
	}
	n, width := s.t.Len(), m.of.k()-2
	z := make([]float64, n*width)
	for i := range n {
		if in != nil && !in[i] {
			continue
		}
		row, u, w := z[i*width:(i+1)*width], m.cubic.standard(v[i]), 1.0
		if by != nil {
			w = by[i]
			x[i*p+at] = w
		}
		m.cubic.evaluate(u, row)
		if floats.Scale(w, row); !sample.Finite(floats.Sum(row)) {
			return nil, cell(i, m.of.X, number(v[i]), "the smooth is not finite there: it is too far from the training data")
		}
		x[i*p+at+len(m.linear)-1] = w * u
	}
	return z, nil
}

// process has the number of gp() and what multiplies its function: 1, or 0 in rows of another level than its own, or
// the number By.
func (s *source) process(m smooth) ([]float64, error) {
	v, err := s.number(m.of.X)
	if err != nil || m.width() == 1 {
		return v, err
	}
	in, by, err := s.rowsOf(m)
	out := make([]float64, 0, 2*len(v))
	for i := range v {
		w := 1.0
		if by != nil {
			w = by[i]
		} else if in != nil {
			w = float64(number01(in[i]))
		}
		out = append(out, v[i], w)
	}
	return out, err
}

// width is how many columns of Rows.Smooths it has.
func (m smooth) width() int {
	switch {
	case m.of.Kind == "s":
		return m.of.k() - 2
	case m.of.Kind == "t2":
		return len(m.means)
	case m.of.Kind == "gp":
		return 1 + number01(!m.of.By.None())
	}
	return len(m.factors) + number01(len(m.rest.parts) > 0)
}

// function is what Rows.Smooths has. Columns of s and t2 without penalty go into the common ones.
func (s *source) function(m smooth, x []float64, p, at int) ([]float64, error) {
	switch m.of.Kind {
	case "s":
		return s.smooth(m, x, p, at)
	case "t2":
		return s.tensor(m, x, p, at)
	case "gp":
		return s.process(m)
	}
	return s.special(m)
}
