package formula

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"
)

// check refuses columns that the training data say nothing of.
func (d *Design) check(s *source, r *Rows, o Options) error {
	empty := d.empty(r)
	if !o.EmptyCells {
		for i, c := range d.columns {
			if !empty[i] {
				continue
			}
			problem := cmp.Or(s.emptyCell(c), "it is 0 in each row of the training data")
			more := -1
			for _, e := range empty {
				more += number01(e)
			}
			if more > 0 {
				problem += fmt.Sprintf(", and %d more columns are empty", more)
			}
			return d.f.wrong(d.at(i), fmt.Sprintf("%q: %s: merge levels, leave the product out, or keep it with "+
				"Formula.EmptyCells", short(c.name), problem))
		}
	}
	if m, ok := d.emptyProduct(r); ok && !o.EmptyCells {
		return d.f.wrong(m.of.at, fmt.Sprintf("%q: %s: merge levels, leave the product out, or keep it with "+
			"Formula.EmptyCells", short(m.name), cmp.Or(s.emptyCell(m.rest), "it is 0 in each row of the training data")))
	}
	if o.Collinear {
		return nil
	}
	return d.independent(s, r, empty)
}

// emptyCell names a combination of the levels of the factors in a product that no row has; "" for none. That of the
// levels of the column itself comes first.
func (s *source) emptyCell(c column) string {
	var parts []part
	var all [][]int32
	cells := 1
	for _, p := range c.parts {
		if p.levels == nil {
			continue
		}
		codes, err := s.levels(p.expr)
		if cells *= len(p.levels); err != nil || cells > 1<<22 {
			return ""
		}
		parts, all = append(parts, p), append(all, codes)
	}
	if len(parts) < 2 {
		return ""
	}
	full := make([]bool, cells)
	for i := range s.t.Len() {
		at := 0
		for k, p := range parts {
			at = at*len(p.levels) + int(all[k][i])
		}
		full[at] = true
	}
	own := 0
	for _, p := range parts {
		level := p.j
		if !p.full {
			level = slices.IndexFunc(p.contrast, func(row []float64) bool { return row[p.j] != 0 })
		}
		own = own*len(p.levels) + level
	}
	at := slices.Index(full, false)
	if !full[own] {
		at = own
	}
	if at < 0 {
		return ""
	}
	names := make([]string, len(parts))
	for k := len(parts) - 1; k >= 0; k-- {
		n := len(parts[k].levels)
		names[k] = fmt.Sprintf("%s %q", parts[k].expr, short(parts[k].levels[at%n]))
		at /= n
	}
	return "no row of the training data has " + strings.Join(names, " with ")
}

// empty says which columns are 0 in each row.
func (d *Design) empty(r *Rows) []bool {
	p := len(d.names)
	out := slices.Repeat([]bool{true}, p)
	for i := range r.N {
		for j, v := range r.X[i*p : (i+1)*p] {
			out[j] = out[j] && v == 0
		}
	}
	return out
}

// at is the place in the formula of a common column.
func (d *Design) at(i int) int {
	if i < len(d.columns) {
		return d.columns[i].parts[0].expr.at
	}
	i -= len(d.columns)
	for _, s := range d.smooths {
		if i -= len(s.linear); i < 0 {
			return s.of.at
		}
	}
	return 0
}

// tolerance is how small the part of a column is, beside the whole, that others do not determine, when it is none.
const tolerance = 1e-10

