package sparse

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
)

// grid is the pattern of a grid of cells, each beside its neighbours up to so many steps away.
func grid(rows, columns, reach int) *Pattern {
	var at [][2]int
	for i := range rows * columns {
		for d := 1; d <= reach; d++ {
			if i%columns+d < columns {
				at = append(at, [2]int{i, i + d})
			}
			if i+d*columns < rows*columns {
				at = append(at, [2]int{i + d*columns, i})
			}
		}
	}
	return NewPattern(rows*columns, at)
}

// band is the pattern of a band matrix.
func band(n, width int) *Pattern {
	var at [][2]int
	for i := range n {
		for d := 1; d <= width && i+d < n; d++ {
			at = append(at, [2]int{i, i + d})
		}
	}
	return NewPattern(n, at)
}

// random is the pattern of random elements, as of a graph without order.
func random(n, many int, source *rand.Rand) *Pattern {
	var at [][2]int
	for range many {
		at = append(at, [2]int{source.IntN(n), source.IntN(n)})
	}
	return NewPattern(n, at)
}

// dominant are values whose diagonal is larger than the others of its row together.
func (p *Pattern) dominant(source *rand.Rand) []float64 {
	values, sums := make([]float64, len(p.Row)), make([]float64, p.N)
	for j := range p.N {
		for k := p.Start[j] + 1; k < p.Start[j+1]; k++ {
			values[k] = source.NormFloat64()
			sums[j] += math.Abs(values[k])
			sums[p.Row[k]] += math.Abs(values[k])
		}
	}
	for j, s := range sums {
		values[p.Start[j]] = s*1.01 + 0.1
	}
	return values
}

func (p *Pattern) dense(values []float64) *mat.SymDense {
	a := mat.NewSymDense(p.N, nil)
	for j := range p.N {
		for k := p.Start[j]; k < p.Start[j+1]; k++ {
			a.SetSym(p.Row[k], j, values[k])
		}
	}
	return a
}

// Determinant, solutions, inverse and draws are those of the dense matrix, in either order.
func TestAgainstDense(t *testing.T) {
	source := rand.New(rand.NewPCG(1, 2))
	for name, p := range map[string]*Pattern{"grid": grid(12, 17, 1), "wide grid": grid(9, 11, 2), "band": band(150, 10),
		"graph": random(120, 200, source), "diagonal": NewPattern(5, nil), "one": NewPattern(1, nil),
		"arrow": NewPattern(40, arrow(40)), "complete": random(12, 1000, source)} {
		values := p.dominant(source)
		a := p.dense(values)
		var want mat.Cholesky
		require.True(t, want.Factorize(a))
		inverse := mat.NewSymDense(p.N, nil)
		require.NoError(t, want.InverseTo(inverse))
		natural := make([]int, p.N)
		for i := range natural {
			natural[i] = i
		}
		for _, analysis := range []*Analysis{p.Analyse(), p.analyse(natural).fill(),
			p.analyse(p.minimumDegree()).fill()} {
			f := analysis.Factor(values)
			require.NotNil(t, f, name)
			require.InDelta(t, want.LogDet(), f.LogDet(), 1e-10*float64(p.N), name)
			got := f.Inverse(make([]float64, len(p.Row)))
			for j := range p.N {
				for k := p.Start[j]; k < p.Start[j+1]; k++ {
					require.InDelta(t, inverse.At(p.Row[k], j), got[k], 1e-10*inverse.At(j, j), "%s %d %d", name, p.Row[k], j)
				}
				e := make([]float64, p.N)
				e[j] = 1
				x := f.Solve(make([]float64, p.N), e)
				for i, v := range x {
					require.InDelta(t, inverse.At(i, j), v, 1e-10*inverse.At(j, j), name)
				}
				for i, v := range p.Times(make([]float64, p.N), values, x) {
					require.InDelta(t, e[i], v, 1e-10, name)
				}
			}
			covariance := mat.NewDense(p.N, p.N, nil) // of the draws, from those of each axis
			for j := range p.N {
				e := make([]float64, p.N)
				e[j] = 1
				x := mat.NewVecDense(p.N, f.Draw(e))
				covariance.RankOne(covariance, 1, x, x)
			}
			require.True(t, mat.EqualApprox(covariance, inverse, 1e-10), name)
		}
	}
}

// arrow are the elements of a matrix that fills up when its first row is eliminated first.
func arrow(n int) (at [][2]int) {
	for i := 1; i < n; i++ {
		at = append(at, [2]int{0, i})
	}
	return at
}

// Minimum degree leaves an arrow without fill, and fills a grid of k x k by far less than the natural order's k³.
func TestOrder(t *testing.T) {
	p := NewPattern(50, arrow(50))
	require.Equal(t, 49, p.Analyse().start[50])
	p = grid(60, 60, 1)
	require.Less(t, p.Analyse().start[3600], 60*60*60/3)
}

func TestIndefinite(t *testing.T) {
	p := NewPattern(2, [][2]int{{0, 1}})
	require.Nil(t, p.Analyse().Factor([]float64{1, 2, 1}))
	require.Nil(t, p.Analyse().Factor([]float64{1, math.NaN(), 1}))
}

func TestPatternPanics(t *testing.T) {
	require.Panics(t, func() { NewPattern(2, [][2]int{{0, 2}}) })
	require.Equal(t, -1, NewPattern(3, nil).At(0, 2))
}

func BenchmarkFactor(b *testing.B) {
	source := rand.New(rand.NewPCG(1, 2))
	for name, p := range map[string]*Pattern{"band of 100000": band(100000, 10), "grid of 100x100": grid(100, 100, 1)} {
		values := p.dominant(source)
		var a *Analysis
		b.Run("analyse/"+name, func(b *testing.B) {
			for b.Loop() {
				a = p.Analyse()
			}
		})
		f := a.Factor(values)
		b.Run(fmt.Sprintf("factor/%s/fill=%d", name, len(f.l)), func(b *testing.B) {
			for b.Loop() {
				f.Set(values)
			}
		})
		inverse := make([]float64, len(p.Row))
		b.Run("inverse/"+name, func(b *testing.B) {
			for b.Loop() {
				f.Inverse(inverse)
			}
		})
	}
}
