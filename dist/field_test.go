package dist_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/internal/sparse"
	"github.com/kelvin-ppl/kelvin/torch"
)

// islands are a triangle with a tail, a pair, and an area alone.
func islands() *dist.Graph {
	return &dist.Graph{Neighbours: [][]int{{1, 2}, {0, 2}, {0, 1, 3}, {2}, {6}, {}, {4}}}
}

// gridGraph is the graph of a grid.
func gridGraph(rows, columns int) *dist.Graph {
	g := &dist.Graph{Neighbours: make([][]int, rows*columns)}
	join := func(i, j int) {
		g.Neighbours[i], g.Neighbours[j] = append(g.Neighbours[i], j), append(g.Neighbours[j], i)
	}
	for i := range rows * columns {
		if (i+1)%columns > 0 {
			join(i, i+1)
		}
		if i+columns < rows*columns {
			join(i, i+columns)
		}
	}
	return g
}

// precise is a field.
type precise interface {
	dist.Distribution
	Precision() (*sparse.Pattern, torch.Tensor, torch.Tensor)
}

// dense is the precision of a field.
func denseOf(t *testing.T, d dist.Distribution) *mat.SymDense {
	p, values, _ := d.(precise).Precision()
	q := mat.NewSymDense(p.N, nil)
	v := values.Values()
	for j := range p.N {
		for k := p.Start[j]; k < p.Start[j+1]; k++ {
			q.SetSym(p.Row[k], j, v[k])
		}
	}
	return q
}

// basis are orthonormal vectors, as columns, that span the support: the images of the axes of unconstrained space.
func basis(t *testing.T, d dist.Distribution) *mat.Dense {
	b, err := bijector.For(d.Support())
	require.NoError(t, err)
	n := int(d.EventShape()[0])
	m := int(b.InverseShape([]int{n})[0])
	out := mat.NewDense(n, m, nil)
	for k := range m {
		e := make([]float64, m)
		e[k] = 1
		y := b.Forward(torch.New(e))
		out.SetCol(k, y.Values())
		require.InDeltaSlice(t, e, b.Inverse(y).Values(), 1e-14)
		require.NoError(t, d.Support().Check(y))
	}
	return out
}

func allFields() map[string]dist.Distribution {
	return map[string]dist.Distribution{
		"ICAR":          gridGraph(3, 4).ICAR(0.7),
		"ICAR, islands": islands().ICAR(0.7),
		"BYM2":          gridGraph(3, 4).BYM2(0.6, 0.3),
		"BYM2, islands": islands().BYM2(0.6, 0.3),
		"CAR":           gridGraph(3, 4).CAR(0.8, 1.3),
		"RandomWalk1":   dist.RandomWalk(1, 7, 0.4),
		"RandomWalk2":   dist.RandomWalk(2, 7, 0.4),
		"Matern":        dist.Matern(4, 5, 2.5, 1.3),
	}
}

// The density is the normal one with the field's precision on the support: with B an orthonormal basis of it,
//
//	log p(B z) = −zᵀ BᵀQB z/2 + (log det BᵀQB − m log 2π)/2
//
// where det leaves eigenvalues of 0 out, as along the line of a random walk of order 2.
func TestFieldsAgainstDense(t *testing.T) {
	for name, d := range allFields() {
		scoped(t, func() {
			q, b := denseOf(t, d), basis(t, d)
			n, m := b.Dims()
			var g mat.Dense
			g.Mul(b.T(), b)
			require.True(t, mat.EqualApprox(&g, identity(m), 1e-14), name)
			g.Product(b.T(), q, b)
			sym := mat.NewSymDense(m, nil)
			for i := range m {
				for j := range i + 1 {
					sym.SetSym(i, j, (g.At(i, j)+g.At(j, i))/2)
				}
			}
			var e mat.EigenSym
			require.True(t, e.Factorize(sym, false))
			logDet, rank := 0.0, 0
			for _, v := range e.Values(nil) {
				if v > 1e-9 {
					logDet += math.Log(v)
					rank++
				}
			}
			want := m
			if name == "RandomWalk2" {
				want--
			}
			require.Equal(t, want, rank, name)
			z := mat.NewVecDense(m, nil)
			for i := range m {
				z.SetVec(i, math.Sin(3*float64(i)+1))
			}
			x := mat.NewVecDense(n, nil)
			x.MulVec(b, z)
			logp := (logDet-float64(rank)*math.Log(2*math.Pi))/2 - mat.Inner(x, q, x)/2
			require.InDelta(t, logp, d.LogProb(torch.New(x.RawVector().Data)).Item(), 1e-9, name)
			if _, _, known := d.(precise).Precision(); known != (torch.Tensor{}) {
				require.InDelta(t, logDet, known.Item(), 1e-9, name)
			}
		})
	}
}