// independent is an error where the constant and the columns before one determine it. The inner products of the columns
// say at little cost, most often, that none does, since rows have zeros for most levels of a factor. Else a QR
// decomposition says which is the first: it leaves nothing of that column.
func (d *Design) independent(s *source, r *Rows, skip []bool) error {
	p := len(d.names)
	var names []string
	var at []int // of the columns of r.X; -1 is the constant
	if d.Intercept() {
		names, at = append(names, "1"), append(at, -1)
	}
	for j, name := range d.names {
		if !skip[j] {
			names, at = append(names, name), append(at, j)
		}
	}
	if p == 0 || len(at) == 0 {
		return nil
	}
	sizes := make([]float64, len(at))
	for k, j := range at {
		for i := range r.N {
			sizes[k] = max(sizes[k], math.Abs(r.at(i, j)))
		}
	}
	if apart(r, at, sizes) {
		return nil
	}
	columns := mat.NewDense(max(r.N, len(at)), len(at), nil)
	for k, j := range at {
		for i := range r.N {
			columns.Set(i, k, r.at(i, j)/sizes[k])
		}
	}
	var qr mat.QR
	var triangle mat.Dense
	qr.Factorize(columns)
	qr.RTo(&triangle)
	for k, j := range at {
		of := triangle.Slice(0, k+1, k, k+1)
		if k < r.N && math.Abs(triangle.At(k, k)) > tolerance*mat.Norm(of, 2) {
			continue
		}
		problem := determined(&triangle, k, names, sizes, r.N)
		if j < len(d.columns) {
			if cell := s.emptyCell(d.columns[j]); cell != "" {
				problem += "; " + cell
			}
		}
		return d.f.wrong(d.at(j), problem)
	}
	return nil
}

// at is a common column of a row; -1 is the constant.
func (r *Rows) at(i, j int) float64 {
	if j < 0 {
		return 1
	}
	return r.X[i*(len(r.X)/r.N)+j]
}

// apart says that some columns, each divided by its size, are far from determining each other: the matrix of their
// correlations, about 0, has a condition number below 1e8, while rounding makes an error of about 1e-13 of its
// elements. False says nothing.
func apart(r *Rows, at []int, sizes []float64) bool {
	k := len(at)
	products := make([]float64, k*k)
	var places []int // of what is not 0 in a row
	row := make([]float64, k)
	for i := range r.N {
		places = places[:0]
		for c, j := range at {
			if row[c] = r.at(i, j) / sizes[c]; row[c] != 0 {
				places = append(places, c)
			}
		}
		for a, c := range places {
			for _, e := range places[a:] {
				products[c*k+e] += row[c] * row[e]
			}
		}
	}
	correlations := mat.NewSymDense(k, nil)
	for c := range k {
		for e := c; e < k; e++ {
			correlations.SetSym(c, e, products[c*k+e]/math.Sqrt(products[c*k+c])/math.Sqrt(products[e*k+e]))
		}
	}
	var root mat.Cholesky
	return root.Factorize(correlations) && root.Cond() < 1e8
}

// determined says what column k is the sum of, by the triangle of a QR decomposition.
func determined(triangle *mat.Dense, k int, names []string, sizes []float64, n int) string {
	const out = "; leave one of them out, or keep all with Formula.Collinear"
	if k >= n {
		return fmt.Sprintf("%q is one column more than there are rows: %d%s", short(names[k]), n, out)
	}
	var b mat.VecDense
	var others []string
	var weights []float64
	if k > 0 { // an error says that the condition is bad, or that there is no solution
		_ = b.SolveVec(triangle.Slice(0, k, 0, k), triangle.ColView(k).(*mat.VecDense).SliceVec(0, k))
		for j := range b.Len() {
			if math.Abs(b.AtVec(j)) > 1e-7 {
				others, weights = append(others, names[j]), append(weights, b.AtVec(j)*sizes[k]/sizes[j])
			}
		}
	}
	if others == nil {
		return fmt.Sprintf("other columns determine %q%s", short(names[k]), out)
	}
	return fmt.Sprintf("other columns determine %q: it is %s%s", short(names[k]), combination(others, weights), out)
}

// combination writes a sum of columns with their weights, the first of many.
func combination(names []string, weights []float64) string {
	var b strings.Builder
	for i, name := range names {
		if i == 8 {
			fmt.Fprintf(&b, " + %d more", len(names)-i)
			break
		}
		weight := fmt.Sprintf("%.4g", math.Abs(weights[i]))
		switch {
		case weights[i] < 0 && i == 0:
			b.WriteString("-")
		case weights[i] < 0:
			b.WriteString(" - ")
		case i > 0:
			b.WriteString(" + ")
		}
		switch {
		case name == "1":
			b.WriteString(weight)
		case weight == "1":
			b.WriteString(short(name))
		default:
			b.WriteString(weight + " " + short(name))
		}
	}
	return b.String()
}
