package laplace_test

import (
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/torch"
)

// float32s are the tensors of a batch in float32.
func float32s(b infer.Batch) infer.Batch {
	out := infer.Batch{}
	for name, x := range b {
		out[name] = must(torch.To(x, torch.CPU, gotch.Float))
	}
	return out
}

// Outputs [n, 1] against labels [n] have densities of shape [n], each a sum over all labels: an error that names both
// shapes, of every method that takes a forward function and of KFAC.
func TestOutputsThatDoNotMatchTheLabels(t *testing.T) {
	const n, d = 6, 2
	x, y := normals(1, n*d), normals(2, n)
	batch := infer.Batch{"x": torch.Of(vector(x, n, d)), "y": torch.Of(vector(y))}
	l := layout(infer.Shapes{"w": {1, d}})
	at := params(l, normals(3, d), 0)
	network := laplace.Network(func(p infer.Params, b infer.Batch, linear laplace.Linear) torch.Tensor {
		return linear("w", b.Get("x"))
	})
	layers := []laplace.Layer{{Weight: "w"}}
	forward := network.Forward(layers...)
	for name, m := range map[string]infer.Method{
		"DiagGGN":   laplace.DiagGGN{Forward: forward, Outer: vectorOuter(1)},
		"DenseGGN":  laplace.DenseGGN{Forward: forward, Outer: vectorOuter(1)},
		"KFAC":      laplace.KFAC{Network: network, Layers: layers, Outer: vectorOuter(1)},
		"Empirical": laplace.KFAC{Network: network, Layers: layers, Outer: vectorOuter(1), Empirical: true},
	} {
		transform := build(t, m, nil)
		_, _, err := transform.Update(begin(t, transform, at), batch)
		assert.ErrorContains(t, err, "the density of datum 0 changes with the other data", name)
		assert.ErrorContains(t, err, "z has shape [6 1], the batch has x [6 2], y [6]", name)
		assert.ErrorIs(t, err, infer.ErrConfig, name)
		right := infer.Batch{"x": batch["x"], "y": torch.Of(vector(y, n, 1))}
		_, _, err = transform.Update(begin(t, transform, at), right)
		assert.NoError(t, err, name)
	}
}

// With fewer data than parameters most eigenvalues of the curvature are 0 up to rounding, of either sign. The best
// precision is that of float64, within the digits of a float32 curvature.
func TestOptimizePriorPrecisionInFloat32(t *testing.T) {
	for _, d := range []int{20, 60, 200} {
		const n = 15
		l := layout(infer.Shapes{"a": {d / 2}, "b": {d - d/2}})
		whole := func(p infer.Params, b infer.Batch) torch.Tensor { return b.Get("x").MatMul(p.Flat) }
		batch := infer.Batch{"x": torch.Of(vector(normals(1, n*d), n, d)), "y": torch.Of(vector(normals(2, n)))}
		at := params(l, normals(3, d), 0)
		for _, each := range []bool{false, true} {
			var found [2]map[string]float64
			for i, narrow := range []bool{false, true} {
				p, b := at, batch
				if narrow {
					p, b = must(at.To(torch.CPU, gotch.Float)), float32s(batch)
				}
				s := pass(t, build(t, laplace.DenseGGN{Forward: whole, Outer: gaussianOuter(1)}, nil), p, b, n)
				_, prior, err := laplace.OptimizePriorPrecision(s, laplace.PriorOptions{PerSite: each})
				require.NoError(t, err, "%d parameters", d)
				found[i] = map[string]float64{}
				for _, site := range l.Names() {
					found[i][site], _ = prior.Site(site)
				}
			}
			for site, want := range found[0] {
				// Each of d eigenvalues is off by d ε of the largest, beside λ of order 1.
				assert.InEpsilon(t, want, found[1][site], float64(d*d)*0x1p-23*10, "%d parameters, each %v", d, each)
			}
		}
	}
	// Kronecker factors of one datum have one eigenvalue that is not 0.
	network, layers, l := perceptron(tanh)
	_, _, batch := perceptronData(1)
	p := must(params(l, normals(5, l.Dim()), 0).To(torch.CPU, gotch.Float))
	s := pass(t, build(t, laplace.KFAC{Network: network, Layers: layers, Outer: softmaxOuter}, nil), p, float32s(batch),
		1)
	_, _, err := laplace.OptimizePriorPrecision(s, laplace.PriorOptions{PerSite: true})
	assert.NoError(t, err)
}

