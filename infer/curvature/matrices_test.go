package curvature_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Fourth-order central differences with h = 1e-3 have a truncation error near h⁴ = 1e-12 times a fifth derivative and a
// rounding error near 1e-16/h.
const differences = 1e-9

// eachKind runs a test for each density and rank of outputs.
func eachKind(t *testing.T, f func(t *testing.T, m network)) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) { f(t, newNetwork(t, k)) })
	}
}

func TestGradientsAreThoseOfSingleData(t *testing.T) {
	eachKind(t, func(t *testing.T, m network) {
		want := m.gradients()
		var values []float64
		for i := range m.n {
			values = append(values, m.value(m.flat, i))
		}
		for _, o := range options(len(m.flat), m.n*len(m.flat)) {
			v, g, err := curvature.Gradients(m.density(), m.point(t), m.batch(), o)
			require.NoError(t, err)
			require.Equal(t, []int{m.n, len(m.flat)}, shapeOf(g))
			near(t, values, floats(v), 1e-14, "values, %+v", o)
			for i, row := range rows(floats(g), len(m.flat)) {
				near(t, want[i], row, differences, "gradient of datum %d, %+v", i, o)
			}
		}
	})
}

// The gradient of a log posterior of single data is that of the datum plus that of the prior's share.
func TestPerSampleHasThePriorInEachGradient(t *testing.T) {
	m := newNetwork(t, kinds[1])
	for _, o := range options(len(m.flat), m.n*len(m.flat)) {
		v, g, err := curvature.Gradients(curvature.PerSample(m.logPosterior), m.point(t), m.batch(), o)
		require.NoError(t, err)
		want, each := m.gradients(), floats(v)
		for i, row := range rows(floats(g), len(m.flat)) {
			prior := 0.0
			for k, x := range m.flat {
				want[i][k] -= x / float64(m.n)
				prior -= x * x / 2 / float64(m.n)
			}
			near(t, want[i], row, differences, "datum %d", i)
			near(t, []float64{m.value(m.flat, i) + prior}, each[i:i+1], 1e-14, "value of datum %d", i)
		}
	}
	// As a function by itself it gives the values of all data, and can be differentiated.
	values := floats(curvature.PerSample(m.logPosterior)(m.point(t), m.batch()))
	mean := 0.0
	for _, v := range values {
		mean += v / float64(m.n)
	}
	near(t, []float64{m.posterior(m.flat)}, []float64{mean}, 1e-14, "mean of the values")
}

func TestFisherIsTheSumOfOuterProducts(t *testing.T) {
	eachKind(t, func(t *testing.T, m network) {
		g := m.gradients()
		want := outerSum(g, g)
		d, p, b, v := len(m.flat), m.point(t), m.batch(), numbers(len(m.flat), 7)
		for _, o := range options(d, d*d) {
			f, err := curvature.Fisher(m.density(), p, b, o)
			near(t, want, must(t, f, err), 10*differences, "Fisher, %+v", o)
		}
		for _, o := range options(d, d) {
			f, err := curvature.FisherDiag(m.density(), p, b, o)
			near(t, diagonal(want), must(t, f, err), 10*differences, "FisherDiag, %+v", o)
		}
		f, err := curvature.FVP(m.density(), p, b, vec(v), curvature.Options{})
		near(t, times(want, v), must(t, f, err), 10*differences, "FVP")
	})
}

func TestGGNIsTheSumOfJHJ(t *testing.T) {
	eachKind(t, func(t *testing.T, m network) {
		want := m.ggn()
		d, p, b, v := len(m.flat), m.point(t), m.batch(), numbers(len(m.flat), 7)
		for _, o := range options(d+m.c()*m.c(), d*d) {
			f, err := curvature.GGN(m.forward, m.outer, p, b, o)
			near(t, want, must(t, f, err), 10*differences, "GGN, %+v", o)
		}
		for _, o := range options(d+m.c()*m.c(), d) {
			f, err := curvature.GGNDiag(m.forward, m.outer, p, b, o)
			near(t, diagonal(want), must(t, f, err), 10*differences, "GGNDiag, %+v", o)
		}
		f, err := curvature.GGNVP(m.forward, m.outer, p, b, vec(v), curvature.Options{})
		near(t, times(want, v), must(t, f, err), 10*differences, "GGNVP")
	})
}

