package dist_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distmat"
	"gonum.org/v1/gonum/stat/distmv"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/torch"
)

// vectorCase is a family of vectors or matrices. Its parameters are made from raw numbers, so that a covariance stays
// symmetric when they are moved one by one.
type vectorCase struct {
	name  string
	raw   [][]int // shapes of the raw parameters
	event []int
	make  func(p []*ts.Tensor) dist.Distribution
	// law is an independent log density.
	law func(p [][]float64, x []float64) float64
	// x takes standard normal numbers to a value inside the support.
	x func(z []float64) []float64
	// covariance is that of the elements of a draw; nil where only mean and variance are checked.
	covariance func(p [][]float64) [][]float64
	smooth     bool // draws are smooth in the parameters for fixed random numbers
}

const vectorN = 3

// vectorSPD is A·Aᵀ + I of a raw matrix.
func vectorSPD(a *ts.Tensor) *ts.Tensor {
	return a.MustMatmul(a.MustTranspose(-2, -1, false), false).MustAdd(ts.MustEye(vectorN, a.DType(), gotch.CPU), false)
}

// vectorLower is the lower triangle of a raw matrix, with the diagonal e to its power.
func vectorLower(a *ts.Tensor) *ts.Tensor {
	return a.MustTril(-1, false).
		MustAdd(a.MustDiagonal(0, -2, -1, false).MustExp(false).MustDiagEmbed(0, -2, -1, false), false)
}

func denseSPD(a []float64) *mat.SymDense {
	m := mat.NewDense(vectorN, vectorN, a)
	s := mat.NewSymDense(vectorN, nil)
	s.SymOuterK(1, m)
	for i := 0; i < vectorN; i++ {
		s.SetSym(i, i, s.At(i, i)+1)
	}
	return s
}

func denseLower(a []float64) *mat.Dense {
	m := mat.NewDense(vectorN, vectorN, nil)
	for i := 0; i < vectorN; i++ {
		for j := 0; j < i; j++ {
			m.Set(i, j, a[i*vectorN+j])
		}
		m.Set(i, i, math.Exp(a[i*vectorN+i]))
	}
	return m
}

// vectorCov is the covariance that raw numbers stand for.
func vectorCov(kind string, p [][]float64) *mat.SymDense {
	c := mat.NewSymDense(vectorN, nil)
	switch kind {
	case "covariance":
		return denseSPD(p[1])
	case "precision":
		var inv mat.Dense
		if err := inv.Inverse(denseSPD(p[1])); err != nil {
			panic(err)
		}
		for i := 0; i < vectorN; i++ {
			for j := 0; j <= i; j++ {
				c.SetSym(i, j, inv.At(i, j))
			}
		}
	case "cholesky":
		c.SymOuterK(1, denseLower(p[1]))
	case "low rank":
		c.SymOuterK(1, mat.NewDense(vectorN, 2, p[1]))
		for i := 0; i < vectorN; i++ {
			c.SetSym(i, i, c.At(i, i)+math.Exp(p[2][i]))
		}
	case "walk":
		for i := 0; i < vectorN; i++ {
			for j := 0; j <= i; j++ {
				c.SetSym(i, j, math.Exp(2*p[0][0])*float64(j+1))
			}
		}
	}
	return c
}

func vectorNormalCase(name, kind string, raw [][]int, make func(p []*ts.Tensor) dist.Distribution) vectorCase {
	return vectorCase{
		name: name, raw: raw, event: []int{vectorN}, make: make, smooth: true,
		law: func(p [][]float64, x []float64) float64 {
			loc := p[0]
			if kind == "walk" {
				loc = []float64{0, 0, 0}
			}
			d, ok := distmv.NewNormal(loc, vectorCov(kind, p), nil)
			if !ok {
				panic("not positive definite")
			}
			return d.LogProb(x)
		},
		x: func(z []float64) []float64 { return z },
		covariance: func(p [][]float64) [][]float64 {
			c := vectorCov(kind, p)
			out := [][]float64{}
			for i := 0; i < vectorN; i++ {
				out = append(out, []float64{c.At(i, 0), c.At(i, 1), c.At(i, 2)})
			}
			return out
		},
	}
}

// vectorExp takes raw numbers to positive ones.
func vectorExp(t *ts.Tensor) *ts.Tensor { return t.MustExp(false) }

// matrixX takes six numbers to a Cholesky factor of a 4 x 4 correlation matrix, by the recursion of its rows.
func matrixX(z []float64) []float64 {
	x := make([]float64, 16)
	at := 0
	for i := 0; i < 4; i++ {
		left := 1.0
		for j := 0; j < i; j++ {
			x[4*i+j] = math.Tanh(z[at]) * math.Sqrt(left)
			left -= x[4*i+j] * x[4*i+j]
			at++
		}
		x[5*i] = math.Sqrt(left)
	}
	return x
}

// choleskyX takes six numbers to a lower-triangular matrix with positive diagonal.
func choleskyX(z []float64) []float64 {
	return []float64{math.Exp(z[0]), 0, 0, z[1], math.Exp(z[2]), 0, z[3], z[4], math.Exp(z[5])}
}

