package formula

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// cubic is a penalised cubic regression spline (Wood 2017, section 5.3.1): a natural cubic spline with values β at
// knots t_1 < ... < t_k. Between t_j and t_{j+1}, with h_j their distance, it is
//
//	f(u) = a₋ β_j + a₊ β_{j+1} + c₋ δ_j + c₊ δ_{j+1},
//	a₋ = (t_{j+1} - u)/h_j,  c₋ = ((t_{j+1} - u)³/h_j - h_j (t_{j+1} - u))/6,  and a₊, c₊ with u - t_j,
//
// where δ = F β are its second derivatives at the knots, 0 at the ends: beyond them it is linear. The penalty is
// ∫ f”² = βᵀ S β, S = Dᵀ B⁻¹ D, of the tridiagonal B and D of that section, and F = B⁻¹ D inside.
//
// A constraint Σ f(u_i) = 0 over the training data is absorbed (section 5.4.1), and the rest is turned so that the
// penalty is a sum of squares (section 5.8; smooth2random of mgcv): the spline is a linear function and Z b, with b iid
// normal. S is divided by the number that mgcv divides it by, so that the sd of b has no unit of u.
type cubic struct {
	mean, sd float64   // of the training data: u = (x - mean)/sd
	knots    []float64 // of u
	value    [][]float64
	second   [][]float64 // derivatives at the knots; a row of k-2 coefficients for each knot, as of value
}

// newCubic learns a spline of k knots at quantiles of the different values of x. A centred one has the constraint.
func newCubic(x []float64, k int, centred bool) cubic {
	mean, sd := moments(x)
	u := make([]float64, len(x))
	for i, v := range x {
		u[i] = (v - mean) / sd
	}
	sorted := slices.Compact(ordered(u))
	c := cubic{mean: mean, sd: sd, knots: quantiles(sorted, k)}
	curvature, penalty := c.penalty()
	c.value, c.second = identity(k), rows(curvature)
	sums, largest := c.sums(u)
	scale := mat.Norm(penalty, 1) / (largest * largest)
	var free mat.Matrix = mat.NewDense(k, k, slices.Concat(identity(k)...))
	if centred {
		free = complement(sums)
	}
	_, n := free.Dims()
	var half, inner, turned, second mat.Dense
	half.Mul(free.T(), penalty)
	inner.Mul(&half, free)
	sym := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			sym.SetSym(i, j, (inner.At(i, j)+inner.At(j, i))/2/scale)
		}
	}
	turned.Mul(free, roots(sym, k-2))
	second.Mul(curvature, &turned)
	c.value, c.second = rows(&turned), rows(&second)
	return c
}

// roots are the eigenvectors of the m largest eigenvalues, divided by the roots of these. The largest element of each
// is positive.
func roots(s *mat.SymDense, m int) *mat.Dense {
	var eigen mat.EigenSym
	eigen.Factorize(s, true)
	values := eigen.Values(nil)
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	n := len(values)
	out := mat.NewDense(n, m, nil)
	for j := range m {
		from := n - 1 - j
		v := mat.Col(nil, from, &vectors)
		largest := 0
		for i := range v {
			if math.Abs(v[i]) > math.Abs(v[largest])*(1+1e-8) {
				largest = i
			}
		}
		by := math.Copysign(math.Sqrt(values[from]), v[largest])
		for i := range v {
			out.Set(i, j, v[i]/by)
		}
	}
	return out
}

// penalty has F, of a row for each knot, and S.
func (c cubic) penalty() (f, s *mat.Dense) {
	k := len(c.knots)
	d := mat.NewDense(k-2, k, nil)
	var diagonal, beside []float64 // of B
	for i := range k - 2 {
		h, next := c.knots[i+1]-c.knots[i], c.knots[i+2]-c.knots[i+1]
		d.Set(i, i, 1/h)
		d.Set(i, i+1, -1/h-1/next)
		d.Set(i, i+2, 1/next)
		diagonal, beside = append(diagonal, (h+next)/3), append(beside, next/6)
	}
	beside = beside[:k-3]
	inside := mat.NewDense(k-2, k, nil)
	if err := mat.NewTridiag(k-2, beside, diagonal, beside).SolveTo(inside, false, d); err != nil {
		panic(err) // B is diagonally dominant
	}
	f, s = mat.NewDense(k, k, nil), &mat.Dense{}
	f.Slice(1, k-1, 0, k).(*mat.Dense).Copy(inside)
	s.Mul(d.T(), inside)
	return f, s
}

