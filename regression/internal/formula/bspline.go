package formula

import (
	"slices"
)

// bspline is bs(x, df, knots, degree, intercept).
type bspline struct {
	x         Expr
	df        int
	knots     []float64
	degree    int
	intercept bool
}

// spline reads bs().
func (x *expansion) spline(e Expr) (bspline, *Error) {
	b := bspline{degree: 3}
	args, err := x.arguments(e, "x", "df", "knots", "degree", "intercept")
	if err != nil {
		return b, err
	}
	if b.x = args["x"]; b.x.Key != "" {
		b.x.Key = ""
	}
	if b.intercept, err = x.flag(args["intercept"]); err != nil {
		return b, err
	}
	whole := func(a Expr, low, high int, to *int) *Error {
		if a.None() {
			return nil
		}
		if a.Kind != Number || a.Value != float64(int(a.Value)) || int(a.Value) < low || int(a.Value) > high {
			return x.wrong(a.at, "%s of bs() is a whole number from %d to %d", a.Key, low, high)
		}
		*to = int(a.Value)
		return nil
	}
	d := args["degree"]
	if d.Key = "degree"; args["degree"].None() {
		d = Expr{}
	}
	if err := whole(d, 1, 10, &b.degree); err != nil {
		return b, err
	}
	least := b.degree
	if b.intercept {
		least++
	}
	df := args["df"]
	if !df.None() {
		df.Key = "df"
	}
	if err := whole(df, least, 1000, &b.df); err != nil {
		return b, err
	}
	if err := x.knots(args["knots"], &b); err != nil {
		return b, err
	}
	if (b.df == 0) == (b.knots == nil) {
		return b, x.wrong(e.at, "bs() takes df, as bs(x, df = 5), or knots, as bs(x, knots = c(1, 2)), and not both")
	}
	return b, x.checkNumber(b.x)
}

// knots reads c(1, 2), or a number.
func (x *expansion) knots(e Expr, b *bspline) *Error {
	list := []Expr{e}
	if e.Kind == Call && e.Name == "c" {
		list = e.Args
	}
	if e.None() {
		return nil
	}
	for _, k := range list {
		v := k.Value
		if k.Kind == Call && k.Name == "-" && len(k.Args) == 1 {
			v, k.Kind = -k.Args[0].Value, k.Args[0].Kind
		}
		if k.Kind != Number || k.Key != "" && k.Key != "knots" {
			return x.wrong(k.at, "knots are numbers: c(1, 2)")
		}
		b.knots = append(b.knots, v)
	}
	slices.Sort(b.knots)
	return nil
}

// width is the number of columns.
func (b bspline) width() int {
	if b.knots == nil {
		return b.df
	}
	n := len(b.knots) + b.degree
	if b.intercept {
		n++
	}
	return n
}

// bspline has the B-splines of a number (de Boor 1978, A Practical Guide to Splines, chapter X; bs of R). The boundary
// knots are the range of the training data, inner ones quantiles of them, if they are not stated. Beyond the boundary
// the outer polynomials go on. Without intercept the first column is left out, as its sum with the others is 1.
func (s *source) bspline(e Expr) ([][]float64, error) {
	b, bad := (&expansion{text: s.f.text}).spline(e)
	if bad != nil {
		return nil, bad
	}
	v, err := s.number(b.x)
	if err != nil {
		return nil, err
	}
	x, key := v.full(s.t.Len()), e.String()
	if s.learning && s.m.Numbers[key] == nil {
		sorted := ordered(x)
		low, high := sorted[0], sorted[len(sorted)-1]
		if low == high {
			return nil, s.wrong(e, "%s is %v in every row: bs() needs different values", b.x, low)
		}
		inner := b.knots
		if inner == nil {
			q := quantiles(sorted, b.width()-b.degree+2-number01(b.intercept))
			inner = q[1 : len(q)-1]
		}
		for _, k := range inner {
			if k <= low || k >= high {
				return nil, s.wrong(e, "knot %v is not inside the range of %s, from %v to %v: state knots inside, or "+
					"a smaller df", k, b.x, low, high)
			}
		}
		s.m.Numbers[key] = slices.Concat([]float64{low}, inner, []float64{high})
	}
	out := b.columns(x, s.m.Numbers[key])
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
	out := make([][]float64, b.width())
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