// factorLaw is the log density of the factor K of X = K·Kᵀ from that of X: dX/dK is 2ⁿ ∏ Kᵢᵢⁿ⁻ⁱ⁺¹, i from 1.
func factorLaw(k []float64, law func(x *mat.SymDense) float64) float64 {
	l := mat.NewDense(vectorN, vectorN, k)
	x := mat.NewSymDense(vectorN, nil)
	x.SymOuterK(1, l)
	logp := law(x) + vectorN*math.Ln2
	for i := range vectorN {
		logp += float64(vectorN-i) * math.Log(l.At(i, i))
	}
	return logp
}

// inverseWishartLaw is the textbook density, with determinants and inverses.
func inverseWishartLaw(df float64, psi, x *mat.SymDense) float64 {
	const n = vectorN
	var inverse, product mat.Dense
	if err := inverse.Inverse(x); err != nil {
		panic(err)
	}
	product.Mul(psi, &inverse)
	gamma := n * (n - 1) / 4.0 * math.Log(math.Pi)
	for i := range n {
		g, _ := math.Lgamma((df - float64(i)) / 2)
		gamma += g
	}
	return df/2*math.Log(mat.Det(psi)) - (df+n+1)/2*math.Log(mat.Det(x)) - mat.Trace(&product)/2 -
		df*n/2*math.Ln2 - gamma
}

var vectorCases = []vectorCase{
	vectorNormalCase("MultivariateNormal", "covariance", [][]int{{3}, {3, 3}}, func(p []*ts.Tensor) dist.Distribution {
		return dist.MultivariateNormal(p[0], vectorSPD(p[1]))
	}),
	vectorNormalCase(
		"MultivariateNormalPrecision",
		"precision",
		[][]int{{3}, {3, 3}},
		func(p []*ts.Tensor) dist.Distribution {
			return dist.MultivariateNormalPrecision(p[0], vectorSPD(p[1]))
		},
	),
	vectorNormalCase(
		"MultivariateNormalCholesky",
		"cholesky",
		[][]int{{3}, {3, 3}},
		func(p []*ts.Tensor) dist.Distribution {
			return dist.MultivariateNormalCholesky(p[0], vectorLower(p[1]))
		},
	),
	vectorNormalCase(
		"LowRankMultivariateNormal",
		"low rank",
		[][]int{{3}, {3, 2}, {3}},
		func(p []*ts.Tensor) dist.Distribution {
			return dist.LowRankMultivariateNormal(p[0], p[1], vectorExp(p[2]))
		},
	),
	vectorNormalCase("GaussianRandomWalk", "walk", [][]int{{}}, func(p []*ts.Tensor) dist.Distribution {
		return dist.GaussianRandomWalk(3, vectorExp(p[0]))
	}),
	{
		name: "Dirichlet", raw: [][]int{{4}}, event: []int{4},
		make: func(p []*ts.Tensor) dist.Distribution { return dist.Dirichlet(vectorExp(p[0])) },
		law: func(p [][]float64, x []float64) float64 {
			alpha := make([]float64, 4)
			for i, v := range p[0] {
				alpha[i] = math.Exp(v)
			}
			return distmv.NewDirichlet(alpha, nil).LogProb(x)
		},
		x: func(z []float64) []float64 {
			x, sum := make([]float64, 4), 0.0
			for i := range x {
				x[i] = math.Exp(z[i])
				sum += x[i]
			}
			for i := range x {
				x[i] /= sum
			}
			return x
		},
		covariance: func(p [][]float64) (out [][]float64) {
			total := 0.0
			for _, v := range p[0] {
				total += math.Exp(v)
			}
			for i, v := range p[0] {
				out = append(out, make([]float64, 4))
				for j, w := range p[0] {
					a, b := math.Exp(v)/total, math.Exp(w)/total
					out[i][j] = -a * b / (total + 1)
					if i == j {
						out[i][j] += a / (total + 1)
					}
				}
			}
			return out
		},
	},
	{
		name: "LKJCholesky", raw: [][]int{{}}, event: []int{4, 4},
		make: func(p []*ts.Tensor) dist.Distribution { return dist.LKJCholesky(4, vectorExp(p[0])) },
		// Lewandowski, Kurowicka, Joe (2009), section 3.3: the density of R is c⁻¹·det(R)^(eta−1), with c by their equation
		// 16 as a product of beta functions, and L's has the Jacobian ∏ Lᵢᵢ^(K−i) (from R = L·Lᵀ).
		law: func(p [][]float64, x []float64) float64 {
			const k = 4
			eta := math.Exp(p[0][0])
			logc := 0.0
			for i := 1; i < k; i++ {
				b := eta + float64(k-i-1)/2
				logc += float64(k-i) * (float64(2*eta-2+float64(k-i))*math.Ln2 + mathext.Lbeta(b, b))
			}
			l := -logc
			for i := 2; i <= k; i++ {
				l += (float64(k-i) + 2*(eta-1)) * math.Log(x[5*(i-1)])
			}
			return l
		},
		x: matrixX,
	},
	{
		name: "WishartCholesky", raw: [][]int{{}, {3, 3}}, event: []int{3, 3},
		make: func(p []*ts.Tensor) dist.Distribution {
			return dist.WishartCholesky(torch.Of(vectorExp(p[0])).Add(2), vectorLower(p[1]))
		},
		law: func(p [][]float64, k []float64) float64 {
			w, ok := distmat.NewWishart(vectorCov("cholesky", [][]float64{nil, p[1]}), math.Exp(p[0][0])+2, nil)
			if !ok {
				panic("not positive definite")
			}
			return factorLaw(k, func(x *mat.SymDense) float64 { return w.LogProbSym(x) })
		},
		x: choleskyX,
	},
	{
		name: "InverseWishartCholesky", raw: [][]int{{}, {3, 3}}, event: []int{3, 3},
		make: func(p []*ts.Tensor) dist.Distribution { // the error of a variance needs fourth moments
			return dist.InverseWishartCholesky(torch.Of(vectorExp(p[0])).Add(12), vectorLower(p[1]))
		},
		law: func(p [][]float64, k []float64) float64 {
			psi := vectorCov("cholesky", [][]float64{nil, p[1]})
			return factorLaw(k, func(x *mat.SymDense) float64 {
				return inverseWishartLaw(math.Exp(p[0][0])+12, psi, x)
			})
		},
		x: choleskyX,
	},
	{
		name: "ZeroSumNormal", raw: [][]int{{}}, event: []int{3}, smooth: true,
		make: func(p []*ts.Tensor) dist.Distribution { return dist.ZeroSumNormal(3, vectorExp(p[0])) },
		// The first two elements are a normal vector. A step in them moves x by √3 times its area.
		law: func(p [][]float64, x []float64) float64 {
			v := math.Exp(2*p[0][0]) / 3
			d, ok := distmv.NewNormal([]float64{0, 0}, mat.NewSymDense(2, []float64{2 * v, -v, -v, 2 * v}), nil)
			if !ok {
				panic("not positive definite")
			}
			return d.LogProb(x[:2]) - math.Log(3)/2
		},
		x: func(z []float64) []float64 {
			m := (z[0] + z[1] + z[2]) / 3
			return []float64{z[0] - m, z[1] - m, z[2] - m}
		},
		covariance: func(p [][]float64) [][]float64 {
			v := math.Exp(2*p[0][0]) / 3
			return [][]float64{{2 * v, -v, -v}, {-v, 2 * v, -v}, {-v, -v, 2 * v}}
		},
	},
	{
		name: "MultivariateStudentT", raw: [][]int{{}, {3}, {3, 3}}, event: []int{3},
		make: func(p []*ts.Tensor) dist.Distribution {
			return dist.MultivariateStudentT(torch.Of(vectorExp(p[0])).Add(9), p[1], vectorLower(p[2]))
		},
		law: func(p [][]float64, x []float64) float64 {
			d, ok := distmv.NewStudentsT(p[1], vectorCov("cholesky", p[1:]), math.Exp(p[0][0])+9, nil)
			if !ok {
				panic("not positive definite")
			}
			return d.LogProb(x)
		},
		x: func(z []float64) []float64 { return z },
		covariance: func(p [][]float64) (out [][]float64) {
			c, df := vectorCov("cholesky", p[1:]), math.Exp(p[0][0])+9
			c.ScaleSym(df/(df-2), c)
			for i := range vectorN {
				out = append(out, []float64{c.At(i, 0), c.At(i, 1), c.At(i, 2)})
			}
			return out
		},
	},
}