// For one logit the average is of the logistic function, of the shape that Probit gives.
func TestSoftmaxOfBinaryLogits(t *testing.T) {
	const samples = 20000
	m, v := []float64{0, 1, -2, 3}, []float64{1, 4, 0.5, 10}
	streams := torch.NewStreams(1, 1)
	p := must(laplace.Softmax(torch.Of(vector(m, 4, 1)), torch.Of(vector(v, 4, 1, 1)), samples, &streams))
	assert.Equal(t, []int{4}, p.Shape())
	for i, got := range values(p.T()) {
		want := logisticIntegral(m[i], v[i])
		assert.InDelta(t, want, got, 4*math.Sqrt(want*(1-want)/samples))
	}
}

// A log posterior that holds its data itself, or whose data are no rows, is of all of them: one update is enough.
func TestDenseHessianWithoutRows(t *testing.T) {
	r := newRegression(1, 23, 3, 0.7, 0.8)
	sum := sumPosterior(curvature.Likelihood(linear, gaussianOuter(r.s)), normalPrior(0.8), float64(r.n))
	inside := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) { return sum(p, r.batch) }
	for name, batch := range map[string]infer.Batch{"no batch": nil, "empty": {},
		"a scalar":            {"s": torch.Scalar(1)},
		"a scalar among rows": {"s": torch.Scalar(1), "x": r.batch["x"]}} {
		for _, data := range []int{1, 23} {
			transform := buildOn(t, laplace.DenseHessian{}, infer.Sum(inside, data))
			s, _ := update(t, transform, begin(t, transform, params(r.layout, r.mean, 0)), batch)
			within(t, entries(r.precision), precision(s), 1e-11, name)
		}
	}
}

// A prior that was made of a posterior lives on when the posterior is freed.
func TestLogPriorOutlivesTheState(t *testing.T) {
	methods, posterior, l, batch := everyMethod()
	for name, m := range methods {
		s := pass(t, build(t, m, posterior), params(l, normals(5, l.Dim()), 0), batch, 9)
		prior, err := s.(laplace.Posterior).LogPrior(1)
		if err != nil { // not positive definite here
			continue
		}
		at := params(l, normals(6, l.Dim()), 0)
		want := prior(at).Values()
		saved := s.Save()
		for _, x := range saved.Tensors {
			torch.Free(x)
		}
		for _, x := range saved.Shared {
			torch.Free(x)
		}
		assert.NoError(t, torch.Do(func(*torch.Scope) error {
			assert.Equal(t, want, prior(at).Values(), name)
			return nil
		}), name)
	}
}

