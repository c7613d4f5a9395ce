package formula

import (
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// The parts of a smooth of two numbers t2(x, z) with a penalty of their own: curved in both, and curved in one with a
// constant and a line in the other (Wood, Scheipl and Faraway 2013, Straightforward intermediate rank tensor product
// smoothing in mixed models; t2 of mgcv). With Z_x the penalised columns of a cubic regression spline in x, whose
// coefficients are iid normal, and u_x the number itself, standardised,
//
//	part 0:  Z_x ⊗ Z_z
//	part 1:  Z_x ⊗ (1, u_z)
//	part 2:  (1, u_x) ⊗ Z_z
//
// and u_x, u_z and u_x u_z have no penalty. Columns are less their means over the training data, which are the
// intercept's.
var tensorParts = []string{"both", "first", "second"}

// newTensor learns the three parts of t2().
func (s *source) newTensor(of Smooth) ([]smooth, error) {
	k := of.k()
	base := smooth{of: of, level: -1}
	for i, e := range []Expr{of.X, of.Z} {
		v, err := s.number(e)
		if err != nil {
			return nil, err
		}
		if n := distinctCount(v, k); n < k {
			return nil, s.f.wrong(of.at, few(Smooth{Kind: of.Kind, X: of.X, Z: of.Z, K: k}, e, n))
		}
		if c := newCubic(v, k, false); i == 0 {
			base.cubic = c
		} else {
			base.cross = c
		}
	}
	var out []smooth
	for part, name := range tensorParts {
		m := base
		m.part, m.name = part, of.String()+"["+name+"]"
		if part == 0 {
			m.linear = []string{of.String() + "[" + of.X.String() + "]", of.String() + "[" + of.Z.String() + "]",
				of.String() + "[" + of.X.String() + ":" + of.Z.String() + "]"}
		}
		sums, err := s.columnsOf(m)
		if err != nil {
			return nil, err
		}
		m.means = make([]float64, m.tensorWidth())
		for i, v := range sums {
			m.means[i%len(m.means)] += v / float64(s.t.Len())
		}
		out = append(out, m)
	}
	return out, nil
}

// tensorWidth is how many columns a part of t2 has.
func (m smooth) tensorWidth() int {
	if n := m.of.k() - 2; m.part == 0 {
		return n * n
	}
	return 2 * (m.of.k() - 2)
}

// columnsOf are the columns of a part of t2, less the means that it knows, row by row.
func (s *source) columnsOf(m smooth) ([]float64, error) {
	x, err := s.number(m.of.X)
	if err != nil {
		return nil, err
	}
	z, err := s.number(m.of.Z)
	if err != nil {
		return nil, err
	}
	width, n := m.tensorWidth(), m.of.k()-2
	out := make([]float64, 0, len(x)*width)
	left, right := make([]float64, n), make([]float64, n)
	for i := range x {
		u, v := m.cubic.standard(x[i]), m.cross.standard(z[i])
		a, b := []float64{1, u}, []float64{1, v}
		if m.part != 2 {
			m.cubic.evaluate(u, left)
			a = left
		}
		if m.part != 1 {
			m.cross.evaluate(v, right)
			b = right
		}
		for _, p := range a {
			for _, q := range b {
				j := len(out) % width
				if out = append(out, p*q); m.means != nil {
					out[len(out)-1] -= m.means[j]
				}
				if !sample.Finite(p * q) {
					return nil, cell(i, m.of.X, number(x[i]), "the smooth is not finite there: it is too far from the training "+
						"data")
				}
			}
		}
	}
	return out, nil
}

// tensor has the columns of a part, and the first part writes those without penalty into the common ones.
func (s *source) tensor(m smooth, x []float64, p, at int) ([]float64, error) {
	out, err := s.columnsOf(m)
	if err != nil || m.linear == nil {
		return out, err
	}
	first, err := s.number(m.of.X)
	if err != nil {
		return nil, err
	}
	second, err := s.number(m.of.Z)
	for i := range second {
		u, v := m.cubic.standard(first[i]), m.cross.standard(second[i])
		x[i*p+at], x[i*p+at+1], x[i*p+at+2] = u, v, u*v
	}
	return out, err
}