// The tests of indefinite curvature are worth something only where it is indefinite.
func TestCoupledDensityIsNotConcave(t *testing.T) {
	m := newNetwork(t, coupled("", 3))
	signs := map[bool]bool{}
	for i := range m.n {
		h := m.h(m.output(m.flat, i), m.datum(i))
		signs[h[0][0]*h[1][1] < h[0][1]*h[1][0] || h[0][0] < 0] = true
	}
	require.Len(t, signs, 2, "some data must have an indefinite second derivative and others not")
}

// Where y is drawn from the model, the expectation of the empirical Fisher matrix is the Gauss-Newton matrix:
// enumerated over all y of each datum, with probability p(y | z).
func TestGGNIsTheConditionalFisher(t *testing.T) {
	for _, k := range []kind{bernoulli, softmaxes("softmax [n, 3]", 3), softmaxes("softmaxes [n, 2, 3]", 2, 3)} {
		m := newNetwork(t, k)
		places, classes := numel(k.y), 2
		if len(k.shape) > 0 {
			classes = k.shape[len(k.shape)-1]
		}
		d := len(m.flat)
		want, mass := make([]float64, d*d), 0.0
		for label := range int(math.Pow(float64(classes), float64(places))) {
			y := make([]float64, places)
			for j, rest := 0, label; j < places; j, rest = j+1, rest/classes {
				y[j] = float64(rest % classes)
			}
			alt := m
			alt.y = nil
			for range m.n {
				alt.y = append(alt.y, y...)
			}
			_, g, err := curvature.Gradients(m.density(), m.point(t), alt.batch(), curvature.Options{})
			require.NoError(t, err)
			for i, row := range rows(floats(g), d) {
				p := math.Exp(m.logp(m.output(m.flat, i), y))
				mass += p
				for a := range d {
					for b := range d {
						want[a*d+b] += p * row[a] * row[b]
					}
				}
			}
		}
		near(t, []float64{float64(m.n)}, []float64{mass}, 1e-13, "%s: the probabilities sum to 1 for each datum", k.name)
		f, err := curvature.GGN(m.forward, m.outer, m.point(t), m.batch(), curvature.Options{})
		near(t, want, must(t, f, err), 1e-13, "%s: GGN", k.name)
		f, err = curvature.GGNDiag(m.forward, m.outer, m.point(t), m.batch(), curvature.Options{})
		near(t, diagonal(want), must(t, f, err), 1e-13, "%s: GGNDiag", k.name)
	}
}

// linear is a linear model, z = x W (W of shape [in, C]), with a density of each datum.
type linear struct {
	n, in, c int
	x, y     []float64
	layout   *infer.Layout
	flat     []float64
}

func newLinear(t testing.TB, n, in, c int) linear {
	m := linear{n: n, in: in, c: c, x: numbers(n*in, 3), y: numbers(n, 400),
		layout: layoutOf(t, infer.Shapes{"w": {in, c}})}
	m.flat = numbers(in*c, 20)
	return m
}

func (m linear) point(t testing.TB) infer.Params { return pointOf(t, m.layout, m.flat...) }

func (m linear) batch() infer.Batch {
	return infer.Batch{"x": vec(m.x, m.n, m.in), "y": vec(m.y)}
}

func (m linear) forward(p infer.Params, b infer.Batch) torch.Tensor {
	return b.Get("x").MatMul(p.Get("w"))
}

// single is forward for one output, as [n].
func (m linear) single(p infer.Params, b infer.Batch) torch.Tensor {
	return torch.Of(m.forward(p, b).T().MustSelect(1, 0, false))
}

// logits are those of datum i in Go.
func (m linear) logits(i int) []float64 {
	z := make([]float64, m.c)
	for j := range m.in {
		for c := range z {
			z[c] += m.x[i*m.in+j] * m.flat[j*m.c+c]
		}
	}
	return z
}

