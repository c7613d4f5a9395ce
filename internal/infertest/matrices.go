package infertest

import (
	"math/rand"

	"gonum.org/v1/gonum/mat"
)

// Normals are n standard normal numbers of a seed.
func Normals(seed int, n int) []float64 {
	r := rand.New(rand.NewSource(int64(seed)))
	v := make([]float64, n)
	for i := range v {
		v[i] = r.NormFloat64()
	}
	return v
}

// Inverse is the inverse of a symmetric positive definite matrix.
func Inverse(m mat.Symmetric) *mat.SymDense {
	var c mat.Cholesky
	if !c.Factorize(m) {
		panic("not positive definite")
	}
	var out mat.SymDense
	if err := c.InverseTo(&out); err != nil {
		panic(err)
	}
	return &out
}

// LogDet is log |m|.
func LogDet(m mat.Symmetric) float64 {
	var c mat.Cholesky
	if !c.Factorize(m) {
		panic("not positive definite")
	}
	return c.LogDet()
}

// Plus is a + s·b.
func Plus(a mat.Symmetric, s float64, b mat.Symmetric) *mat.SymDense {
	n := a.SymmetricDim()
	out := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			out.SetSym(i, j, a.At(i, j)+s*b.At(i, j))
		}
	}
	return out
}

// Times is m v.
func Times(m mat.Matrix, v []float64) []float64 {
	rows, _ := m.Dims()
	out := mat.NewVecDense(rows, nil)
	out.MulVec(m, mat.NewVecDense(len(v), v))
	return out.RawVector().Data
}

// Entries are all elements of a matrix, row by row.
func Entries(m mat.Matrix) []float64 {
	r, c := m.Dims()
	var out []float64
	for i := range r {
		for j := range c {
			out = append(out, m.At(i, j))
		}
	}
	return out
}

// Identity is the identity matrix times s.
func Identity(n int, s float64) *mat.SymDense {
	m := mat.NewSymDense(n, nil)
	for i := range n {
		m.SetSym(i, i, s)
	}
	return m
}
