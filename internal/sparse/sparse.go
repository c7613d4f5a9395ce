// Package sparse factorises symmetric positive definite matrices of which few elements are not 0, and has what the
// factor tells: the determinant, solutions, draws, and the elements of the inverse at which the matrix is not 0.
package sparse

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Pattern says which elements of a symmetric matrix may differ from 0: those of its lower triangle, column by column,
// each beginning with the diagonal.
type Pattern struct {
	N          int
	Start, Row []int
}

// NewPattern is that of a matrix of n rows whose elements at (i, j), or (j, i), may differ from 0, as the whole
// diagonal may. It panics where an index is out of range.
func NewPattern(n int, at [][2]int) *Pattern {
	all := make([][2]int, 0, n+len(at))
	for i := range n {
		all = append(all, [2]int{i, i})
	}
	for _, a := range at {
		i, j := max(a[0], a[1]), min(a[0], a[1])
		if j < 0 || i >= n {
			panic(fmt.Sprintf("sparse: element (%d, %d) of a matrix of %d rows", i, j, n))
		}
		all = append(all, [2]int{j, i})
	}
	slices.SortFunc(all, func(a, b [2]int) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	all = slices.Compact(all)
	p := &Pattern{N: n, Start: make([]int, n+1)}
	for _, a := range all {
		p.Start[a[0]+1]++
		p.Row = append(p.Row, a[1])
	}
	for j := range n {
		p.Start[j+1] += p.Start[j]
	}
	return p
}

// At is where the values of a matrix have the element (i, j); -1 where it is 0.
func (p *Pattern) At(i, j int) int {
	i, j = max(i, j), min(i, j)
	at, ok := slices.BinarySearch(p.Row[p.Start[j]:p.Start[j+1]], i)
	if !ok {
		return -1
	}
	return p.Start[j] + at
}

// Times puts the product of the matrix and a vector into out.
func (p *Pattern) Times(out, values, x []float64) []float64 {
	clear(out)
	for j, v := range x {
		from, to := p.Start[j], p.Start[j+1]
		sum, rest := values[from]*v, values[from+1:to]
		for k, i := range p.Row[from+1 : to] {
			out[i] += rest[k] * v
			sum += rest[k] * x[i]
		}
		out[j] += sum
	}
	return out
}

// Analysis is what the pattern alone tells of the factor: an order of elimination and where the factor is not 0.
type Analysis struct {
	pattern *Pattern
	order   []int   // the rows as they are eliminated
	place   []int   // of each row in that order
	parent  []int   // of each column of the factor: the first row below the diagonal, or -1
	start   []int   // of each column of the factor
	rows    []int32 // of its elements, column by column

	// The elements of the factor once more, row by row: columns, and where rows has them.
	begin    []int
	cols, in []int32

	// The upper triangle of the matrix in that order, column by column, without the diagonal: rows, and where the values
	// have them.
	from, row, at []int
	inverse       []int // of each element of the pattern: where the factor has it; of the diagonal, which column
}

// Analyse finds an order with little fill: the best of the one given and that of minimum degree.
func (p *Pattern) Analyse() *Analysis {
	natural := make([]int, p.N)
	for i := range natural {
		natural[i] = i
	}
	a, b := p.analyse(natural), p.analyse(p.minimumDegree())
	if a.work() > b.work() {
		a = b
	}
	return a.fill()
}

// work is how many multiplications a factorisation takes.
func (a *Analysis) work() (sum float64) {
	for j := range a.pattern.N {
		n := float64(a.start[j+1] - a.start[j])
		sum += n * n
	}
	return sum
}

func (p *Pattern) analyse(order []int) *Analysis {
	n := p.N
	a := &Analysis{pattern: p, order: order, place: make([]int, n), parent: make([]int, n), start: make([]int, n+1),
		from: make([]int, n+1)}
	for k, i := range order {
		a.place[i] = k
	}
	each := func(f func(i, j, at int)) { // the upper triangle in the order
		for j := range n {
			for k := p.Start[j] + 1; k < p.Start[j+1]; k++ {
				x, y := a.place[j], a.place[p.Row[k]]
				f(min(x, y), max(x, y), k)
			}
		}
	}
	each(func(_, j, _ int) { a.from[j+1]++ })
	for j := range n {
		a.from[j+1] += a.from[j]
	}
	next := slices.Clone(a.from)
	a.row, a.at = make([]int, a.from[n]), make([]int, a.from[n])
	each(func(i, j, at int) {
		a.row[next[j]], a.at[next[j]] = i, at
		next[j]++
	})
	seen := make([]int, n)
	for k := range n {
		a.parent[k], seen[k] = -1, k
		for _, i := range a.row[a.from[k]:a.from[k+1]] {
			for ; seen[i] != k; i = a.parent[i] {
				if a.parent[i] < 0 {
					a.parent[i] = k
				}
				a.start[i+1]++ // row k is in column i
				seen[i] = k
			}
		}
	}
	for j := range n {
		a.start[j+1] += a.start[j]
	}
	return a
}

// fill finds where the factor is not 0.
func (a *Analysis) fill() *Analysis {
	n := a.pattern.N
	total := a.start[n]
	a.rows, a.cols, a.in = make([]int32, total), make([]int32, 0, total), make([]int32, 0, total)
	a.begin = make([]int, n+1)
	end, seen := slices.Clone(a.start[:n]), make([]int, n)
	for k := range n {
		seen[k] = k
		for _, i := range a.row[a.from[k]:a.from[k+1]] {
			for ; seen[i] != k; i = a.parent[i] {
				seen[i] = k
				a.cols = append(a.cols, int32(i))
			}
		}
		a.begin[k+1] = len(a.cols)
		slices.Sort(a.cols[a.begin[k]:])
		for _, i := range a.cols[a.begin[k]:] {
			a.rows[end[i]] = int32(k)
			a.in = append(a.in, int32(end[i]))
			end[i]++
		}
	}
	for j := range n {
		for k := a.pattern.Start[j]; k < a.pattern.Start[j+1]; k++ {
			x, y := a.place[j], a.place[a.pattern.Row[k]]
			x, y = min(x, y), max(x, y)
			t, _ := slices.BinarySearch(a.rows[a.start[x]:a.start[x+1]], int32(y))
			if t += a.start[x]; x == y {
				t = x
			}
			a.inverse = append(a.inverse, t)
		}
	}
	return a
}

// Factor is L D Lᵀ of a matrix in the order of elimination, with a diagonal D and a unit lower triangle L.
type Factor struct {
	*Analysis
	l, d []float64 // of L the elements below the diagonal
	y    []float64 // scratch
	z    []float64 // of the inverse, where L is not 0
	at   []int32
}

// Factor factorises the matrix of these values. A nil Factor means that the matrix is not positive definite.
func (a *Analysis) Factor(values []float64) *Factor {
	f := a.Room()
	if !f.Set(values) {
		return nil
	}
	return f
}

// Room is a factor of no matrix yet.
func (a *Analysis) Room() *Factor {
	n := a.pattern.N
	return &Factor{Analysis: a, l: make([]float64, a.start[n]), d: make([]float64, n), y: make([]float64, n)}
}

// Set makes f the factor of the matrix of these values, row by row (Davis 2005, ACM Transactions on Mathematical
// Software 31), and says whether that is positive definite.
func (f *Factor) Set(values []float64) bool {
	y, l := f.y, f.l
	clear(y)
	for k := range f.d {
		for at := f.from[k]; at < f.from[k+1]; at++ {
			y[f.row[at]] += values[f.Analysis.at[at]]
		}
		d := values[f.pattern.Start[f.order[k]]]
		cols, in := f.cols[f.begin[k]:f.begin[k+1]], f.in[f.begin[k]:f.begin[k+1]]
		for p, i := range cols {
			v := y[i]
			y[i] = 0
			lo, to := f.start[i], int(in[p])
			column := l[lo:to]
			for t, r := range f.rows[lo:to] {
				y[r] -= column[t] * v
			}
			w := v / f.d[i]
			d -= w * v
			l[to] = w
		}
		if !(d > 0) || math.IsInf(d, 1) {
			return false
		}
		f.d[k] = d
	}
	return true
}

// LogDet is the logarithm of the determinant.
func (f *Factor) LogDet() (sum float64) {
	for _, d := range f.d {
		sum += math.Log(d)
	}
	return sum
}

// Solve puts A⁻¹ b into x, which may be b.
func (f *Factor) Solve(x, b []float64) []float64 {
	y := f.y
	for k, i := range f.order {
		y[k] = b[i]
	}
	for j, v := range y {
		if v == 0 {
			continue
		}
		column := f.l[f.start[j]:f.start[j+1]]
		for t, r := range f.rows[f.start[j]:f.start[j+1]] {
			y[r] -= column[t] * v
		}
		y[j] = v / f.d[j]
	}
	return f.back(x)
}

// Draw makes a vector of covariance A⁻¹ of independent standard normal numbers.
func (f *Factor) Draw(z []float64) []float64 {
	for j, v := range z {
		f.y[j] = v / math.Sqrt(f.d[j])
	}
	return f.back(make([]float64, len(z)))
}

// back puts L⁻ᵀ y into out, in the order of the matrix.
func (f *Factor) back(out []float64) []float64 {
	y := f.y
	for j := len(y) - 1; j >= 0; j-- {
		column, v := f.l[f.start[j]:f.start[j+1]], y[j]
		for t, r := range f.rows[f.start[j]:f.start[j+1]] {
			v -= column[t] * y[r]
		}
		y[j] = v
		out[f.order[j]] = v
	}
	return out
}

// Inverse puts the elements of A⁻¹ where A may differ from 0 into out, by the recursion of Takahashi, Fagan and Chin
// (1973): with Z = A⁻¹, from the last column to the first,
//
//	Z_ij = −Σ_k L_kj Z_ki,  Z_jj = 1/d_j − Σ_k L_kj Z_kj,  k > j
//
// in which L_kj is not 0. They are the derivatives of log det A, twice those off the diagonal.
func (f *Factor) Inverse(out []float64) []float64 {
	if f.z == nil {
		f.z, f.at = make([]float64, len(f.l)), slices.Repeat([]int32{-1}, len(f.d))
	}
	z, diagonal, at := f.z, f.y, f.at
	clear(z)
	for j := len(f.d) - 1; j >= 0; j-- {
		lo, hi := f.start[j], f.start[j+1]
		rows, l, column := f.rows[lo:hi], f.l[lo:hi], z[lo:hi]
		for a, i := range rows {
			at[i] = int32(a)
		}
		for a, i := range rows {
			sum, v := diagonal[i]*l[a], l[a]
			from, to := f.start[i], f.start[i+1]
			other := z[from:to]
			for t, r := range f.rows[from:to] {
				if b := at[r]; b >= 0 {
					x := other[t]
					sum += l[b] * x
					column[b] -= v * x
				}
			}
			column[a] -= sum
		}
		diagonal[j] = 1 / f.d[j]
		for a, i := range rows {
			diagonal[j] -= l[a] * column[a]
			at[i] = -1
		}
	}
	for j := range f.d {
		k := f.pattern.Start[j]
		out[k] = diagonal[f.inverse[k]]
		for k++; k < f.pattern.Start[j+1]; k++ {
			out[k] = z[f.inverse[k]]
		}
	}
	return out
}