// posterior is the sum of the densities, without a prior, of shape [].
func posterior(f curvature.PerDatum) infer.LogPosterior {
	return func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) { return f(p, b).Sum(), nil }
}

// weighted is Σ_i w_i x_i x_iᵀ.
func (m linear) weighted(w func(i int) float64) []float64 {
	var left, right [][]float64
	for i := range m.n {
		row := make([]float64, m.in)
		for j := range row {
			row[j] = w(i) * m.x[i*m.in+j]
		}
		left, right = append(left, m.x[i*m.in:(i+1)*m.in]), append(right, row)
	}
	return outerSum(left, right)
}

// Logistic regression: GGN = Hessian = Σ p(1 − p) x xᵀ, and the empirical Fisher matrix is Σ (y − p)² x xᵀ.
func TestLogisticRegressionInClosedForm(t *testing.T) {
	m := newLinear(t, 23, 3, 1)
	for i, v := range m.y {
		m.y[i] = math.Floor((v + 1))
	}
	prob := func(i int) float64 { return 1 / (1 + math.Exp(-m.logits(i)[0])) }
	curved := m.weighted(func(i int) float64 { return prob(i) * (1 - prob(i)) })
	empirical := m.weighted(func(i int) float64 { return (m.y[i] - prob(i)) * (m.y[i] - prob(i)) })
	p, b, f := m.point(t), m.batch(), curvature.Likelihood(m.single, bernoulli.outer)
	x, err := curvature.GGN(m.single, bernoulli.outer, p, b, curvature.Options{})
	near(t, curved, must(t, x, err), 1e-14, "GGN")
	x, err = curvature.Hessian(posterior(f), p, b, curvature.Options{})
	near(t, curved, must(t, x, err), 1e-14, "Hessian")
	x, err = curvature.HessianDiag(posterior(f), p, b, curvature.Options{})
	near(t, diagonal(curved), must(t, x, err), 1e-14, "HessianDiag")
	x, err = curvature.Fisher(f, p, b, curvature.Options{})
	near(t, empirical, must(t, x, err), 1e-14, "Fisher")
	x, err = curvature.FisherDiag(f, p, b, curvature.Options{Normalize: true})
	near(t, scale(diagonal(empirical), 1.0/23), must(t, x, err), 1e-14, "mean FisherDiag")
}

func scale(x []float64, c float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = c * v
	}
	return out
}

// Softmax regression with three classes: GGN = Hessian = Σ (diag p − p pᵀ) ⊗ x xᵀ, in the order (input, class).
func TestSoftmaxRegressionInClosedForm(t *testing.T) {
	m := newLinear(t, 19, 2, 3)
	for i, v := range m.y {
		m.y[i] = math.Floor((v + 1) * 1.5)
	}
	k := softmaxes("", 3)
	d := len(m.flat)
	want := make([]float64, d*d)
	for i := range m.n {
		h := k.h(m.logits(i), []float64{0})
		for a := range d {
			for b := range d {
				want[a*d+b] += h[a%3][b%3] * m.x[i*2+a/3] * m.x[i*2+b/3]
			}
		}
	}
	p, b := m.point(t), m.batch()
	x, err := curvature.GGN(m.forward, k.outer, p, b, curvature.Options{})
	near(t, want, must(t, x, err), 1e-14, "GGN")
	x, err = curvature.Hessian(posterior(curvature.Likelihood(m.forward, k.outer)), p, b, curvature.Options{})
	near(t, want, must(t, x, err), 1e-14, "Hessian")
}

// Normal observations with standard deviation s: GGN = Hessian = XᵀX/s², whatever the residuals.
func TestNormalRegressionInClosedForm(t *testing.T) {
	m := newLinear(t, 11, 4, 1)
	const s = 0.7
	outer := func(z torch.Tensor, b infer.Batch) torch.Tensor {
		return b.Get("y").Sub(z).Square().Mul(-0.5 / (s * s))
	}
	want := m.weighted(func(int) float64 { return 1 / (s * s) })
	p, b := m.point(t), m.batch()
	x, err := curvature.GGN(m.single, outer, p, b, curvature.Options{})
	near(t, want, must(t, x, err), 1e-14, "GGN")
	x, err = curvature.Hessian(posterior(curvature.Likelihood(m.single, outer)), p, b, curvature.Options{})
	near(t, want, must(t, x, err), 1e-14, "Hessian")
	x, err = curvature.GGN(m.single, outer, p, b, curvature.Options{Normalize: true})
	near(t, scale(want, 1.0/11), must(t, x, err), 1e-14, "mean GGN")
}

