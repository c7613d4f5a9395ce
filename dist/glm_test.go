package dist_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

// glmData is a matrix with rows for predictors of all sizes, weights and a bias for each row.
func glmData(rng *rand.Rand, n, d int) (x, w, b []float64, eta []float64) {
	for range d {
		w = append(w, rng.NormFloat64())
	}
	for i := range n {
		b = append(b, rng.NormFloat64())
		eta = append(eta, b[i])
		for j := range d {
			x = append(x, rng.NormFloat64()*float64(1+i%3*15))
			eta[i] += x[i*d+j] * w[j]
		}
	}
	return x, w, b, eta
}

// glmGrads are the gradients of Σ log p in w and b by the chain rule, from those in the predictor.
func glmGrads(x, slope []float64, d int) (w, b []float64) {
	w = make([]float64, d)
	for i, s := range slope {
		for j := range d {
			w[j] += s * x[i*d+j]
		}
	}
	return w, slope
}

func TestGLM(t *testing.T) {
	const n, d, scale = 60, 3, 0.7
	rng := rand.New(rand.NewPCG(4, 4))
	x, w, b, eta := glmData(rng, n, d)
	sigmoid := func(l float64) float64 { return 1 / (1 + math.Exp(-l)) }
	require.Greater(t, eta[2]*eta[2], 1.0)
	largest := 0.0
	for _, e := range eta {
		largest = math.Max(largest, math.Abs(e))
	}
	require.Greater(t, largest, 50., "the data reach log-odds beyond 50")
	y01, counts := make([]float64, n), make([]float64, n)
	for i := range n {
		y01[i], counts[i] = float64(i/2%2), float64(rng.IntN(30))
	}
	for name, c := range map[string]struct {
		make  func(x, w *ts.Tensor, b any) dist.Distribution
		y     []float64
		logp  func(eta, y float64) float64
		slope func(eta, y float64) float64
	}{
		"BernoulliLogitGLM": {func(x, w *ts.Tensor, b any) dist.Distribution {
			return dist.BernoulliLogitGLM(torch.Of(x), torch.Of(w), b)
		}, y01,
			func(l, y float64) float64 { return countFamily("BernoulliLogits").want([]float64{l}, y) },
			func(l, y float64) float64 { return y*sigmoid(-l) - (1-y)*sigmoid(l) }},
		"PoissonLogGLM": {func(x, w *ts.Tensor, b any) dist.Distribution {
			return dist.PoissonLogGLM(torch.Of(x), torch.Of(w),
				b)
		}, counts,
			func(l, y float64) float64 { return countFamily("PoissonLog").want([]float64{l}, y) },
			func(l, y float64) float64 { return y - math.Exp(l) }},
		"NormalGLM": {func(x, w *ts.Tensor, b any) dist.Distribution {
			return dist.NormalGLM(torch.Of(x), torch.Of(w), b, scale)
		}, counts,
			func(l, y float64) float64 {
				return -(y-l)*(y-l)/(2*scale*scale) - math.Log(scale*math.Sqrt(2*math.Pi))
			},
			func(l, y float64) float64 { return (y - l) / (scale * scale) }},
	} {
		t.Run(name, func(t *testing.T) {
			countScope(t, func() {
				for _, bias := range []any{countTensor(b), 0.25, 0, torch.Scalar(0.25).T()} {
					wt := torch.Must(torch.Leaf(torch.Of(countTensor(w))))
					leaves := []torch.Tensor{wt}
					if bt, ok := bias.(*ts.Tensor); ok {
						leaf := torch.Must(torch.Leaf(torch.Of(bt)))
						bias, leaves = leaf, append(leaves, leaf)
					}
					g := c.make(countTensor(x, n, d), wt.T(), bias)
					assert.Equal(t, name, g.Name())
					require.Equal(t, []int{n}, g.BatchShape())
					require.NoError(t, g.Validate())
					logp := g.LogProb(torch.Of(countTensor(c.y))).T()
					require.Equal(t, []int{n}, countShape(logp))
					values, grads := countFloats(logp), countGrad(logp, leaves)
					slope := make([]float64, n)
					for i := range n {
						e := eta[i] - b[i]
						switch v := bias.(type) {
						case float64:
							e += v
						case torch.Tensor:
							if len(leaves) == 2 && len(v.Shape()) == 1 {
								e = eta[i]
							} else {
								e += 0.25
							}
						}
						// The predictor itself is a sum of rounded products, so its error is the size of its terms.
						slope[i] = c.slope(e, c.y[i])
						countClose(
							t,
							c.logp(e, c.y[i]),
							values[i],
							1e-10,
							1e-55+1e-13*math.Abs(slope[i])*(1+math.Abs(e))*10,
							"row %d at predictor %v",
							i,
							e,
						)
					}
					size := 1.0
					for _, s := range slope {
						size = math.Max(size, math.Abs(s))
					}
					wantW, wantB := glmGrads(x, slope, d)
					for j := range wantW {
						countClose(t, wantW[j], grads[0][j], 1e-10, 1e-11*size, "gradient in w")
					}
					if len(leaves) == 2 && len(grads[1]) == n {
						for i := range wantB {
							countClose(t, wantB[i], grads[1][i], 1e-10, 1e-11*(1+math.Abs(wantB[i])*50), "gradient in b")
						}
					} else if len(leaves) == 2 {
						total := 0.0
						for _, s := range wantB {
							total += s
						}
						countClose(t, total, grads[1][0], 1e-10, 1e-11*size, "gradient in b")
					}
				}
				// Draws have the shape of the data, and the data is shared by the evaluations of a map over weights.
				g := c.make(countTensor(x, n, d), countTensor(w).MustMulScalar(ts.FloatScalar(0.01), false), 0.5)
				assert.Equal(t, []int{2, n}, countShape(g.Sample(torch.NewSource(1, 1), 2).T()))
				all := countTensor([]float64{0.1, -0.2, 0.3, 1, 2, -1}, 2, d)
				at, loopAt := torch.Must(torch.Leaf(torch.Of(all))), torch.Must(torch.Leaf(torch.Of(all)))
				mapped := torch.Must(torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
					return []torch.Tensor{c.make(countTensor(x, n, d), in[0].T(), 0.5).LogProb(torch.Of(countTensor(c.y)))}, nil
				}, []torch.Tensor{at}, nil))[0]
				loop := ts.MustStack([]*ts.Tensor{
					c.make(countTensor(x, n, d), loopAt.T().MustSelect(0, 0, false), 0.5).LogProb(torch.Of(countTensor(c.y))).T(),
					c.make(countTensor(x, n, d), loopAt.T().MustSelect(0, 1, false), 0.5).LogProb(torch.Of(countTensor(c.y))).T()}, 0)
				want, got := countFloats(loop), countFloats(mapped.T())
				for i := range want {
					countClose(t, want[i], got[i], 1e-10, 1e-13, "under vmap")
				}
				wantG, gotG := countGrad(loop, []torch.Tensor{loopAt})[0], countGrad(mapped.T(), []torch.Tensor{at})[0]
				for i := range wantG {
					countClose(t, wantG[i], gotG[i], 1e-10, 1e-12, "gradient under vmap")
				}
			})
		})
	}
}

