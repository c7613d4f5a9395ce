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

// Times is the product of the matrix and a vector.
func (p *Pattern) Times(values, x []float64) []float64 {
	out := make([]float64, p.N)
	for j := range p.N {
		out[j] += values[p.Start[j]] * x[j]
		for k := p.Start[j] + 1; k < p.Start[j+1]; k++ {
			out[p.Row[k]] += values[k] * x[j]
			out[j] += values[k] * x[p.Row[k]]
		}
	}
	return out
}

// Analysis is what the pattern alone tells of the factor: an order of elimination and where the factor is not 0.
type Analysis struct {
	pattern *Pattern
	order   []int // the rows as they are eliminated
	place   []int // of each row in that order
	parent  []int // of each column of the factor: the first row below the diagonal, or -1
	start   []int // of each column of the factor

	// The upper triangle of the matrix in that order, column by column, without the diagonal: rows, and where the values
	// have them.
	from, row, at []int
}

// Analyse finds an order with little fill: the best of the one given and that of minimum degree.
func (p *Pattern) Analyse() *Analysis {
	natural := make([]int, p.N)
	for i := range natural {
		natural[i] = i
	}
	a, b := p.analyse(natural), p.analyse(p.minimumDegree())
	if a.work() <= b.work() {
		return a
	}
	return b
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

// Factor is L D Lᵀ of a matrix in the order of elimination, with a diagonal D and a unit lower triangle L.
type Factor struct {
	*Analysis
	row []int // of the elements of L below the diagonal
	l   []float64
	d   []float64
}

// Factor factorises the matrix of these values row by row (Davis 2005, ACM Transactions on Mathematical Software 31). A
// nil Factor means that the matrix is not positive definite.
func (a *Analysis) Factor(values []float64) *Factor {
	n := a.pattern.N
	f := &Factor{Analysis: a, row: make([]int, a.start[n]), l: make([]float64, a.start[n]), d: make([]float64, n)}
	end := slices.Clone(a.start[:n]) // of what each column has so far
	y, seen, path, rows := make([]float64, n), make([]int, n), make([]int, n), make([]int, n)
	for k := range n {
		seen[k] = k
		top := n // rows[top:] are the columns in which row k is not 0, in an order of elimination
		for at := a.from[k]; at < a.from[k+1]; at++ {
			i, length := a.row[at], 0
			y[i] += values[a.at[at]]
			for ; seen[i] != k; i = a.parent[i] {
				path[length], seen[i] = i, k
				length++
			}
			for ; length > 0; length-- {
				top--
				rows[top] = path[length-1]
			}
		}
		d := values[a.pattern.Start[a.order[k]]]
		for _, i := range rows[top:] {
			v := y[i]
			y[i] = 0
			row, l := f.row[a.start[i]:end[i]], f.l[a.start[i]:end[i]]
			for t, r := range row {
				y[r] -= l[t] * v
			}
			w := v / f.d[i]
			d -= w * v
			f.row[end[i]], f.l[end[i]] = k, w
			end[i]++
		}
		if !(d > 0) || math.IsInf(d, 1) {
			return nil
		}
		f.d[k] = d
	}
	return f
}

// LogDet is the logarithm of the determinant.
func (f *Factor) LogDet() (sum float64) {
	for _, d := range f.d {
		sum += math.Log(d)
	}
	return sum
}

// Solve is A⁻¹ b.
func (f *Factor) Solve(b []float64) []float64 {
	x := make([]float64, len(b))
	for k, i := range f.order {
		x[k] = b[i]
	}
	for j := range x {
		for t := f.start[j]; t < f.start[j+1]; t++ {
			x[f.row[t]] -= f.l[t] * x[j]
		}
	}
	for j := range x {
		x[j] /= f.d[j]
	}
	return f.back(x)
}

// Draw makes a vector of covariance A⁻¹ of independent standard normal numbers.
func (f *Factor) Draw(z []float64) []float64 {
	x := make([]float64, len(z))
	for j, v := range z {
		x[j] = v / math.Sqrt(f.d[j])
	}
	return f.back(x)
}

// back is L⁻ᵀ x, in the order of the matrix.
func (f *Factor) back(x []float64) []float64 {
	for j := len(x) - 1; j >= 0; j-- {
		for t := f.start[j]; t < f.start[j+1]; t++ {
			x[j] -= f.l[t] * x[f.row[t]]
		}
	}
	out := make([]float64, len(x))
	for k, i := range f.order {
		out[i] = x[k]
	}
	return out
}

// Inverse are the elements of A⁻¹ where A may differ from 0, by the recursion of Takahashi, Fagan and Chin (1973): with
// Z = A⁻¹, from the last column to the first,
//
//	Z_ij = −Σ_k L_kj Z_ki,  Z_jj = 1/d_j − Σ_k L_kj Z_kj,  k > j
//
// in which L_kj is not 0. They are the derivatives of log det A, twice those off the diagonal.
func (f *Factor) Inverse() []float64 {
	n := f.pattern.N
	z, diagonal, at := make([]float64, len(f.l)), make([]float64, n), make([]int, n)
	for i := range at {
		at[i] = -1
	}
	for j := n - 1; j >= 0; j-- {
		lo, hi := f.start[j], f.start[j+1]
		rows, l, column := f.row[lo:hi], f.l[lo:hi], z[lo:hi]
		for a, i := range rows {
			at[i] = a
		}
		for a, i := range rows {
			sum, v := diagonal[i]*l[a], l[a]
			from := f.start[i]
			for t, r := range f.row[from:f.start[i+1]] {
				if b := at[r]; b >= 0 {
					x := z[from+t]
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
	out := make([]float64, len(f.pattern.Row))
	for j := range n {
		for k := f.pattern.Start[j]; k < f.pattern.Start[j+1]; k++ {
			x, y := f.place[j], f.place[f.pattern.Row[k]]
			x, y = min(x, y), max(x, y)
			if x == y {
				out[k] = diagonal[x]
				continue
			}
			t, _ := slices.BinarySearch(f.row[f.start[x]:f.start[x+1]], y)
			out[k] = z[f.start[x]+t]
		}
	}
	return out
}
