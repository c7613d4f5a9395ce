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

// sums puts A x into out.
func (l *sparseLaw) sums(out, x []float64) {
	for g, members := range l.groups {
		sum := 0.0
		for _, i := range members {
			sum += x[i]
		}
		out[g] = sum / math.Sqrt(float64(len(members)))
	}
}

type sparseGaussian struct {
	*sparseLaw
	q, loc []float64
	logDet float64
	h, own *sparse.Factor // of H, and of Q where its determinant is not known
	values []float64      // of H
	z      []float64      // of H⁻¹ on the pattern
	prior  []float64      // of Q⁻¹ there, where the determinant of Q is not known
	x      []float64      // scratch

	across [][]float64 // H⁻¹ Aᵀ, a row for each group
	total  []float64   // A x
	s      mat.Cholesky
}

func (l *sparseLaw) room() gaussian {
	m := len(l.pattern.Row)
	g := &sparseGaussian{sparseLaw: l, h: l.analysis.Room(), values: make([]float64, m), z: make([]float64, m),
		x: make([]float64, l.n), across: make([][]float64, len(l.groups)), total: make([]float64, len(l.groups))}
	for k := range g.across {
		g.across[k] = make([]float64, l.n)
	}
	if !l.known {
		g.own, g.prior = l.analysis.Room(), make([]float64, m)
	}
	return g
}

func (g *sparseGaussian) set(p []float64) {
	m := len(g.pattern.Row)
	g.q, g.loc, g.logDet = p[:m], p[m:m+g.n], p[m+g.n]
}

func (g *sparseGaussian) mean() []float64 { return g.loc }

func (g *sparseGaussian) from(f, a, start []float64) {
	copy(f, start)
	floats.SubTo(g.x, start, g.loc)
	g.pattern.Times(a, g.q, g.x)
}

func (g *sparseGaussian) origin(f, _ []float64) []float64 { return f }

func (g *sparseGaussian) factor(w []float64) bool {
	copy(g.values, g.q)
	for j, v := range w {
		g.values[g.pattern.Start[j]] += v
	}
	if !g.h.Set(g.values) {
		return false
	}
	if len(g.groups) == 0 {
		return true
	}
	s := mat.NewSymDense(len(g.groups), nil)
	for k, members := range g.groups {
		row := g.across[k]
		clear(row)
		for _, i := range members {
			row[i] = 1 / math.Sqrt(float64(len(members)))
		}
		g.h.Solve(row, row)
		g.sums(g.total, row)
		for j, v := range g.total[:k+1] {
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
	g.sums(g.total, x)
	sums := mat.NewVecDense(len(g.groups), g.total)
	if g.s.SolveVecTo(sums, sums) != nil {
		g.total[0] = math.NaN()
	}
	for k, row := range g.across {
		floats.AddScaled(x, -g.total[k], row)
	}
	return x
}

func (g *sparseGaussian) solve(df, da, r []float64) {
	g.within(g.h.Solve(df, r))
	g.pattern.Times(da, g.q, df)
}

func (g *sparseGaussian) finish(bend, variances []float64) (logDet float64, ok bool) {
	for i, h := range bend {
		g.x[i] = -h
	}
	if !g.factor(g.x) {
		return 0, false
	}
	logDet = (g.logDet - g.h.LogDet()) / 2
	if len(g.groups) > 0 {
		logDet -= g.s.LogDet() / 2
	}
	if !g.known {
		if !g.own.Set(g.q) {
			return 0, false
		}
		logDet += g.own.LogDet() / 2
		g.own.Inverse(g.prior)
	}
	g.h.Inverse(g.z)
	if len(g.groups) > 0 {
		g.less()
	}
	for j := range variances {
		variances[j] = g.z[g.pattern.Start[j]]
	}
	return logDet, true
}

// less takes H⁻¹Aᵀ S⁻¹ A H⁻¹ from the elements of H⁻¹.
func (g *sparseGaussian) less() {
	inverse := mat.NewSymDense(len(g.groups), nil)
	if g.s.InverseTo(inverse) != nil {
		inverse.SetSym(0, 0, math.NaN())
	}
	scaled := g.x
	for k, row := range g.across {
		clear(scaled)
		for m, other := range g.across {
			floats.AddScaled(scaled, inverse.At(k, m), other)
		}
		for j, v := range scaled {
			from, to := g.pattern.Start[j], g.pattern.Start[j+1]
			for t, i := range g.pattern.Row[from:to] {
				g.z[from+t] -= row[i] * v
			}
		}
	}
}

// adjoint: with d = f − mean and q = H⁻¹ s, of Q they are (Q⁻¹ − H⁻¹ − d dᵀ)/2 − q dᵀ, twice that off the diagonal, or
// without Q⁻¹ where the determinant is a parameter, and of the mean Q (d + q).
func (g *sparseGaussian) adjoint(parameters, along, f, a, s []float64) {
	d, q := g.x, along
	g.within(g.h.Solve(q, s))
	floats.SubTo(d, f, g.loc)
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
	of := parameters[len(g.q) : len(g.q)+g.n]
	g.pattern.Times(of, g.q, q)
	floats.Add(of, a)
	parameters[len(g.q)+g.n] = 0.5
}

func (g *sparseGaussian) draw(normal func() float64) []float64 {
	z := make([]float64, g.n)
	for i := range z {
		z[i] = normal()
	}
	return g.within(g.h.Draw(z))
}