// Limits of memory are named after the field that sets them, and a limit that no field sets is not to be raised.
func TestMemoryErrorsNameTheField(t *testing.T) {
	r := newRegression(1, 23, 4, 0.7, 0.8)
	at := params(r.layout, r.mean, 0)
	hundred := vector(normals(1, 23*6), 23, 6)
	forward := func(p infer.Params, b infer.Batch) torch.Tensor { // six outputs
		return linear(p, b).Unsqueeze(1).Mul(b.Get("z"))
	}
	batch := infer.Batch{"x": r.batch["x"], "z": torch.Of(hundred), "y": torch.Of(hundred)}
	transform := build(t, laplace.DiagGGN{Forward: forward, Outer: vectorOuter(1), Memory: 200}, nil)
	_, _, err := transform.Update(begin(t, transform, at), batch)
	assert.ErrorContains(t, err, "takes 288 bytes, and laplace.DiagGGN.Memory allows 200 bytes")
	assert.NotContains(t, err.Error(), "Options")
	_, err = build(t, laplace.DenseGGN{Forward: linear, Outer: gaussianOuter(1), Memory: 100}, nil).Init(at)
	assert.ErrorContains(t, err, "takes 128 bytes, and laplace.DenseGGN.Memory allows 100 bytes")

	l := layout(infer.Shapes{"w": {200, 200}})
	network := laplace.Network(func(p infer.Params, b infer.Batch, linear laplace.Linear) torch.Tensor {
		return linear("w", b.Get("x"))
	})
	s := begin(t, build(t, laplace.KFAC{Network: network, Layers: []laplace.Layer{{Weight: "w"}}, Outer: vectorOuter(1),
		PriorPrecision: laplace.Isotropic(1)}, nil),
		must(infer.Zeros(l)))
	_, err = s.(laplace.Posterior).Precision()
	assert.ErrorContains(t, err, "a matrix of shape [40000, 40000] takes 12.8 GB, more than 1.07 GB: "+
		"LinearizedNetwork and Sample do without")
	assert.NotContains(t, err.Error(), "raise")
}

// A precision that is NaN is not said to be a lack of data.
func TestPrecisionThatIsNotANumber(t *testing.T) {
	l := layout(infer.Shapes{"w": {2}})
	s := laplace.DiagState{Gaussian: laplace.Gaussian{Params: params(l, []float64{1, 2}, 0),
		Curvature: torch.Of(vector([]float64{1, math.NaN()})),
		Prior:     torch.Of(vector([]float64{1, 1})), Temperature: 1}}
	_, err := s.LogEvidence(0)
	assert.EqualError(t, err, "laplace.DiagState: the precision of w[1] is not finite")
	assert.ErrorIs(t, err, infer.ErrNonFinite)
}

