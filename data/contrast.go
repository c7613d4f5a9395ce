package data

import (
	"fmt"
	"math"
	"strconv"
)

// Contrast is how a factor of L levels becomes columns of a matrix. With an intercept, all but [Indicator] give each
// level a mean of its own, once.
type Contrast int

// The contrasts. Column j of the first four, from 1 to L-1, and what its coefficient means where there is an intercept:
//
//	Treatment   1 in level j+1, else 0: the difference of level j+1 from the first, or from Term.Reference
//	Sum         1 in level j, -1 in the last, else 0: the deviation of level j from the mean of the levels
//	Helmert     -1 in levels 1 to j, j in level j+1, else 0: (level j+1 less the mean of those before)/(j+1)
//	Polynomial  the orthonormal polynomial of degree j at 1, ..., L: a trend over ordered, equally spaced levels
//	Indicator   1 in level j, else 0, for j from 1 to L: a coefficient for each level, with a prior for all of them
//
// They are those of contr.treatment, contr.sum, contr.helmert and contr.poly in R. Beside an intercept the L columns of
// Indicator are one too many for least squares, and right for a model whose prior shrinks them.
const (
	Treatment Contrast = iota
	Sum
	Helmert
	Polynomial
	Indicator
)

// Matrix is the contrast of so many levels: a row for each level. An unknown contrast and less than two levels, one for
// Indicator, are errors. Treatment leaves out the first level.
func (c Contrast) Matrix(levels int) ([][]float64, error) {
	if least := 2 - btoi(c == Indicator); levels < least {
		return nil, &Error{Row: -1, Problem: fmt.Sprintf("a contrast of %d levels: it needs at least %d", levels, least)}
	}
	columns := levels - 1 + btoi(c == Indicator)
	if most := 1 << 24; columns > most/levels {
		return nil, &Error{Row: -1, Problem: fmt.Sprintf("a contrast of %d levels has more than %d numbers: "+
			"take the factor as indices, by Spec.Columns", levels, most)}
	}
	m := make([][]float64, levels)
	for i := range m {
		m[i] = make([]float64, columns)
		for j := range m[i] {
			switch c {
			case Treatment:
				m[i][j] = float64(btoi(i == j+1))
			case Sum:
				m[i][j] = float64(btoi(i == j) - btoi(i == levels-1))
			case Helmert:
				m[i][j] = float64((j+1)*btoi(i == j+1) - btoi(i <= j))
			case Indicator:
				m[i][j] = float64(btoi(i == j))
			}
		}
	}
	switch c {
	case Treatment, Sum, Helmert, Indicator:
	case Polynomial:
		polynomials(m)
	default:
		return nil, &Error{Row: -1, Problem: fmt.Sprintf("contrast %d is unknown: expected Treatment, Sum, Helmert, "+
			"Polynomial or Indicator", int(c))}
	}
	return m, nil
}

// polynomials fills the columns with orthonormal polynomials: each is the one before times x, made orthogonal to all
// before. That is done twice, since the first time leaves rounding errors that grow with the degree (Giraud, Langou and
// Rozloznik 2005). The sign is that of a positive leading coefficient.
func polynomials(m [][]float64) {
	n := len(m)
	basis := [][]float64{make([]float64, n)} // of degree 0
	for i := range n {
		basis[0][i] = 1 / math.Sqrt(float64(n))
	}
	for degree := 1; degree < n; degree++ {
		next := make([]float64, n)
		for i := range next {
			next[i] = (float64(i) - float64(n-1)/2) * basis[degree-1][i]
		}
		for range 2 {
			for _, b := range basis {
				along := dot(next, b)
				for i := range next {
					next[i] -= along * b[i]
				}
			}
		}
		size := math.Sqrt(dot(next, next))
		for i := range next {
			next[i] /= size
			m[i][degree-1] = next[i]
		}
		basis = append(basis, next)
	}
}

// label names a column of the contrast of a factor.
func (c Contrast) label(levels []string, j int) string {
	switch c {
	case Sum:
		return "S." + levels[j]
	case Helmert:
		return "H." + levels[j+1]
	case Polynomial:
		return "^" + strconv.Itoa(j+1)
	case Indicator:
		return levels[j]
	}
	return levels[j+1]
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