func identity(n int) *mat.DiagDense {
	d := mat.NewDiagDense(n, nil)
	for i := range n {
		d.SetDiag(i, 1)
	}
	return d
}

// Variance and draws are those of B (BᵀQB)⁻¹ Bᵀ: draws within five standard errors of each variance and covariance.
func TestFieldsMoments(t *testing.T) {
	const draws = 20000
	for name, d := range allFields() {
		if name == "RandomWalk2" {
			scoped(t, func() {
				require.True(t, math.IsInf(d.Variance().Values()[0], 1))
				require.PanicsWithError(t, "dist.RandomWalk: order is 2: it is flat along a straight line, and cannot be drawn "+
					"from", func() { d.Sample(torch.NewSource(1, 0)) })
			})
			continue
		}
		scoped(t, func() {
			q, b := denseOf(t, d), basis(t, d)
			n, _ := b.Dims()
			var g, c mat.Dense
			g.Product(b.T(), q, b)
			require.NoError(t, g.Inverse(&g))
			c.Product(b, &g, b.T())
			for i, v := range d.Variance().Values() {
				require.InDelta(t, c.At(i, i), v, 1e-9, "%s %d", name, i)
			}
			x := d.Sample(torch.NewSource(3, 0), draws)
			require.NoError(t, d.Support().Check(x))
			v := x.Values()
			for i := range n {
				for j := range i + 1 {
					sum := 0.0
					for k := range draws {
						sum += v[k*n+i] * v[k*n+j]
					}
					se := math.Sqrt((c.At(i, i)*c.At(j, j) + c.At(i, j)*c.At(i, j)) / draws)
					require.InDelta(t, c.At(i, j), sum/draws, 5*se, "%s %d %d", name, i, j)
				}
			}
		})
	}
}

// Batches of parameters, values of a batch and Expand give the numbers of each alone.
func TestFieldsBatches(t *testing.T) {
	scoped(t, func() {
		scale := torch.New([]float64{0.5, 2}, 2)
		for name, of := range map[string]func(scale any) dist.Distribution{
			"ICAR":   func(s any) dist.Distribution { return islands().ICAR(s) },
			"BYM2":   func(s any) dist.Distribution { return islands().BYM2(s, 0.4) },
			"CAR":    func(s any) dist.Distribution { return gridGraph(2, 3).CAR(0.4, s) },
			"Matern": func(s any) dist.Distribution { return dist.Matern(2, 3, 1.5, s) },
			"walk":   func(s any) dist.Distribution { return dist.RandomWalk(1, 5, s) },
		} {
			both := of(scale)
			x := both.Sample(torch.NewSource(1, 0), 3)
			require.Equal(t, append([]int{3, 2}, both.EventShape()...), x.Shape(), name)
			logp := both.LogProb(x).Values()
			for k, s := range []float64{0.5, 2} {
				for i := range 3 {
					require.InDelta(t, of(s).LogProb(x.At(i, k)).Item(), logp[2*i+k], 1e-12, name)
				}
				require.InDeltaSlice(t, of(s).Variance().Values(), both.Variance().At(k).Values(), 1e-12, name)
			}
			require.Equal(t, []int{4}, of(0.5).Expand(4).LogProb(x.At(0, 0)).Shape(), name)
		}
	})
}