func vectorNormals(rng *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = rng.NormFloat64()
	}
	return out
}

func vectorNumel(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}

// random is one set of raw parameters.
func (c vectorCase) random(rng *rand.Rand) (p [][]float64) {
	for _, s := range c.raw {
		p = append(p, vectorNormals(rng, vectorNumel(s)))
	}
	return p
}

func vectorTensor(data []float64, shape ...int) *ts.Tensor {
	return torch.New(data, append([]int{}, shape...)...).T()
}

func vectorFloats(t *ts.Tensor) []float64 { return torch.Must(torch.ToSlice[float64](torch.Of(t))) }
func vectorShape(t *ts.Tensor) []int      { return torch.Of(t).Shape() }

func (c vectorCase) tensors(p [][]float64) (out []*ts.Tensor) {
	for i, s := range c.raw {
		out = append(out, vectorTensor(p[i], s...))
	}
	return out
}

// unpack takes a flat vector apart: raw parameters, then a value.
func (c vectorCase) unpack(flat *ts.Tensor) (p []*ts.Tensor, x *ts.Tensor) {
	at := 0
	take := func(shape []int) *ts.Tensor {
		n := vectorNumel(shape)
		at += n
		return flat.MustNarrow(-1, int64(at-n), int64(n), false).MustReshape(torch.Int64s(shape), false)
	}
	for _, s := range c.raw {
		p = append(p, take(s))
	}
	return p, take(c.event)
}

// flat is a set of raw parameters and a value in one vector.
func (c vectorCase) flat(p [][]float64, x []float64) (out []float64) {
	for _, v := range p {
		out = append(out, v...)
	}
	return append(out, x...)
}

func (c vectorCase) logp(flat torch.Tensor) torch.Tensor {
	p, x := c.unpack(flat.T())
	return c.make(p).LogProb(torch.Of(x))
}

