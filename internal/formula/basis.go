package formula

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// basis has the columns of a number in a term: one of most, several of poly() and bs().
func (s *source) basis(e Expr) (out [][]float64, err error) {
	key := e.String()
	if out := s.bases[key]; out != nil {
		return out, nil
	}
	switch {
	case e.several() && e.Name == "poly":
		out, err = s.poly(e)
	case e.several():
		out, err = s.bspline(e)
	default:
		x, e := s.number(e)
		out, err = [][]float64{x}, e
	}
	if err == nil {
		s.bases[key] = out
	}
	return out, err
}

// several says whether a number in a term has several columns, with numbers in their names.
func (e Expr) several() bool { return e.Kind == Call && (e.Name == "poly" || e.Name == "bs") }

// polynomial is poly(x, degree, raw).
type polynomial struct {
	x      Expr
	degree int
	raw    bool
}

func (x *expansion) polynomial(e Expr) (p polynomial, err *Error) {
	a := x.arguments(e, "x", "degree", "raw")
	p.degree = a.whole("degree", 1, 1, 50, "the degree of poly()")
	p.raw, p.x = a.flag("raw"), a.number("x")
	return p, a.err
}

// poly has the polynomials of degree 1 to k that are orthonormal over the training data. Raw ones are powers.
func (s *source) poly(e Expr) (out [][]float64, err error) {
	p, _ := s.reader().polynomial(e)
	x, err := s.number(p.x)
	if err != nil {
		return nil, err
	}
	key := e.String()
	switch {
	case p.raw:
		for j := range p.degree {
			out = append(out, each(x, func(v float64) float64 { return math.Pow(v, float64(j+1)) }))
		}
	case s.learning && s.m.numbers[key] == nil:
		if d := distinctCount(x, p.degree+1); d <= p.degree {
			return nil, s.wrong(e, "%s has %s: poly() of degree %d needs at least %d", p.x, differing(d), p.degree,
				p.degree+1)
		}
		fallthrough
	default:
		out, s.m.numbers[key] = orthonormal(x, p.degree, s.m.numbers[key])
	}
	return out, s.finiteBasis(e, x, out)
}

// orthonormal has the polynomials by the recurrence
//
//	p_0 = 1,  p_1 = x - a_0,  p_{j+1} = (x - a_j) p_j - (n_j/n_{j-1}) p_{j-1},  n_j = Σ p_j²,  a_j = Σ x p_j²/n_j
//
// in x less its mean: column j is p_j/√n_j (Kennedy and Gentle 1980, Statistical Computing, p. 343-344; poly of R).
// Learned are the mean and then n_j and a_j for each j; nil learns them of x.
func orthonormal(x []float64, degree int, learned []float64) (out [][]float64, _ []float64) {
	learning := learned == nil
	if learning {
		mean, _ := sample.Moments(x)
		learned = []float64{mean}
	}
	before, last, now := 1.0, make([]float64, len(x)), slices.Repeat([]float64{1}, len(x))
	x = each(x, func(v float64) float64 { return v - learned[0] })
	for j := range degree + 1 {
		if learning {
			n, a := 0.0, 0.0
			for i, p := range now {
				n, a = n+p*p, a+x[i]*p*p
			}
			learned = append(learned, n, a/n)
		}
		n, a := learned[1+2*j], learned[2+2*j]
		if j > 0 {
			out = append(out, each(now, func(p float64) float64 { return p / math.Sqrt(n) }))
		}
		for i := range now {
			now[i], last[i] = (x[i]-a)*now[i]-n/before*last[i], now[i]
		}
		before = n
	}
	return out, learned
}

// each applies a function to numbers.
func each(x []float64, f func(float64) float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = f(v)
	}
	return out
}

// finiteBasis is an error where a basis overflows.
func (s *source) finiteBasis(e Expr, x []float64, columns [][]float64) error {
	for _, c := range columns {
		if i := slices.IndexFunc(c, func(v float64) bool { return !sample.Finite(v) }); i >= 0 {
			return cell(i, e, number(x[i]), fmt.Sprintf("its basis is %v there: expected a finite number", c[i]))
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

// quantiles are those of sorted numbers at k equally spaced probabilities from 0 to 1.
func quantiles(sorted []float64, k int) []float64 {
	out := make([]float64, k)
	for j := range out {
		out[j] = sample.Quantile(sorted, float64(j)/float64(k-1))
	}
	return out
}