// A density that is linear in the outputs has no curvature, nor has one that is linear in the parameters.
func TestNoCurvature(t *testing.T) {
	m := newNetwork(t, kinds[4])
	d := len(m.flat)
	outer := func(z torch.Tensor, b infer.Batch) torch.Tensor {
		return z.Mul(b.Get("y")).Sum(1)
	}
	p, b, v := m.point(t), m.batch(), vec(numbers(d, 7))
	x, err := curvature.GGN(m.forward, outer, p, b, curvature.Options{})
	near(t, make([]float64, d*d), must(t, x, err), 0, "GGN")
	x, err = curvature.GGNVP(m.forward, outer, p, b, v, curvature.Options{})
	near(t, make([]float64, d), must(t, x, err), 0, "GGNVP")
	weights := vec(numbers(d, 9))
	f := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Flat.Dot(weights), nil
	}
	g, x, err := curvature.HVP(f, p, b, v)
	near(t, floats(weights), must(t, g, err), 0, "gradient")
	near(t, make([]float64, d), must(t, x, err), 0, "HVP")
	x, err = curvature.Hessian(f, p, b, curvature.Options{})
	near(t, make([]float64, d*d), must(t, x, err), 0, "Hessian")
}

// An eigenvalue that is zero for some data counts for the others: −½ Σ_c w_ic z_ic² has Gauss-Newton blocks Σ_i w_ic
// x_i x_iᵀ.
func TestGGNWithWeightsThatAreZero(t *testing.T) {
	m := newLinear(t, 3, 2, 2)
	w := []float64{2, 0, 3, 1, 0, 0.5}
	outer := func(z torch.Tensor, b infer.Batch) torch.Tensor {
		return b.Get("w").Mul(z.Square()).Sum(1).Mul(-0.5)
	}
	d := len(m.flat)
	want := make([]float64, d*d)
	for i := range m.n {
		for a := range d {
			for b := range d {
				if a%2 == b%2 {
					want[a*d+b] += w[i*2+a%2] * m.x[i*2+a/2] * m.x[i*2+b/2]
				}
			}
		}
	}
	p, b := m.point(t), infer.Batch{"x": m.batch()["x"], "w": vec(w, 3, 2)}
	for _, o := range options(d+4, d*d) {
		x, err := curvature.GGN(m.forward, outer, p, b, o)
		near(t, want, must(t, x, err), 1e-15, "GGN")
	}
}

// Small eigenvalues count: only those within rounding of the largest are left out.
func TestGGNWithSmallCurvature(t *testing.T) {
	m := newLinear(t, 3, 2, 2)
	outer := func(z torch.Tensor, _ infer.Batch) torch.Tensor {
		return z.Square().MatMul(vec([]float64{-0.5, -0.5e-10}))
	}
	x, err := curvature.GGNDiag(m.forward, outer, m.point(t), m.batch(), curvature.Options{})
	got, want := must(t, x, err), diagonal(m.weighted(func(int) float64 { return 1 }))
	near(t, want, []float64{got[0], got[2]}, 1e-14, "first output")
	near(t, want, []float64{got[1] * 1e10, got[3] * 1e10}, 1e-5, "second output")
}