// States that no transform made are errors, whatever is asked of them.
func TestEmptyStates(t *testing.T) {
	for _, s := range []laplace.Posterior{laplace.DiagState{}, laplace.DenseState{}, laplace.KFACState{}} {
		for what, f := range map[string]func() error{
			"Precision":   func() error { return second(s.Precision()) },
			"AsPrior":     func() error { return second(s.AsPrior()) },
			"LogEvidence": func() error { return second(s.LogEvidence(0)) },
			"LogPrior":    func() error { return second(s.LogPrior(1)) },
		} {
			assert.ErrorContains(t, f(), "an operand is torch.Tensor{}", "%T.%s", s, what)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// LinearizedNetwork takes as many data at a time as its memory allows, with the same result.
func TestLinearizedNetworkInBlocks(t *testing.T) {
	const n = 40
	plainNetwork, layers, l := perceptron(tanh)
	_, _, batch := perceptronData(n)
	most := 0
	network := laplace.Network(func(p infer.Params, b infer.Batch, linear laplace.Linear) torch.Tensor {
		most = max(most, must(b.Size()))
		return plainNetwork(p, b, linear)
	})
	kfac := laplace.KFAC{Network: plainNetwork, Layers: layers, Outer: softmaxOuter,
		PriorPrecision: laplace.Isotropic(1), Temperature: infer.Constant(0.5)}
	s := pass(t, build(t, kfac, nil), params(l, normals(5, l.Dim()), 0), batch, n)
	mean, cov, err := s.(laplace.KFACState).LinearizedNetwork(network, batch, curvature.LinearizedOptions{NoiseSD: 0.1})
	require.NoError(t, err)
	assert.Equal(t, int(n), most)
	// The result takes 6 numbers for each datum, and a datum 2·4 + Σ (6 out + out + 3 in) = 8 + 21 + 9 + 14 + 9.
	for _, c := range []struct{ numbers, rows int }{{6*n + 61, 1}, {6*n + 7*61, 7}} {
		most = 0
		m, v, err := s.(laplace.KFACState).LinearizedNetwork(network, batch,
			curvature.LinearizedOptions{NoiseSD: 0.1, Memory: 8 * c.numbers})
		require.NoError(t, err)
		assert.Equal(t, c.rows, most)
		within(t, values(mean.T()), values(m.T()), 1e-14, "mean")
		within(t, values(cov.T()), values(v.T()), 1e-14, "covariance")
	}
	_, _, err = s.(laplace.KFACState).LinearizedNetwork(network, batch,
		curvature.LinearizedOptions{Memory: 8 * (6*n + 60)})
	assert.ErrorContains(t, err, "curvature.LinearizedOptions.Memory allows")
	_, _, err = s.(laplace.KFACState).LinearizedNetwork(network, batch, curvature.LinearizedOptions{Memory: -1})
	assert.EqualError(t, err, "laplace.LinearizedNetwork: Memory is -1: it must be finite and at least 0")
}

// Draws and probabilities of what is no Gaussian are errors.
func TestOutputsThatAreNoGaussian(t *testing.T) {
	streams := torch.NewStreams(1, 1)
	for name, use := range map[string]func(mean, cov torch.Tensor) error{
		"Softmax": func(mean, cov torch.Tensor) error {
			_, err := laplace.Softmax(mean, cov, 2, &streams)
			return err
		},
		"Probit": func(mean, cov torch.Tensor) error { _, err := laplace.Probit(mean, cov); return err },
	} {
		err := use(torch.Of(vector([]float64{1, 2}, 2, 1)), torch.Of(vector([]float64{1, -5}, 2, 1, 1)))
		assert.ErrorIs(t, err, curvature.ErrIndefinite, name)
		assert.ErrorContains(t, err, "laplace."+name+": a covariance has the ")
		assert.ErrorContains(t, err, " -5: it must have none below 0", name)
		err = use(torch.Of(vector([]float64{1, 2}, 2, 1)), torch.Of(vector([]float64{1, math.NaN()}, 2, 1, 1)))
		assert.EqualError(t, err, "laplace."+name+": the covariance has elements that are not finite")
		err = use(torch.Of(vector([]float64{1, math.Inf(1)}, 2, 1)), torch.Of(vector([]float64{1, 1}, 2, 1, 1)))
		assert.EqualError(t, err, "laplace."+name+": the mean has elements that are not finite")
		assert.NoError(t, use(torch.Of(vector([]float64{1, 2}, 1, 2)),
			torch.Of(vector([]float64{1, 1, 1, 1 - 1e-15}, 1, 2, 2))),
			"rounding")
	}
}

// peak is the most memory that the process has had since the last reset, in bytes.
func peak(t testing.TB) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("no /proc here")
	}
	for line := range strings.Lines(string(status)) {
		if kb, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return int(1000 * must(strconv.ParseInt(strings.Fields(kb)[0], 10, 64)))
		}
	}
	t.Skip("no VmHWM here")
	return 0
}

// 6000 draws of 500 data with 10 classes are 240 MB of float64, and as much again for each step on the way: they are
// never there at once.
func TestSoftmaxDrawsInBlocks(t *testing.T) {
	const samples, n, c = 6000, 500, 10
	if os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) != nil {
		t.Skip("the peak cannot be reset here")
	}
	before := peak(t)
	streams := torch.NewStreams(1, 1)
	mean := must(ts.Zeros([]int64{n, c}, gotch.Double, torch.CPU))
	cov := must(ts.Eye(c, gotch.Double, torch.CPU)).MustExpand([]int64{n, c, c}, true, false)
	p := must(laplace.Softmax(torch.Of(mean), torch.Of(cov), samples, &streams))
	within(t, []float64{n}, values(p.T().MustSum(gotch.Double, false)), 1e-9, "probabilities")
	assert.Less(t, peak(t)-before, int(8*samples*n*c))
}