// complement is an orthonormal basis of the vectors whose product with c is 0, by a Householder reflection.
func complement(c []float64) *mat.Dense {
	k := len(c)
	v := slices.Clone(c)
	v[0] += math.Copysign(norm(c), c[0])
	square := norm(v) * norm(v)
	out := mat.NewDense(k, k-1, nil)
	for i := range k {
		for j := 1; j < k; j++ {
			out.Set(i, j-1, float64(number01(i == j))-2*v[i]*v[j]/square)
		}
	}
	return out
}

func norm(x []float64) (n float64) {
	for _, v := range x {
		n = math.Hypot(n, v)
	}
	return n
}

func identity(k int) [][]float64 {
	out := make([][]float64, k)
	for i := range out {
		out[i] = make([]float64, k)
		out[i][i] = 1
	}
	return out
}

func rows(m *mat.Dense) [][]float64 {
	n, _ := m.Dims()
	out := make([][]float64, n)
	for i := range out {
		out[i] = slices.Clone(m.RawRowView(i))
	}
	return out
}

// sums are those of the columns over the rows, and the largest sum of absolute values of a row.
func (c cubic) sums(u []float64) (sums []float64, largest float64) {
	sums = make([]float64, len(c.value[0]))
	row := make([]float64, len(sums))
	for _, v := range u {
		c.evaluate(v, row)
		size := 0.0
		for j, y := range row {
			sums[j] += y
			size += math.Abs(y)
		}
		largest = math.Max(largest, size)
	}
	return sums, largest
}

// evaluate sets the columns at u, beyond the knots by the tangent.
func (c cubic) evaluate(u float64, to []float64) {
	last := len(c.knots) - 1
	j := min(max(sortedPlace(c.knots, u), 0), last-1)
	h := c.knots[j+1] - c.knots[j]
	before, after := c.knots[j+1]-u, u-c.knots[j]
	a0, a1 := before/h, after/h
	c0, c1 := (before*before*before/h-h*before)/6, (after*after*after/h-h*after)/6
	if u < c.knots[0] { // the derivatives of c₋ and c₊ at the first knot
		c0, c1 = -h/3*after, -h/6*after
	} else if u > c.knots[last] { // and at the last one
		beyond := u - c.knots[last]
		c0, c1 = h/6*beyond, h/3*beyond
	}
	for i := range to {
		to[i] = a0*c.value[j][i] + a1*c.value[j+1][i] + c0*c.second[j][i] + c1*c.second[j+1][i]
	}
}

// sortedPlace is the number of knots up to u, less one.
func sortedPlace(knots []float64, u float64) int {
	at, found := slices.BinarySearch(knots, u)
	if found {
		return at
	}
	return at - 1
}

// numbers are what the memory keeps of a spline; cubicOf reads them.
func (c cubic) numbers() []float64 {
	out := slices.Concat([]float64{c.mean, c.sd}, c.knots)
	for _, m := range [][][]float64{c.value, c.second} {
		out = append(out, slices.Concat(m...)...)
	}
	return out
}

func cubicOf(numbers []float64, k int) cubic {
	c := cubic{mean: numbers[0], sd: numbers[1], knots: numbers[2 : 2+k]}
	for i := range k {
		at := 2 + k + i*(k-2)
		c.value = append(c.value, numbers[at:at+k-2])
		c.second = append(c.second, numbers[at+k*(k-2):at+k*(k-2)+k-2])
	}
	return c
}