func (c vectorCase) value(rng *rand.Rand) []float64 {
	return c.x(vectorNormals(rng, max(6, vectorNumel(c.event))))[:vectorNumel(c.event)]
}

func eachVector(t *testing.T, f func(t *testing.T, c vectorCase, rng *rand.Rand)) {
	for i, c := range vectorCases {
		t.Run(c.name, func(t *testing.T) {
			require.NoError(t, torch.Do(func(*torch.Scope) error {
				f(t, c, rand.New(rand.NewPCG(uint64(i), 3)))
				return nil
			}))
		})
	}
}

func vectorNear(t *testing.T, want, got []float64, tol float64, what ...any) {
	t.Helper()
	require.Len(t, got, len(want), what...)
	for i := range want {
		ok := want[i] == got[i] || math.Abs(want[i]-got[i]) <= tol*max(1, math.Abs(want[i]))
		require.Truef(t, ok, "%s: element %d: want %.17g, got %.17g", fmt.Sprint(what...), i, want[i], got[i])
	}
}

// vectorSlope is the gradient of a function of a vector by differences of fourth order.
func vectorSlope(f func(x []float64) float64, x []float64) []float64 {
	const h = 1e-3
	out := make([]float64, len(x))
	for j := range x {
		at := func(by float64) float64 {
			y := slices.Clone(x)
			y[j] += by * h
			return f(y)
		}
		out[j] = (at(-2) - 8*at(-1) + 8*at(1) - at(2)) / (12 * h)
	}
	return out
}

func TestVectorLogProb(t *testing.T) {
	eachVector(t, func(t *testing.T, c vectorCase, rng *rand.Rand) {
		for range 20 {
			p, x := c.random(rng), c.value(rng)
			d := c.make(c.tensors(p))
			got := d.LogProb(torch.Of(vectorTensor(x, c.event...))).T()
			require.Empty(t, vectorShape(got))
			vectorNear(t, []float64{c.law(p, x)}, vectorFloats(got), 1e-12)
			require.NoError(t, d.Support().Check(vectorTensor(x, c.event...)))
			require.NoError(t, d.Validate())
		}
	})
}

func TestVectorGradients(t *testing.T) {
	eachVector(t, func(t *testing.T, c vectorCase, rng *rand.Rand) {
		for range 3 {
			p, x := c.random(rng), c.value(rng)
			if c.name == "Dirichlet" {
				for i := range x { // differences need room to the edge
					x[i] = 0.2 + 0.2*x[i]
				}
			}
			flat := c.flat(p, x)
			_, grad, err := torch.ValueAndGrad(c.logp, torch.Of(vectorTensor(flat, len(flat))))
			require.NoError(t, err)
			want := vectorSlope(func(v []float64) (out float64) {
				torch.Must(0, torch.Do(func(*torch.Scope) error {
					out = vectorFloats(c.logp(torch.Of(vectorTensor(v, len(v)))).T())[0]
					return nil
				}))
				return out
			}, flat)
			vectorNear(t, want, vectorFloats(grad.T()), 1e-8)
		}
	})
}

// LogProb and Sample over a leading axis are those of the loop, values and gradients.
func TestVectorVmap(t *testing.T) {
	const k = 4
	eachVector(t, func(t *testing.T, c vectorCase, rng *rand.Rand) {
		var rows []float64
		var each [][]float64
		for range k {
			each = append(each, c.flat(c.random(rng), c.value(rng)))
			rows = append(rows, each[len(each)-1]...)
		}
		n := len(each[0])
		values, grads, err := torch.VmapValueAndGrad(c.logp, torch.Of(vectorTensor(rows, k, n)))
		require.NoError(t, err)
		for i, row := range each {
			v, g, err := torch.ValueAndGrad(c.logp, torch.Of(vectorTensor(row, n)))
			require.NoError(t, err)
			vectorNear(t, vectorFloats(v.T()), vectorFloats(values.T())[i:i+1], 1e-13)
			vectorNear(t, vectorFloats(g.T()), vectorFloats(grads.T())[i*n:(i+1)*n], 1e-11)
		}

		draw := func(flat *ts.Tensor, src *dist.Source) *ts.Tensor {
			p, _ := c.unpack(flat)
			return c.make(p).Sample(src, 2).T()
		}
		weights := vectorTensor(vectorNormals(rng, 2*vectorNumel(c.event)), append([]int{2}, c.event...)...)
		slope := func(y *ts.Tensor, leaf *ts.Tensor) []float64 {
			total := y.MustMul(weights, false).MustSum(gotch.Double, false)
			return vectorFloats(
				torch.Must(torch.Grad([]torch.Tensor{torch.Of(total)}, []torch.Tensor{torch.Of(leaf)},
					&torch.GradOptions{KeepGraph: true}))[0].T(),
			)
		}
		leaf := torch.Must(torch.Leaf(torch.Of(vectorTensor(rows, k, n))))
		streams := torch.NewStreams(7, k)
		mapped, err := torch.VmapSources(func(in []torch.Tensor, src *torch.Source) ([]torch.Tensor, error) {
			return []torch.Tensor{torch.Of(draw(in[0].T(), src))}, nil
		}, []torch.Tensor{leaf}, &streams, nil)
		require.NoError(t, err)
		all := slope(mapped[0].T(), leaf.T())
		for i, row := range each {
			one := torch.Must(torch.Leaf(torch.Of(vectorTensor(row, n))))
			want := draw(one.T(), torch.NewSource(7, uint64(i)))
			got := mapped[0].T().MustSelect(0, int64(i), false)
			require.Equal(t, vectorShape(want), vectorShape(got))
			vectorNear(t, vectorFloats(want), vectorFloats(got), 1e-13)
			vectorNear(t, slope(want, one.T()), all[i*n:(i+1)*n], 1e-11)
		}
	})
}