func TestCategoricalLogitGLM(t *testing.T) {
	const n, d, classes = 12, 3, 4
	rng := rand.New(rand.NewPCG(6, 6))
	draw := func(k int, scale float64) []float64 {
		out := make([]float64, k)
		for i := range out {
			out[i] = scale * rng.NormFloat64()
		}
		return out
	}
	x, w := draw(n*d, 10), draw(d*classes, 2)
	countScope(t, func() {
		y := make([]float64, n)
		for i := range y {
			y[i] = float64(rng.IntN(classes))
		}
		for _, b := range [][]float64{draw(classes, 1), nil, draw(n*classes, 1)} {
			var bias any = 0
			switch len(b) {
			case classes:
				bias = countTensor(b)
			case n * classes:
				bias = countTensor(b, n, classes)
			}
			wt := torch.Must(torch.Leaf(torch.Of(countTensor(w, d, classes))))
			g := dist.CategoricalLogitGLM(torch.Of(countTensor(x, n, d)), wt, bias)
			assert.Equal(t, "CategoricalLogitGLM", g.Name())
			require.Equal(t, []int{n}, g.BatchShape())
			logp := g.LogProb(torch.Of(countTensor(y))).T()
			grad := countGrad(logp, []torch.Tensor{wt})[0]
			wantGrad := make([]float64, d*classes)
			for i, got := range countFloats(logp) {
				eta := make([]float64, classes)
				for c := range eta {
					switch len(b) {
					case classes:
						eta[c] = b[c]
					case n * classes:
						eta[c] = b[i*classes+c]
					}
					for j := range d {
						eta[c] += x[i*d+j] * w[j*classes+c]
					}
				}
				c := countFamily("CategoricalLogits")
				countClose(t, c.want(eta, y[i]), got, 1e-10, 1e-13, "row %d with logits %v", i, eta)
				for k := range classes {
					p := math.Exp(c.want(eta, float64(k)))
					for j := range d {
						if k == int(y[i]) {
							wantGrad[j*classes+k] += x[i*d+j]
						}
						wantGrad[j*classes+k] -= p * x[i*d+j]
					}
				}
			}
			for i := range grad {
				countClose(t, wantGrad[i], grad[i], 1e-10, 1e-12, "gradient in w")
			}
		}
		all := countTensor(draw(2*d*classes, 1), 2, d, classes)
		mapped := torch.Must(torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
			return []torch.Tensor{dist.CategoricalLogitGLM(torch.Of(countTensor(x, n, d)), in[0],
				0.5).LogProb(torch.Of(countTensor(y)))}, nil
		}, []torch.Tensor{torch.Of(all)}, nil))[0]
		for k := range 2 {
			glm := dist.CategoricalLogitGLM(torch.Of(countTensor(x, n, d)), torch.Of(all.MustSelect(0, int64(k), false)), 0.5)
			want := countFloats(glm.LogProb(torch.Of(countTensor(y))).T())
			got := countFloats(mapped.T().MustSelect(0, int64(k), false))
			for i := range want {
				countClose(t, want[i], got[i], 1e-10, 1e-12, "under vmap")
			}
		}
	})
}

