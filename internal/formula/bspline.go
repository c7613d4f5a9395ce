package formula

import "slices"

// bspline is bs(x, df, knots, degree, intercept).
type bspline struct {
	x         Expr
	df        int // columns
	knots     []float64
	degree    int
	intercept bool
}

// spline reads bs().
func (x *expansion) spline(e Expr) (b bspline, err *Error) {
	a := x.arguments(e, "x", "df", "knots", "degree", "intercept")
	b.intercept = a.flag("intercept")
	b.degree = a.whole("degree", 3, 1, 10, "degree of bs()")
	least := b.degree + number01(b.intercept)
	b.df = a.whole("df", 0, least, 1000, "df of bs()")
	b.knots = a.numbers("knots")
	if (b.df == 0) == (b.knots == nil) {
		a.wrong(e.at, "bs() takes df, as bs(x, df = 5), or knots, as bs(x, knots = c(1, 2)), and not both")
	}
	if b.knots != nil {
		slices.Sort(b.knots)
		b.df = least + len(b.knots)
	}
	b.x = a.number("x")
	return b, a.err
}

// bspline has the B-splines of a number (de Boor 1978, A Practical Guide to Splines, chapter X; bs of R). The boundary
// knots are the range of the training data, inner ones quantiles of them, if they are not stated. Beyond the boundary
// the outer polynomials go on. Without intercept the first column is left out, as its sum with the others is 1.
func (s *source) bspline(e Expr) ([][]float64, error) {
	b, _ := s.reader().spline(e)
	x, err := s.number(b.x)
	if err != nil {
		return nil, err
	}
	key := e.String()
	if s.learning && s.m.numbers[key] == nil {
		sorted := slices.Sorted(slices.Values(x))
		low, high := sorted[0], sorted[len(sorted)-1]
		if low == high {
			return nil, s.wrong(e, "%s is %v in every row: bs() needs different values", b.x, low)
		}
		inner := b.knots
		if inner == nil {
			q := quantiles(sorted, b.df-b.degree+2-number01(b.intercept))
			inner = q[1 : len(q)-1]
		}
		for _, k := range inner {
			if k <= low || k >= high {
				return nil, s.wrong(e, "knot %v is not inside the range of %s, from %v to %v: state knots inside, or "+
					"a smaller df", k, b.x, low, high)
			}
		}
		s.m.numbers[key] = slices.Concat([]float64{low}, inner, []float64{high})
	}
	out := b.columns(x, s.m.numbers[key])
	return out, s.finiteBasis(e, x, out)
}

func number01(b bool) int {
	if b {
		return 1
	}
	return 0
}

// columns evaluates the B-splines of knots that begin and end with the boundary.
func (b bspline) columns(x, knots []float64) [][]float64 {
	d := b.degree
	t := slices.Concat(slices.Repeat(knots[:1], d), knots, slices.Repeat(knots[len(knots)-1:], d))
	out := make([][]float64, b.df)
	for j := range out {
		out[j] = make([]float64, len(x))
	}
	skip := 1 - number01(b.intercept)
	value := make([]float64, d+1)
	for i, v := range x {
		at := d // the interval from t[at] to t[at+1]
		for at+1 < len(t)-d-1 && v >= t[at+1] {
			at++
		}
		deBoor(value, t, at, v)
		for j, y := range value {
			if k := at - d + j - skip; k >= 0 {
				out[k][i] = y
			}
		}
	}
	return out
}

// deBoor has the values at v of the B-splines that are not 0 between t[at] and t[at+1], by their recursion.
func deBoor(value, t []float64, at int, v float64) {
	value[0] = 1
	for d := 1; d < len(value); d++ {
		carried := 0.0
		for r := range d {
			right, left := t[at+r+1]-v, v-t[at+1-d+r]
			share := value[r] / (right + left)
			value[r] = carried + right*share
			carried = left * share
		}
		value[d] = carried
	}
}