// The geometric mean of the variances of the spatial part is 1 in each connected part (Riebler et al. 2016), and the
// variance of an effect scale², but for the shape of the map.
func TestBYM2Scale(t *testing.T) {
	scoped(t, func() {
		v := islands().BYM2(2, 0.5).Variance().Values()[7:]
		mean := func(at ...int) (sum float64) {
			for _, i := range at {
				sum += math.Log(v[i]) / float64(len(at))
			}
			return sum
		}
		require.InDelta(t, 0, mean(0, 1, 2, 3), 1e-12)
		require.InDelta(t, 0, mean(4, 6), 1e-12)
		require.InDelta(t, 1, v[5], 1e-12)
	})
}

// In the middle of a large grid the field has Matérn's covariance of smoothness 1, to the error of the grid.
func TestMaternCovariance(t *testing.T) {
	scoped(t, func() {
		const size, reach, scale = 81, 14, 1.5
		d := dist.Matern(size, size, reach, scale)
		p, values, _ := d.(precise).Precision()
		f := p.Analyse().Factor(values.Values())
		e := make([]float64, size*size)
		middle := size*size/2 + 0
		e[middle] = 1
		c := f.Solve(e, e)
		require.InDelta(t, d.Variance().Values()[middle], c[middle], 1e-9)
		require.InEpsilon(t, scale*scale, c[middle], 0.05)
		for k := 1; k < 20; k++ {
			x := math.Sqrt(8) / reach * float64(k)
			// K₁ by its integral ∫ exp(−x cosh t) cosh t dt.
			k1, step := 0.0, 1e-3
			for s := step / 2; s < 12; s += step {
				k1 += step * math.Exp(-x*math.Cosh(s)) * math.Cosh(s)
			}
			require.InDelta(t, scale*scale*x*k1, c[middle+k], 0.05*scale*scale, k)
		}
	})
}

func TestGraphErrors(t *testing.T) {
	for want, d := range map[string]dist.Distribution{
		"dist.ICAR: Neighbours[0] is [0]: an area is no neighbour of itself": (&dist.Graph{Neighbours: [][]int{{0},
			{}}}).ICAR(1),
		"dist.BYM2: Neighbours[0] is [1]: area 1 is there, and area 1 does not list area 0: neighbours are so both " +
			"ways": (&dist.Graph{Neighbours: [][]int{{1}, {}}}).BYM2(1, 0.5),
		"dist.CAR: Neighbours[1] is [0 2]: area 2 is not among the 2, which are numbered from 0": (&dist.Graph{
			Neighbours: [][]int{{1}, {0, 2}}}).CAR(0.5, 1),
		"dist.ICAR: Neighbours[0] is [1 1]: area 1 is there twice": (&dist.Graph{Neighbours: [][]int{{1, 1},
			{0}}}).ICAR(1),
		"dist.ICAR: Neighbours is of length 0: at least 2 areas are required":             (&dist.Graph{}).ICAR(1),
		"dist.ICAR: Neighbours is nil: a graph is required: &dist.Graph{Neighbours: ...}": (*dist.Graph)(nil).ICAR(1),
		"dist.CAR: Neighbours[5] is empty: each area must have a neighbour":               islands().CAR(0.5, 1),
		"dist.CAR: alpha is 1: it must be between -1 and 1":                               gridGraph(2, 2).CAR(1, 1),
		"dist.BYM2: rho is 0: it must be between 0 and 1":                                 islands().BYM2(1, 0),
		"dist.ICAR: scale is -1: it must be greater than 0":                               islands().ICAR(-1),
		"dist.RandomWalk: order is 3: it must be 1 or 2":                                  dist.RandomWalk(3, 9, 1),
		"dist.RandomWalk: n is 2: it must be at least 3":                                  dist.RandomWalk(2, 2, 1),
		"dist.Matern: rows is 1: it must be at least 2":                                   dist.Matern(1, 4, 1, 1),
		"dist.Matern: range is 0: it must be greater than 0":                              dist.Matern(2, 4, 0, 1),
	} {
		require.EqualError(t, d.Validate(), want)
	}
	many := gridGraph(65, 65).CAR(0.5, 1)
	require.PanicsWithError(t, "dist.CAR: the density of 4225 elements: it is for at most 4096; ppl.MarginalLaplace "+
		"integrates a larger field out", func() { many.LogProb(torch.New(make([]float64, 65*65))) })
}