// The model is called once for each block of rows, of 4·d numbers each beside the result, and once by the Gauss-Newton
// matrix to see its outputs.
func TestRowsFitIntoMemory(t *testing.T) {
	m := newNetwork(t, kinds[1])
	d, p, b, calls := len(m.flat), m.point(t), m.batch(), 0
	forward := func(p infer.Params, b infer.Batch) torch.Tensor {
		calls++
		return m.forward(p, b)
	}
	for rows := 1; rows <= m.n; rows++ {
		blocks := (m.n + rows - 1) / rows
		calls = 0
		x, err := curvature.FisherDiag(curvature.Likelihood(forward, m.outer), p, b,
			curvature.Options{Memory: 8 * (d + rows*4*d)})
		must(t, x, err)
		require.Equal(t, blocks, calls, "FisherDiag with room for %d rows", rows)
		calls = 0
		x, err = curvature.Fisher(curvature.Likelihood(forward, m.outer), p, b,
			curvature.Options{Memory: 8 * (d*d + rows*4*d)})
		must(t, x, err)
		require.Equal(t, blocks, calls, "Fisher with room for %d rows", rows)
		calls = 0
		x, err = curvature.GGNDiag(forward, m.outer, p, b, curvature.Options{Memory: 8 * (d + rows*(4*d+3*9))})
		must(t, x, err)
		require.Equal(t, blocks+1, calls, "GGNDiag with room for %d rows", rows)
	}
	// However much memory there is, the gradients of a block take at most 4 MiB: 5 rows of 100,000 numbers of 8 bytes.
	large := pointOf(t, layoutOf(t, infer.Shapes{"w": {100_000}}), make([]float64, 100_000)...)
	calls = 0
	x, err := curvature.FisherDiag(func(p infer.Params, b infer.Batch) torch.Tensor {
		calls++
		return b.Get("x").Mul(p.Get("w").At(0))
	}, large, infer.Batch{"x": vec(numbers(7, 0))}, curvature.Options{})
	must(t, x, err)
	require.Equal(t, 2, calls)
}

// A log posterior that holds its data needs no batch.
func TestHessianWithoutABatch(t *testing.T) {
	p := pointOf(t, layoutOf(t, infer.Shapes{"w": {2}}), 1, 3)
	f := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		w := p.Get("w").T()
		return total(torch.Of(w.MustSquare(false).MustMul(w, false))), nil // Σ w³: second derivatives 6w
	}
	x, err := curvature.Hessian(f, p, nil, curvature.Options{})
	near(t, []float64{-6, 0, 0, -18}, must(t, x, err), 1e-15, "Hessian")
	x, err = curvature.HessianDiag(f, p, nil, curvature.Options{})
	near(t, []float64{-6, -18}, must(t, x, err), 1e-15, "HessianDiag")
	_, x, err = curvature.HVP(f, p, infer.Batch{}, vec([]float64{1, 2}))
	near(t, []float64{6, 36}, must(t, x, err), 1e-15, "HVP")
}

// Gradients that are views, of one number for all parameters or of the vector that was given, are handled, and what
// comes back is the caller's own.
func TestGradientsThatAreViews(t *testing.T) {
	p, b := pointOf(t, layoutOf(t, infer.Shapes{"w": {3}}), 1, 2, 3), infer.Batch{"x": vec([]float64{1, 2, 4})}
	sum := func(p infer.Params, b infer.Batch) torch.Tensor {
		return b.Get("x").Add(p.Get("w").Sum())
	}
	outer := func(z torch.Tensor, _ infer.Batch) torch.Tensor { return z.Square().Mul(-1) }
	for _, o := range []curvature.Options{{}, {Memory: 8}} {
		x, err := curvature.FisherDiag(sum, p, b, o)
		near(t, []float64{3, 3, 3}, must(t, x, err), 0, "FisherDiag")
		x, err = curvature.GGNDiag(sum, outer, p, b, o)
		near(t, []float64{6, 6, 6}, must(t, x, err), 1e-15, "GGNDiag") // 3·√2²
	}
	// The densities are the parameters themselves, so that the product with the Fisher matrix I/3 is v/3.
	v := vec([]float64{3, 6, 9})
	x, err := curvature.FVP(func(p infer.Params, _ infer.Batch) torch.Tensor { return p.Get("w") }, p, b, v,
		curvature.Options{Normalize: true})
	near(t, []float64{1, 2, 3}, must(t, x, err), 1e-15, "FVP")
	near(t, []float64{3, 6, 9}, floats(v), 0, "v")
	x.T().MustMulScalar_(ts.FloatScalar(2))
	near(t, []float64{3, 6, 9}, floats(v), 0, "v")
}

