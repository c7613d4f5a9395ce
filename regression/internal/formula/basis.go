package formula

import (
	"fmt"
	"math"
	"slices"
)

// basis has the columns of a number in a term: one of most, several of poly() and bs().
func (s *source) basis(e Expr) ([][]float64, error) {
	key := e.String()
	if out := s.numbers[key]; out != nil {
		return out, nil
	}
	var out [][]float64
	var err error
	switch {
	case e.Kind == Call && e.Name == "poly":
		out, err = s.poly(e)
	case e.Kind == Call && e.Name == "bs":
		out, err = s.bspline(e)
	default:
		var v vector
		if v, err = s.number(e); err == nil {
			out = [][]float64{v.full(s.t.Len())}
		}
	}
	if err == nil {
		s.numbers[key] = out
	}
	return out, err
}

// width is the number of columns of a number in a term, and numbered says whether they have numbers in their names.
func (x *expansion) width(e Expr) (n int, numbered bool) {
	switch {
	case e.Kind == Call && e.Name == "poly":
		n, _, _ = x.polynomial(e)
		return n, true
	case e.Kind == Call && e.Name == "bs":
		b, _ := x.spline(e)
		return b.width(), true
	}
	return 1, false
}

// poly has the polynomials of degree 1 to k that are orthonormal over the training data. With the recurrence
//
//	p_0 = 1,  p_1 = x - a_0,  p_{j+1} = (x - a_j) p_j - (n_j/n_{j-1}) p_{j-1},  n_j = Σ p_j²,  a_j = Σ x p_j²/n_j,
//
// column j is p_j/√n_j (Kennedy and Gentle 1980, Statistical Computing, p. 343-344; poly of R). Raw ones are powers.
func (s *source) poly(e Expr) ([][]float64, error) {
	x := &expansion{text: s.f.text}
	degree, raw, bad := x.polynomial(e)
	args, _ := x.arguments(e, "x", "degree", "raw")
	if bad != nil {
		return nil, bad
	}
	v, err := s.number(args["x"])
	if err != nil {
		return nil, err
	}
	values, key := v.full(s.t.Len()), e.String()
	if raw {
		return s.powers(e, values, degree)
	}
	if s.learning && s.m.Numbers[key] == nil {
		if d := distinctCount(values, degree+1); d <= degree {
			return nil, s.wrong(e, "%s has %s: poly() of degree %d needs at least %d", args["x"], differing(d), degree,
				degree+1)
		}
		s.m.Numbers[key] = learnPoly(values, degree)
	}
	out := applyPoly(values, s.m.Numbers[key], degree)
	return out, s.finiteBasis(e, values, out)
}

func (s *source) powers(e Expr, values []float64, degree int) ([][]float64, error) {
	out := make([][]float64, degree)
	for j := range out {
		out[j] = make([]float64, len(values))
		for i, v := range values {
			out[j][i] = math.Pow(v, float64(j+1))
		}
	}
	return out, s.finiteBasis(e, values, out)
}

// finiteBasis is an error where a basis overflows.
func (s *source) finiteBasis(e Expr, x []float64, columns [][]float64) error {
	for _, c := range columns {
		for i, v := range c {
			if !finite(v) {
				return cell(i, e, number(x[i]), fmt.Sprintf("its basis is %v there: expected a finite number", v))
			}
		}
	}
	return nil
}

// distinctCount counts different values, up to a limit.
func distinctCount(x []float64, limit int) int {
	seen := map[float64]bool{}
	for _, v := range x {
		if seen[v] = true; len(seen) >= limit {
			break
		}
	}
	return len(seen)
}

// differing writes a number of different values.
func differing(n int) string {
	if n == 1 {
		return "one value in all rows"
	}
	return fmt.Sprintf("%d different values", n)
}

// learnPoly has the mean, then a_j of x less the mean, then √n_j, for j from 0.
func learnPoly(x []float64, degree int) []float64 {
	mean, _ := moments(x)
	out := []float64{mean}
	last, now := make([]float64, len(x)), make([]float64, len(x))
	for i := range now {
		now[i] = 1
	}
	var norms []float64
	before := 1.0
	for j := range degree + 1 {
		var n, a float64
		for i, p := range now {
			n += p * p
			a += (x[i] - mean) * p * p
		}
		norms = append(norms, math.Sqrt(n))
		if j == degree {
			break
		}
		a /= n
		out = append(out, a)
		for i := range now {
			now[i], last[i] = (x[i]-mean-a)*now[i]-n/before*last[i]*float64(min(j, 1)), now[i]
		}
		before = n
	}
	return append(out, norms...)
}

func applyPoly(x, learned []float64, degree int) [][]float64 {
	mean, a, norms := learned[0], learned[1:degree+1], learned[degree+1:]
	out := make([][]float64, degree)
	for j := range out {
		out[j] = make([]float64, len(x))
	}
	for i, v := range x {
		last, now := 0.0, 1.0
		for j := range degree {
			next := (v - mean - a[j]) * now
			if j > 0 {
				ratio := norms[j] / norms[j-1]
				next -= ratio * ratio * last
			}
			last, now = now, next
			out[j][i] = now / norms[j+1]
		}
	}
	return out
}

// quantiles are those of sorted numbers at k equally spaced probabilities from 0 to 1 (type 7 of Hyndman and Fan 1996).
func quantiles(sorted []float64, k int) []float64 {
	out := make([]float64, k)
	for j := range out {
		place := float64(j) / float64(k-1) * float64(len(sorted)-1)
		low := min(int(place), len(sorted)-1)
		high := min(low+1, len(sorted)-1)
		out[j] = sorted[low] + (place-float64(low))*(sorted[high]-sorted[low])
	}
	return out
}

// ordered is a sorted copy.
func ordered(x []float64) []float64 {
	out := slices.Clone(x)
	slices.Sort(out)
	return out
}