// Mean, variance and covariance of the draws are those of Mean, Variance and the law, within four standard errors.
func TestVectorSamples(t *testing.T) {
	const n = 20000
	eachVector(t, func(t *testing.T, c vectorCase, rng *rand.Rand) {
		p := c.random(rng)
		d := c.make(c.tensors(p))
		draws := d.Sample(torch.NewSource(1, 0), n).T()
		require.Equal(t, append([]int{n}, c.event...), vectorShape(draws))
		require.NoError(t, d.Support().Check(draws))
		x := vectorFloats(draws)
		size := vectorNumel(c.event)
		mean, variance := vectorFloats(d.Mean().T()), vectorFloats(d.Variance().T())
		require.Equal(t, c.event, vectorShape(d.Mean().T()))
		require.Equal(t, c.event, vectorShape(d.Variance().T()))
		within := func(want float64, f func(x []float64) float64, what ...any) {
			t.Helper()
			m, s := 0.0, 0.0
			for i := range n {
				v := f(x[i*size : (i+1)*size])
				m += v / n
				s += v * v / n
			}
			se := math.Sqrt(max(0, s-m*m) / n)
			require.InDelta(t, want, m, 4*se+1e-14, what...)
		}
		for i := range mean {
			within(mean[i], func(x []float64) float64 { return x[i] }, "mean of ", i)
			within(variance[i], func(x []float64) float64 { return (x[i] - mean[i]) * (x[i] - mean[i]) }, "variance of ", i)
		}
		if c.covariance == nil {
			return
		}
		for i, row := range c.covariance(p) {
			require.InEpsilon(t, row[i], variance[i], 1e-12)
			for j, want := range row {
				within(want, func(x []float64) float64 { return (x[i] - mean[i]) * (x[j] - mean[j]) }, i, j)
			}
		}
		if full, ok := d.(interface{ Covariance() *ts.Tensor }); ok {
			vectorNear(t, slices.Concat(c.covariance(p)...), vectorFloats(full.Covariance()), 1e-12)
		}
	})
}

// With the random numbers fixed, draws move with the parameters as their gradients say.
func TestVectorReparameterisedDraws(t *testing.T) {
	eachVector(t, func(t *testing.T, c vectorCase, rng *rand.Rand) {
		if !c.smooth {
			return // draws by rejection: TestVectorGradientsOfRejectedDraws
		}
		flat := c.flat(c.random(rng), c.value(rng))
		n := len(flat)
		weights := vectorTensor(vectorNormals(rng, 2*vectorNumel(c.event)), append([]int{2}, c.event...)...)
		f := func(flat torch.Tensor) torch.Tensor {
			p, _ := c.unpack(flat.T())
			return torch.Of(c.make(p).Sample(torch.NewSource(3, 0), 2).T().MustMul(weights, false).MustSum(gotch.Double, false))
		}
		_, grad, err := torch.ValueAndGrad(f, torch.Of(vectorTensor(flat, n)))
		require.NoError(t, err)
		want := vectorSlope(func(v []float64) float64 { return vectorFloats(f(torch.Of(vectorTensor(v, n))).T())[0] }, flat)
		vectorNear(t, want, vectorFloats(grad.T()), 1e-9)
	})
}

