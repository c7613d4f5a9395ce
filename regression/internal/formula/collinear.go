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
				"Options.EmptyCells", short(c.name), problem))
		}
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
// decomposition goes over the rows in blocks (TSQR, Demmel et al. 2012), so that it needs the memory of one; then a
// column whose rest, orthogonal to the independent ones before, is nothing is left out, as LINPACK's dqrdc2 of R does.
func (d *Design) independent(s *source, r *Rows, skip []bool) error {
	p := len(d.names)
	var names []string
	var at []int
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
		sizes[k] = 1
		if j >= 0 {
			sizes[k] = 0
			for i := range r.N {
				sizes[k] = math.Max(sizes[k], math.Abs(r.X[i*p+j]))
			}
		}
	}
	if apart(r, at, sizes) {
		return nil
	}
	triangle := triangle(r, at, sizes)
	var kept []int
	var basis [][]float64
	for k := range at {
		whole := mat.Col(nil, k, triangle)
		rest := slices.Clone(whole)
		for range 2 { // the second time takes away what rounding left
			for _, b := range basis {
				along := mat.Dot(mat.NewVecDense(len(b), b), mat.NewVecDense(len(b), rest))
				for i := range rest {
					rest[i] -= along * b[i]
				}
			}
		}
		size := norm(rest)
		if size <= tolerance*norm(whole) || len(kept) == r.N {
			problem := determined(triangle, kept, k, names, sizes, r.N)
			if j := at[k]; j < len(d.columns) {
				if cell := s.emptyCell(d.columns[j]); cell != "" {
					problem += "; " + cell
				}
			}
			return d.f.wrong(d.at(at[k]), problem)
		}
		for i := range rest {
			rest[i] /= size
		}
		kept, basis = append(kept, k), append(basis, rest)
	}
	return nil
}

// apart says that some columns, each divided by its size, are far from determining each other: the matrix of their
// correlations, about 0, has a condition number below 1e8, while rounding makes an error of about 1e-13 of its
// elements. False says nothing.
func apart(r *Rows, at []int, sizes []float64) bool {
	k, p := len(at), len(r.X)/r.N
	products := make([]float64, k*k)
	var places []int // of what is not 0 in a row
	row := make([]float64, k)
	for i := range r.N {
		places = places[:0]
		for c, j := range at {
			if row[c] = 1; j >= 0 {
				row[c] = r.X[i*p+j] / sizes[c]
			}
			if row[c] != 0 {
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

// triangle is R of the QR decomposition of some columns, each divided by its size; -1 is the constant.
func triangle(r *Rows, at []int, sizes []float64) *mat.Dense {
	k, p := len(at), len(r.X)/r.N
	rows := max(4*k, 256)
	stack := mat.NewDense(k+rows, k, nil)
	top := mat.NewDense(k, k, nil)
	for from := 0; from < r.N; from += rows {
		stack.Zero()
		stack.Slice(0, k, 0, k).(*mat.Dense).Copy(top)
		for i := from; i < min(from+rows, r.N); i++ {
			for c, j := range at {
				v := 1.0
				if j >= 0 {
					v = r.X[i*p+j] / sizes[c]
				}
				stack.Set(k+i-from, c, v)
			}
		}
		var qr mat.QR
		var all mat.Dense
		qr.Factorize(stack)
		qr.RTo(&all)
		top.Copy(all.Slice(0, k, 0, k))
	}
	return top
}

// determined says what a column is the sum of.
func determined(triangle *mat.Dense, kept []int, k int, names []string, sizes []float64, n int) string {
	const out = "; leave one of them out, or keep all with Options.Collinear"
	if len(kept) == n {
		return fmt.Sprintf("%q is one column more than there are rows: %d%s", short(names[k]), n, out)
	}
	rows, _ := triangle.Dims()
	a := mat.NewDense(rows, max(1, len(kept)), nil)
	for c, j := range kept {
		a.SetCol(c, mat.Col(nil, j, triangle))
	}
	var solution mat.VecDense
	if err := solution.SolveVec(a, triangle.ColView(k)); err != nil && solution.IsEmpty() {
		return fmt.Sprintf("other columns determine %q%s", short(names[k]), out)
	}
	var others []string
	var weights []float64
	for c, j := range kept {
		if math.Abs(solution.AtVec(c)) > 1e-7 {
			others, weights = append(others, names[j]), append(weights, solution.AtVec(c)*sizes[k]/sizes[j])
		}
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