func TestHessianAgainstDifferences(t *testing.T) {
	eachKind(t, func(t *testing.T, m network) {
		d, p, b, v := len(m.flat), m.point(t), m.batch(), numbers(len(m.flat), 7)
		gradient := func(flat []float64) []float64 {
			g := make([]float64, d)
			for k := range g {
				g[k] = difference(func(flat []float64) []float64 { return []float64{m.posterior(flat)} }, flat, k)[0]
			}
			return g
		}
		want := make([]float64, 0, d*d)
		for k := range d {
			want = append(want, scale(difference(gradient, m.flat, k), -1)...)
		}
		// Differences of differences: rounding of 1e-16/h² and more.
		const tol = 1e-8
		for _, o := range []curvature.Options{{}, {Memory: 8*d*d + 8}, {Memory: 8 * (d*d + 4*4*d*(1+m.n))}} {
			x, err := curvature.Hessian(m.logPosterior, p, b, o)
			near(t, want, must(t, x, err), tol, "Hessian, %+v", o)
			o.Memory -= 8 * (d*d - d)
			x, err = curvature.HessianDiag(m.logPosterior, p, b, curvature.Options{Memory: max(o.Memory, 0)})
			near(t, diagonal(want), must(t, x, err), tol, "HessianDiag, %+v", o)
		}
		g, x, err := curvature.HVP(m.logPosterior, p, b, vec(v))
		near(t, gradient(m.flat), must(t, g, err), differences, "gradient")
		near(t, times(want, scale(v, -1)), must(t, x, err), tol, "HVP")
	})
}

// Sums over parts of a batch add up to that of the whole, whatever the size of the parts.
func TestSumsOverPartsOfABatchAddUp(t *testing.T) {
	eachKind(t, func(t *testing.T, m network) {
		a := given(t, m)
		a.post = posterior(m.density())
		for _, c := range calls {
			if c.name == "Gradients" || c.name == "Linearized" { // which are of single data
				continue
			}
			x, err := c.f(a)
			whole := must(t, x, err)
			for _, size := range []int{1, 3, 7} {
				sum := make([]float64, len(whole))
				for _, part := range split(m.batch(), size) {
					one := a
					one.b = part
					x, err := c.f(one)
					for i, v := range must(t, x, err) {
						sum[i] += v
					}
				}
				near(t, whole, sum, 1e-14, "%s in parts of %d", c.name, size)
			}
		}
	})
}

// Blocks of another size give the same numbers to rounding.
func TestBlocksDoNotChangeNumbers(t *testing.T) {
	m := newNetwork(t, kinds[5])
	d := len(m.flat)
	for _, c := range calls {
		if c.name != "FisherDiag" && c.name != "GGNDiag" && c.name != "HessianDiag" {
			continue
		}
		a := given(t, m)
		x, err := c.f(a)
		whole := must(t, x, err)
		for memory := 1; memory < (8 * 4 * d * m.n * (m.n + 2)); memory += 16 * d {
			a.o.Memory = max(memory, 8*36)
			x, err := c.f(a)
			near(t, whole, must(t, x, err), 1e-14, "%s in %d bytes", c.name, memory)
		}
	}
}

// In float32 the numbers are those of float64 to its rounding.
func TestFloat32(t *testing.T) {
	eachKind(t, func(t *testing.T, m network) {
		single := func(x torch.Tensor) torch.Tensor { return torch.Must(torch.To(x, torch.CPU, gotch.Float)) }
		for _, c := range calls {
			a := given(t, m)
			a.variance = a.v.Square()
			x, err := c.f(a)
			want := must(t, x, err)
			a.p.Flat, a.b, a.v, a.variance = single(a.p.Flat), in32(a.b), single(a.v), single(a.variance)
			x, err = c.f(a)
			near(t, want, must(t, x, err), 1e-5, "%s", c.name)
			require.Equal(t, gotch.Float, x.T().DType(), c.name)
		}
	})
}