// Gradients of draws by rejection have the right mean: that of x₁² under Dirichlet and Student's t, of L₂₁² under
// LKJCholesky, and of K₁₁² and K₂₁² under WishartCholesky and its inverse.
func TestVectorGradientsOfRejectedDraws(t *testing.T) {
	const n = 20000
	check := func(d func(leaf *ts.Tensor) *ts.Tensor, value []float64, want []float64) {
		t.Helper()
		k := len(value)
		wide := torch.Must(torch.Leaf(torch.Of(vectorTensor(value, k).MustExpand([]int64{n, int64(k)}, true,
			false).MustContiguous(false))))
		total := d(wide.T()).MustSquare(false).MustSum(gotch.Double, false)
		g := vectorFloats(torch.Must(torch.Grad([]torch.Tensor{torch.Of(total)}, []torch.Tensor{wide}, nil))[0].T())
		for j := range value {
			m, s := 0.0, 0.0
			for i := range n {
				v := g[i*k+j]
				m, s = m+v/n, s+v*v/n
			}
			require.InDelta(t, want[j], m, 4*math.Sqrt((s-m*m)/n), j)
		}
	}
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		a, b, c := 0.7, 1.5, 3.0
		s := a + b + c
		// E x₁² = a(a + 1)/(s(s + 1)).
		all := -a * (a + 1) * (2*s + 1) / (s * s * (s + 1) * (s + 1))
		check(func(leaf *ts.Tensor) *ts.Tensor {
			return dist.Dirichlet(leaf).Sample(torch.NewSource(2, 0)).T().MustSelect(-1, 0, false)
		}, []float64{a, b, c}, []float64{all + (2*a+1)/(s*(s+1)), all, all})
		// E x₁² = df/(df − 2) of a Student's t vector with the identity as its scale.
		check(func(leaf *ts.Tensor) *ts.Tensor {
			d := dist.MultivariateStudentT(leaf.MustSqueezeDim(-1, false), 0, ts.MustEye(2, gotch.Double, gotch.CPU))
			return d.Sample(torch.NewSource(2, 0)).T().MustSelect(-1, 0, false)
		}, []float64{9}, []float64{-2.0 / 49})
		// E L₂₁² = 1/(2 eta + K − 1).
		check(func(leaf *ts.Tensor) *ts.Tensor {
			d := dist.LKJCholesky(4, leaf.MustSqueezeDim(-1, false))
			return d.Sample(torch.NewSource(2, 0)).T().MustSelect(-2, 1, false).MustSelect(-1, 0, false)
		}, []float64{1.5}, []float64{-2.0 / 36})
		// E K₁₁² is df, and of the inverse E K₂₁² = 1/((df − 2)(df − 3)), for matrices of size 2.
		eye := ts.MustEye(2, gotch.Double, gotch.CPU)
		check(func(leaf *ts.Tensor) *ts.Tensor {
			d := dist.WishartCholesky(leaf.MustSqueezeDim(-1, false), eye)
			return d.Sample(torch.NewSource(2, 0)).T().MustSelect(-2, 0, false).MustSelect(-1, 0, false)
		}, []float64{5}, []float64{1})
		check(func(leaf *ts.Tensor) *ts.Tensor {
			d := dist.InverseWishartCholesky(leaf.MustSqueezeDim(-1, false), eye)
			return d.Sample(torch.NewSource(2, 0)).T().MustSelect(-2, 1, false).MustSelect(-1, 0, false)
		}, []float64{14}, []float64{-23.0 / (144 * 121)})
		return nil
	}))
}

// Each correlation has the beta distribution of Lewandowski, Kurowicka, Joe (2009): (r + 1)/2 ~ Beta(eta +
// K/2 − 1, same).
func TestLKJCorrelations(t *testing.T) {
	const n, k = 4000, 3
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		for _, eta := range []float64{0.6, 1, 4} {
			l := dist.LKJCholesky(k, eta).Sample(torch.NewSource(5, 0), n).T()
			r := vectorFloats(l.MustMatmul(l.MustTranspose(-2, -1, false), false))
			for _, at := range []int{3, 6, 7} {
				u := make([]float64, n)
				for i := range u {
					a := eta + k/2.0 - 1
					u[i] = mathext.RegIncBeta(a, a, (r[i*k*k+at]+1)/2)
				}
				sort.Float64s(u)
				d := 0.0
				for i, v := range u {
					d = max(d, v-float64(i)/n, float64(i+1)/n-v)
				}
				// Kolmogorov's law: exceeded with the probability with which a normal number is beyond four standard deviations.
				require.Less(t, d*math.Sqrt(n), 2.276, "eta %v element %d", eta, at)
			}
		}
		return nil
	}))
}

// vectorGrid is the midpoints of a grid over a cube.
func vectorGrid(dim int, half, h float64) []float64 {
	n := int(2 * half / h)
	points := []float64{}
	total := int(math.Pow(float64(n), float64(dim)) + 0.5)
	for i := range total {
		for range dim {
			points = append(points, (float64(i%n)+0.5)*h-half)
			i /= n
		}
	}
	return points
}

// Densities of constrained values integrate to one over the unconstrained space of their bijectors. For functions
// analytic around the real line the sum over a grid converges faster than any power of its step.
func TestVectorDensitiesIntegrateToOne(t *testing.T) {
	cases := []struct {
		d       dist.Distribution
		dim     int
		half, h float64
	}{
		{dist.LKJCholesky(2, 0.8), 1, 40, 0.2},
		{dist.LKJCholesky(2, 3), 1, 15, 0.2},
		{dist.LKJCholesky(3, 1.5), 3, 12, 0.3},
		{dist.LKJCholesky(3, 4), 3, 6, 0.2},
		{dist.Dirichlet(vectorTensor([]float64{1.5, 2, 3}, 3)), 2, 20, 0.25},
		{dist.GaussianRandomWalk(2, 0.8), 2, 9, 0.2},
		{dist.WishartCholesky(7, vectorTensor([]float64{1, 0, 0.5, 0.8}, 2, 2)), 3, 7, 0.15},
		{dist.InverseWishartCholesky(6, vectorTensor([]float64{2}, 1, 1)), 1, 20, 0.1},
		{dist.ZeroSumNormal(3, 0.7), 2, 9, 0.2},
		{dist.MultivariateNormal(0.5, vectorTensor([]float64{2, 1, 1, 1}, 2, 2)), 2, 12, 0.2},
	}
	for _, c := range cases {
		require.NoError(t, torch.Do(func(*torch.Scope) error {
			b := torch.Must(bijector.For(c.d.Support()))
			points := vectorGrid(c.dim, c.half, c.h)
			x := vectorTensor(points, len(points)/c.dim, c.dim)
			y := b.Forward(torch.Of(x)).T()
			l := c.d.LogProb(torch.Of(y)).T().MustAdd(b.LogAbsDetJacobian(torch.Of(x), torch.Of(y)).T(), false)
			total := vectorFloats(l.MustExp(false).MustSum(gotch.Double, false))[0] * math.Pow(c.h, float64(c.dim))
			require.InDelta(t, 1, total, 1e-9, "%s %v", c.d.Name(), c.d.EventShape())
			return nil
		}))
	}
}

