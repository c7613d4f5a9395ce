package ppl

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/internal/sparse"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// sparseLaw is one by its precision Q. Where the sums of groups are 0, as A f = 0 with orthonormal rows, all is on
// those f: a solution x with H becomes x − H⁻¹Aᵀ S⁻¹ A x, S = A H⁻¹ Aᵀ, and det H there is det H det S (Rue and Held
// 2005, section 2.3.3).
type sparseLaw struct {
	n        int
	pattern  *sparse.Pattern
	analysis *sparse.Analysis
	groups   [][]int
	known    bool // the determinant of Q, which may be singular, is a parameter
}

// group finds the groups whose sums are 0.
func (l *sparseLaw) group(s support.Support) {
	switch {
	case s.Kind != support.KindZeroSum:
	case s.Groups == nil:
		l.groups = [][]int{make([]int, l.n)}
		for i := range l.n {
			l.groups[0][i] = i
		}
	default:
		for i, g := range *s.Groups {
			for len(l.groups) <= g {
				l.groups = append(l.groups, nil)
			}
			if g >= 0 {
				l.groups[g] = append(l.groups[g], i)
			}
		}
	}
}

// sums is A x.
func (l *sparseLaw) sums(x []float64) []float64 {
	out := make([]float64, len(l.groups))
	for g, members := range l.groups {
		for _, i := range members {
			out[g] += x[i] / math.Sqrt(float64(len(members)))
		}
	}
	return out
}

type sparseGaussian struct {
	*sparseLaw
	q, loc []float64
	logDet float64
	h      *sparse.Factor
	across [][]float64 // H⁻¹ Aᵀ, a row for each group
	s      mat.Cholesky
	z      []float64 // of H⁻¹ on the pattern
	prior  []float64 // of Q⁻¹, where the determinant of Q is not known
}

func (l *sparseLaw) with(p []float64) gaussian {
	m := len(l.pattern.Row)
	return &sparseGaussian{sparseLaw: l, q: p[:m], loc: p[m : m+l.n], logDet: p[m+l.n]}
}

func (g *sparseGaussian) mean() []float64 { return g.loc }

func (g *sparseGaussian) from(start []float64) (f, a []float64) {
	return start, g.pattern.Times(g.q, plus(start, g.loc, -1))
}

func (g *sparseGaussian) origin(f, _ []float64) []float64 { return f }

func (g *sparseGaussian) factor(w []float64) bool {
	values := append([]float64{}, g.q...)
	for j, v := range w {
		values[g.pattern.Start[j]] += v
	}
	if g.h = g.analysis.Factor(values); g.h == nil {
		return false
	}
	if len(g.groups) == 0 {
		return true
	}
	g.across = nil
	s := mat.NewSymDense(len(g.groups), nil)
	for k, members := range g.groups {
		row := make([]float64, g.n)
		for _, i := range members {
			row[i] = 1 / math.Sqrt(float64(len(members)))
		}
		x := g.h.Solve(row)
		g.across = append(g.across, x)
		for j, v := range g.sums(x)[:k+1] {
			s.SetSym(k, j, v)
		}
	}
	return g.s.Factorize(s)
}

// within takes a vector to A x = 0.
func (g *sparseGaussian) within(x []float64) []float64 {
	if len(g.groups) == 0 {
		return x
	}
	sums := mat.NewVecDense(len(g.groups), g.sums(x))
	if g.s.SolveVecTo(sums, sums) != nil {
		sums.SetVec(0, math.NaN())
	}
	for k, row := range g.across {
		floats.AddScaled(x, -sums.AtVec(k), row)
	}
	return x
}

func (g *sparseGaussian) solve(r []float64) (df, da []float64) {
	df = g.within(g.h.Solve(r))
	return df, g.pattern.Times(g.q, df)
}

func (g *sparseGaussian) finish(bend []float64) (logDet float64, variances []float64, ok bool) {
	w := make([]float64, g.n)
	for i, h := range bend {
		w[i] = -h
	}
	if !g.factor(w) {
		return 0, nil, false
	}
	logDet = (g.logDet - g.h.LogDet()) / 2
	if !g.known {
		own := g.analysis.Factor(g.q)
		if own == nil {
			return 0, nil, false
		}
		logDet += own.LogDet() / 2
		g.prior = own.Inverse()
	}
	g.z = g.h.Inverse()
	if len(g.groups) > 0 {
		logDet -= g.s.LogDet() / 2
		g.less()
	}
	variances = make([]float64, g.n)
	for j := range variances {
		variances[j] = g.z[g.pattern.Start[j]]
	}
	return logDet, variances, true
}

// less takes H⁻¹Aᵀ S⁻¹ A H⁻¹ from the elements of H⁻¹.
func (g *sparseGaussian) less() {
	c := len(g.groups)
	inverse := mat.NewSymDense(c, nil)
	if g.s.InverseTo(inverse) != nil {
		inverse.SetSym(0, 0, math.NaN())
	}
	scaled := make([][]float64, c)
	for k := range scaled {
		scaled[k] = make([]float64, g.n)
		for m, row := range g.across {
			floats.AddScaled(scaled[k], inverse.At(k, m), row)
		}
	}
	for j := range g.n {
		for t := g.pattern.Start[j]; t < g.pattern.Start[j+1]; t++ {
			for k, row := range g.across {
				g.z[t] -= row[g.pattern.Row[t]] * scaled[k][j]
			}
		}
	}
}

// adjoint: with d = f − mean and q = H⁻¹ s, of Q they are (Q⁻¹ − H⁻¹ − d dᵀ)/2 − q dᵀ, twice that off the diagonal, or
// without Q⁻¹ where the determinant is a parameter, and of the mean Q (d + q).
func (g *sparseGaussian) adjoint(f, a, s []float64) (parameters, weights []float64) {
	d := plus(f, g.loc, -1)
	q := g.within(g.h.Solve(s))
	parameters = make([]float64, len(g.q), len(g.q)+g.n+1)
	for j := range g.n {
		for t := g.pattern.Start[j]; t < g.pattern.Start[j+1]; t++ {
			i := g.pattern.Row[t]
			v := -(g.z[t] + d[i]*d[j] + q[i]*d[j] + q[j]*d[i]) / 2
			if !g.known {
				v += g.prior[t] / 2
			}
			if i != j {
				v *= 2
			}
			parameters[t] = v
		}
	}
	parameters = append(parameters, plus(a, g.pattern.Times(g.q, q), 1)...)
	return append(parameters, 0.5), q
}

func (g *sparseGaussian) draw(normal func() float64) []float64 {
	z := make([]float64, g.n)
	for i := range z {
		z[i] = normal()
	}
	return g.within(g.h.Draw(z))
}