// A matrix of float32 beside weights of float64 counts as float64, like one of whole numbers: values and gradients are
// the same, as the numbers are float32 too. Where all are float32 the result is.
func TestGLMOfFloat32(t *testing.T) {
	x := []float64{1, 2, 0.5, -1, 3, 0.25}
	for name, c := range map[string]struct {
		of    func(x, w, b any) dist.Distribution
		w, y  []float64
		shape []int
	}{
		"NormalGLM": {func(x, w, b any) dist.Distribution { return dist.NormalGLM(x, w, b, 0.7) },
			[]float64{0.3, -0.2}, []float64{1, 2, -1}, []int{2}},
		"PoissonLogGLM":       {dist.PoissonLogGLM, []float64{0.3, -0.2}, []float64{1, 0, 2}, []int{2}},
		"BernoulliLogitGLM":   {dist.BernoulliLogitGLM, []float64{0.3, -0.2}, []float64{1, 0, 1}, []int{2}},
		"CategoricalLogitGLM": {dist.CategoricalLogitGLM, []float64{0.3, -0.2, 0.1, 0.6}, []float64{1, 0, 1}, []int{2, 2}},
	} {
		for _, bias := range []any{0.5, torch.Of(countTensor([]float64{0.5}, 1)).T()} {
			countScope(t, func() {
				double := countTensor(x, 3, 2)
				single := double.MustTotype(gotch.Float, false)
				var values, grads [2][]float64
				for i, x := range []*ts.Tensor{double, single} {
					w := torch.Must(torch.Leaf(torch.Of(countTensor(c.w, c.shape...))))
					logp := c.of(x, w, bias).LogProb(torch.Of(countTensor(c.y))).T()
					assert.Equal(t, gotch.Double, logp.DType(), name)
					values[i], grads[i] = countFloats(logp), countGrad(logp, []torch.Tensor{w})[0]
				}
				assert.Equal(t, values[0], values[1], name)
				assert.Equal(t, grads[0], grads[1], name)
				w := countTensor(c.w, c.shape...).MustTotype(gotch.Float, false)
				all := c.of(single, w, 0.5).LogProb(torch.Of(countTensor(c.y).MustTotype(gotch.Float, false))).T()
				assert.Equal(t, gotch.Float, all.DType(), name)
				assert.InDeltaSlice(t, values[0], countFloats(all), 1e-5, name)
			})
		}
	}
}

// A linear model whose shapes do not fit is an error of whatever is done with it, not of its constructor: the site that
// is given it can then say its name.
func TestGLMThatDoesNotFit(t *testing.T) {
	x, w := torch.Of(countTensor([]float64{1, 2}, 1, 2)), torch.Of(countTensor([]float64{1, 2, 3}, 3))
	const want = "dist.PoissonLogGLM: w is of shape [3]: for x of shape [1 2] its shape must be [2]"
	d := dist.PoissonLogGLM(x, w, 0)
	assert.Equal(t, "PoissonLogGLM", d.Name())
	assert.EqualError(t, d.Validate(), want)
	for _, use := range []func(){
		func() { d.BatchShape() }, func() { d.EventShape() }, func() { d.Support() }, func() { d.LogProb(x) },
		func() { d.Sample(nil) }, func() { d.Mean() }, func() { d.Variance() }, func() { d.Expand(2).Support() },
	} {
		assert.PanicsWithError(t, want, use)
	}
}