// Parameters at the ends of what they can be: closed forms, in high precision where float64 cannot.
func TestVectorExtremes(t *testing.T) {
	tensor := func(x ...float64) *ts.Tensor { return vectorTensor(x, len(x)) }
	item := func(t *ts.Tensor) float64 { return vectorFloats(t)[0] }
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		// Scales from 1e-10 to 1e10, at 40 standard deviations.
		sd := []float64{1e-10, 1, 1e10}
		x, want := make([]float64, 3), 0.0
		for i, s := range sd {
			x[i] = 40 * s
			want += -800 - math.Log(s) - 0.5*math.Log(2*math.Pi)
		}
		diag := func(f func(s float64) float64) *ts.Tensor {
			return tensor(f(sd[0]), f(sd[1]), f(sd[2])).MustDiagEmbed(0, -2, -1, false)
		}
		for _, d := range []dist.Distribution{
			dist.MultivariateNormal(0, diag(func(s float64) float64 { return s * s })),
			dist.MultivariateNormalPrecision(0, diag(func(s float64) float64 { return 1 / s / s })),
			dist.MultivariateNormalCholesky(0, diag(func(s float64) float64 { return s })),
			dist.LowRankMultivariateNormal(0, vectorTensor(make([]float64, 6), 3, 2), tensor(1e-20, 1, 1e20)),
		} {
			require.InEpsilon(t, want, item(d.LogProb(torch.Of(tensor(x...))).T()), 1e-14, d.Name())
		}

		// A narrow tube around a line: Σ = w·wᵀ + δ I, by Sherman and Morrison in high precision.
		w, v, delta := []float64{1, 2, -3}, []float64{1, 2.000001, -3.000001}, 1e-12
		ww, wv, vv := bigNew(0), bigNew(0), bigNew(0)
		for i := range w {
			ww = bigAdd(ww, bigMul(bigNew(w[i]), bigNew(w[i])))
			wv = bigAdd(wv, bigMul(bigNew(w[i]), bigNew(v[i])))
			vv = bigAdd(vv, bigMul(bigNew(v[i]), bigNew(v[i])))
		}
		quad := bigQuo(bigSub(vv, bigQuo(bigMul(wv, wv), bigAdd(bigNew(delta), ww))), bigNew(delta))
		logDet := bigAdd(bigMul(bigInt(2), bigLog(bigNew(delta))), bigLog(bigAdd(bigNew(delta), ww)))
		logTwoPi := bigMul(bigInt(3), bigLog(bigMul(bigInt(2), bigPi())))
		exact := bigFloat(bigQuo(bigNeg(bigAdd(quad, logDet, logTwoPi)), bigInt(2)))
		require.InEpsilon(
			t,
			exact,
			item(dist.LowRankMultivariateNormal(0, vectorTensor(w, 3, 1), delta).LogProb(torch.Of(tensor(v...))).T()),
			1e-10,
		)

		// Student's t with many degrees of freedom is normal to rounding. With few its tails are a power: for ν = n = 2 and
		// the identity the density at distance r is 1/(2π (1 + r²/2)²).
		eye := ts.MustEye(2, gotch.Double, gotch.CPU)
		near := item(dist.MultivariateStudentT(1e15, 0, eye).LogProb(torch.Of(tensor(1, 2))).T())
		require.InDelta(t, -2.5-math.Log(2*math.Pi), near, 1e-12)
		far := item(dist.MultivariateStudentT(2, 0, eye).LogProb(torch.Of(tensor(1e100, 0))).T())
		require.InEpsilon(t, -math.Log(2*math.Pi)-2*(200*math.Ln10-math.Ln2), far, 1e-12)
		// One or two degrees of freedom have no moments.
		require.True(t, math.IsNaN(item(dist.MultivariateStudentT(1, 0, eye).Mean().T())))
		require.True(t, math.IsInf(item(dist.MultivariateStudentT(2, 0, eye).Variance().T()), 1))

		// Of size 1 the square of a factor is chi-squared, and of the inverse inverse gamma, at any number of degrees
		// of freedom: p(k) = p(k²)·2k.
		one := func(x float64) *ts.Tensor { return vectorTensor([]float64{x}, 1, 1) }
		for _, df := range []float64{1e-3, 3, 1e10} {
			k := math.Sqrt(df)
			want := item(dist.Chi2(df).LogProb(torch.Of(k*k)).T()) + math.Log(2*k)
			got := item(dist.WishartCholesky(df, one(1)).LogProb(torch.Of(one(k))).T())
			require.InDelta(t, want, got, 1e-11*max(1, math.Abs(want)), df)
			want = item(dist.InverseGamma(df/2, 2).LogProb(torch.Of(1/(k*k))).T()) + math.Log(2/k)
			got = item(dist.InverseWishartCholesky(df, one(2)).LogProb(torch.Of(one(1 / k))).T())
			require.InDelta(t, want, got, 1e-11*max(1, math.Abs(want)), df)
		}
		// A matrix with eigenvalues 1e-300 and 1 has a factor without cancellation: with df = 4 the density is that of
		// a chi number of 4 degrees of freedom at 1e-150, a³/2, of one of 3 at 1, √(2/π) e^(-1/2), and of a normal
		// number at 0.
		singular := vectorTensor([]float64{1e-150, 0, 0, 1}, 2, 2)
		thin := -450*math.Ln10 - math.Ln2 + 0.5*math.Log(2/math.Pi) - 0.5 - 0.5*math.Log(2*math.Pi)
		require.InEpsilon(t, thin, item(dist.WishartCholesky(4, eye).LogProb(torch.Of(singular)).T()), 1e-13)
		// Of the inverse the mean needs more than n degrees of freedom, the variance more than n + 1.
		require.True(t, math.IsNaN(item(dist.InverseWishartCholesky(2, eye).Mean().T())))
		require.False(t, math.IsNaN(item(dist.InverseWishartCholesky(2.5, eye).Mean().T())))
		require.True(t, math.IsNaN(item(dist.InverseWishartCholesky(3, eye).Variance().T())))
		require.False(t, math.IsNaN(item(dist.InverseWishartCholesky(3.5, eye).Variance().T())))
		edge := dist.InverseWishartCholesky(tensor(2, 2.5), eye).Mean().T()
		require.True(t, math.IsNaN(vectorFloats(edge)[0]) && !math.IsNaN(vectorFloats(edge)[4]))

		// Effects of scales from 1e-150 to 1e150, at (40, -40) standard deviations.
		for _, s := range []float64{1e-150, 1, 1e150} {
			got := item(dist.ZeroSumNormal(2, s).LogProb(torch.Of(tensor(40*s, -40*s))).T())
			require.InEpsilon(t, -1600-math.Log(s)-0.5*math.Log(2*math.Pi), got, 1e-14)
		}

		// Dirichlet concentrations from 1e-300 to 1e12; x is exact in binary, with sum 1.
		for _, c := range []struct{ alpha, x []float64 }{
			{[]float64{1e-300, 1, 2}, []float64{0.25, 0.25, 0.5}},
			{[]float64{1e-10, 1e-10, 1e-10}, []float64{0.25, 0.25, 0.5}},
			{[]float64{1e9, 1e9, 2e9}, []float64{0.25, 0.25, 0.5}},
			{[]float64{1e12, 1, 1e12}, []float64{0.5 - 1.0/1024, 1.0 / 512, 0.5 - 1.0/1024}},
			{[]float64{3, 4, 5}, []float64{0x1p-1000, 0x1p-900, 1}},
		} {
			total, sum := bigNew(0), bigNew(0)
			for i, a := range c.alpha {
				total = bigAdd(total, bigNew(a))
				sum = bigAdd(sum, bigMul(bigSub(bigNew(a), bigInt(1)), bigLog(bigNew(c.x[i]))), bigNeg(bigLgamma(bigNew(a))))
			}
			want := bigFloat(bigAdd(sum, bigLgamma(total)))
			require.InEpsilon(
				t,
				want,
				item(dist.Dirichlet(tensor(c.alpha...)).LogProb(torch.Of(tensor(c.x...))).T()),
				1e-10,
				c.alpha,
			)
		}
		// At the edge: minus infinity, plus infinity, or a number where the concentration is 1.
		for alpha, want := range map[float64]float64{2: math.Inf(-1), 0.5: math.Inf(1), 1: math.Log(2)} {
			got := item(dist.Dirichlet(tensor(alpha, 2)).LogProb(torch.Of(tensor(0, 1))).T())
			require.True(t, got == want || math.Abs(got-want) < 1e-14, "%v at the edge: %v", alpha, got)
		}

		// LKJ in two dimensions: (1 − r²)^(eta−1) over its integral 2^(2 eta − 1) B(eta, eta).
		for _, eta := range []float64{1e-6, 0.5, 1e3, 1e8} {
			r := 0.6
			if eta > 1e4 {
				r = 1e-4
			}
			l22 := math.Sqrt(1 - r*r)
			e := bigNew(eta)
			logB := bigSub(bigMul(bigInt(2), bigLgamma(e)), bigLgamma(bigMul(bigInt(2), e)))
			norm := bigAdd(bigMul(bigSub(bigMul(bigInt(2), e), bigInt(1)), bigLog(bigInt(2))), logB)
			want := bigFloat(bigSub(bigMul(bigMul(bigInt(2), bigSub(e, bigInt(1))), bigLog(bigNew(l22))), norm))
			got := item(dist.LKJCholesky(2, eta).LogProb(torch.Of(vectorTensor([]float64{1, 0, r, l22}, 2, 2))).T())
			require.InEpsilon(t, want, got, 1e-10, eta)
		}
		return nil
	}))
}
