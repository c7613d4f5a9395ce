package vi_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/vi"
)

// plain is a distribution written out in plain Go: its mean and its factor, of shape [d, n], from the variational
// parameters.
func plain(what string, phi []float64, d, rank int) (mean []float64, f *mat.Dense) {
	mean = phi[len(phi)-d:]
	switch what {
	case "vi.Diag":
		f = mat.NewDense(d, d, nil)
		for i := range d {
			f.Set(i, i, math.Exp(phi[i]))
		}
	case "vi.Dense":
		f = mat.NewDense(d, d, nil)
		at := d
		for i := range d {
			f.Set(i, i, math.Exp(phi[i]))
			for j := range i {
				f.Set(i, j, phi[at])
				at++
			}
		}
	case "vi.LowRank":
		f = mat.NewDense(d, rank+d, nil)
		for i := range d {
			for j := range rank {
				f.Set(i, j, phi[i*rank+j])
			}
			f.Set(i, rank+i, math.Exp(phi[d*rank+i]))
		}
	}
	return mean, f
}

// logDensity is the normal log density of x with mean m and covariance FFᵀ.
func logDensity(x, m []float64, f *mat.Dense) float64 {
	var cov mat.Dense
	cov.Mul(f, f.T())
	d := len(x)
	sym := mat.NewSymDense(d, cov.RawMatrix().Data)
	var chol mat.Cholesky
	if !chol.Factorize(sym) {
		panic("not positive definite")
	}
	delta := mat.NewVecDense(d, nil)
	for i := range d {
		delta.SetVec(i, x[i]-m[i])
	}
	var u mat.VecDense
	if err := chol.SolveVecTo(&u, delta); err != nil {
		panic(err)
	}
	return -0.5*mat.Dot(delta, &u) - 0.5*chol.LogDet() - 0.5*float64(d)*math.Log(2*math.Pi)
}

// bent is a log density that is not normal: −½(x−m)ᵀΛ(x−m) − ⅒Σx⁴, in Go and in tensors.
type bent struct{ normal }

func (b bent) value(x []float64) float64 {
	logp := 0.0
	for i := range x {
		for j := range x {
			logp -= 0.5 * (x[i] - b.m[i]) * b.precision.At(i, j) * (x[j] - b.m[j])
		}
		logp -= 0.1 * math.Pow(x[i], 4)
	}
	return logp
}

func (b bent) logPosterior() infer.LogPosterior {
	quadratic, constant := b.normal.logPosterior(), 0.5*b.logDet()-0.5*float64(len(b.m))*math.Log(2*math.Pi)
	return func(p infer.Params, batch infer.Batch) (torch.Tensor, infer.Aux) {
		q, _ := quadratic(p, batch)
		rest := p.Flat.Square().Square().T().MustSum(p.Flat.T().DType(),
			false).MustMulScalar(ts.FloatScalar(0.1), false)
		return torch.Of(q.Sub(rest).T().MustSubScalar(ts.FloatScalar(constant), false)), nil
	}
}

// objective is −NELBO for given noise, S samples one after the other; log q has the parameters frozen where they are
// given, else φ.
func objective(what string, target bent, phi, frozen, eps []float64, rank int, temperature float64) (value float64) {
	d := len(target.m)
	mean, f := plain(what, phi, d, rank)
	qMean, qf := mean, f
	if frozen != nil {
		qMean, qf = plain(what, frozen, d, rank)
	}
	_, n := f.Dims()
	samples := len(eps) / n
	for s := range samples {
		theta := make([]float64, d)
		for i := range d {
			theta[i] = mean[i]
			for j := range n {
				theta[i] += f.At(i, j) * eps[s*n+j]
			}
		}
		value += (target.value(theta) - temperature*logDensity(theta, qMean, qf)) / float64(samples)
	}
	return value
}

// The gradient in every variational parameter against central differences of the objective for the same noise, written
// out in plain Go. Sticking the landing is the objective with log q frozen. The value is compared too.
func TestGradientIsThatOfTheObjectiveForItsNoise(t *testing.T) {
	const d, rank, samples, chains, h = 4, 2, 3, 2, 1e-5
	target := bent{correlated(d)}
	yes := true
	for _, temperature := range []float64{0, 0.7} {
		for _, stick := range []*bool{&no, &yes, nil} {
			for what, method := range methods(climb, samples, temperature, stick) {
				t.Run(name("%s T=%g stick=%v", what, temperature, stick == nil || *stick), func(t *testing.T) {
					transform := build(t, method, target.logPosterior())
					s := begin(t, transform, params(target.layout(), spread(chains*d), chains), 3)
					size := s.Variational().Layout.Dim()
					phi := spread(5 + chains*size)[5:]
					place(t, s, phi)
					streams := s.Streams
					width := d
					if what == "vi.LowRank" {
						width += rank
					}
					eps := values(must(streams.Normal([]int{samples, width}, gotch.Double, gotch.CPU)).T())
					next, info := update(t, transform, s, nil)
					moved := must(next.Variational().Values())
					for k := range chains {
						own, noise := phi[k*size:(k+1)*size], eps[k*samples*width:(k+1)*samples*width]
						var frozen []float64
						if stick != &no {
							frozen = own
						}
						assert.InDelta(t, -objective(what, target, own, frozen, noise, rank, temperature),
							info.Stats["nelbo"][k], 1e-10)
						norm := 0.0
						for i := range own {
							shifted := append([]float64{}, own...)
							shifted[i] += h
							up := objective(what, target, shifted, frozen, noise, rank, temperature)
							shifted[i] -= 2 * h
							want := (up - objective(what, target, shifted, frozen, noise, rank, temperature)) / (2 * h)
							got := moved[k*size+i] - own[i]
							assert.InDelta(t, want, got, 2e-7*(1+math.Abs(want)), "%s of chain %d",
								s.Variational().Layout.At(i), k)
							norm += got * got
						}
						assert.InDelta(t, math.Sqrt(norm), info.GradNorm[k], 1e-10*(1+norm))
					}
				})
			}
		}
	}
}

// optimum is the variational parameters at which the distribution is the target's at temperature T, where the family
// has it.
func optimum(what string, n normal, temperature float64) []float64 {
	d := len(n.m)
	var phi []float64
	switch what {
	case "vi.Diag":
		for i := range d {
			phi = append(phi, 0.5*math.Log(temperature/n.precision.At(i, i)))
		}
	case "vi.Dense":
		var chol mat.Cholesky
		if !chol.Factorize(mat.NewSymDense(d, n.covariance(temperature))) {
			panic("not positive definite")
		}
		var l mat.TriDense
		chol.LTo(&l)
		var lower []float64
		for i := range d {
			phi = append(phi, math.Log(l.At(i, i)))
			for j := range i {
				lower = append(lower, l.At(i, j))
			}
		}
		phi = append(phi, lower...)
	}
	return append(phi, n.m...)
}

// lowRankNormal is the normal distribution of variational parameters of LowRank, of covariance TΛ⁻¹.
func lowRankNormal(phi []float64, d, rank int, temperature float64) normal {
	mean, f := plain("vi.LowRank", phi, d, rank)
	var cov, inverse mat.Dense
	cov.Mul(f, f.T())
	if err := inverse.Inverse(&cov); err != nil {
		panic(err)
	}
	p := mat.NewSymDense(d, nil)
	for i := range d {
		for j := range i + 1 {
			p.SetSym(i, j, temperature*0.5*(inverse.At(i, j)+inverse.At(j, i)))
		}
	}
	return normal{m: mean, precision: p}
}

// diagonal drops the correlations.
func (n normal) diagonal() normal {
	d := len(n.m)
	p := mat.NewSymDense(d, nil)
	for i := range d {
		p.SetSym(i, i, n.precision.At(i, i))
	}
	return normal{m: n.m, precision: p}
}

// exact are targets that a family has, with the variational parameters.
func exact(temperature float64) map[string]struct {
	target normal
	phi    []float64
} {
	const d, rank = 4, 2
	own := correlated(d)
	low := spread(d*rank + 2*d)
	return map[string]struct {
		target normal
		phi    []float64
	}{
		"vi.Diag":    {own.diagonal(), optimum("vi.Diag", own.diagonal(), temperature)},
		"vi.Dense":   {own, optimum("vi.Dense", own, temperature)},
		"vi.LowRank": {lowRankNormal(low, d, rank, temperature), low},
	}
}

// Where q is p the NELBO of a normalised density at T = 1 is 0 for each single sample, since log p − log q is; and
// sticking the landing the gradient is 0 for each single sample, in the mean and in the scale, at any temperature. With
// the score it is not.
func TestLandingIsStuckWhereQIsP(t *testing.T) {
	for _, temperature := range []float64{0.25, 1} {
		for what, at := range exact(temperature) {
			t.Run(name("%s T=%g", what, temperature), func(t *testing.T) {
				const chains = 8
				for _, stick := range []*bool{nil, &no} {
					transform := build(t, methods(climb, 1, temperature, stick)[what], at.target.logPosterior())
					s := begin(t, transform, params(at.target.layout(), repeated(at.target.m, chains), chains), 1)
					place(t, s, repeated(at.phi, chains))
					next, info := update(t, transform, s, nil)
					for k := range chains {
						if stick == nil {
							assert.Less(t, info.GradNorm[k], 1e-13, "the gradient of one sample")
						} else {
							assert.Greater(t, info.GradNorm[k], 0.05, "with the score")
						}
						if temperature == 1 {
							assert.InDelta(t, 0, info.Stats["nelbo"][k], 1e-13)
						}
						assert.Greater(t, math.Abs(info.LogPosterior[k]), 1e-3, "the samples differ")
					}
					if stick == nil {
						within(t, repeated(at.phi, chains), must(next.Variational().Values()), 1e-13,
							"the parameters stay")
					}
				}
			})
		}
	}
}

// expectedGradient is the gradient of −NELBO in the variational parameters for a normal target, in closed form: with G
// = TΣ⁻¹ − Λ, the gradient in Σ is ½G, hence GF in the factor F, and Λ(m − μ) in the mean.
func expectedGradient(what string, n normal, phi []float64, rank int, temperature float64) []float64 {
	d := len(n.m)
	mean, f := plain(what, phi, d, rank)
	var cov, g, gf mat.Dense
	cov.Mul(f, f.T())
	if err := g.Inverse(&cov); err != nil {
		panic(err)
	}
	g.Scale(temperature, &g)
	g.Sub(&g, n.precision)
	gf.Mul(&g, f)
	var out, lower []float64
	for i := range d {
		switch what {
		case "vi.LowRank":
			out = append(out, gf.RawRowView(i)[:rank]...)
			lower = append(lower, gf.At(i, rank+i)*f.At(i, rank+i))
		default:
			out = append(out, gf.At(i, i)*f.At(i, i))
			if what == "vi.Dense" {
				lower = append(lower, gf.RawRowView(i)[:i]...)
			}
		}
	}
	out = append(out, lower...)
	for i := range d {
		v := 0.0
		for j := range d {
			v += n.precision.At(i, j) * (n.m[j] - mean[j])
		}
		out = append(out, v)
	}
	return out
}

// expectedNELBO is the NELBO for a normal target, in closed form.
func expectedNELBO(what string, n normal, phi []float64, rank int, temperature float64) float64 {
	d := len(n.m)
	mean, f := plain(what, phi, d, rank)
	var cov, lc mat.Dense
	cov.Mul(f, f.T())
	lc.Mul(n.precision, &cov)
	logp := 0.5*n.logDet() - 0.5*float64(d)*math.Log(2*math.Pi) - 0.5*mat.Trace(&lc)
	for i := range d {
		for j := range d {
			logp -= 0.5 * (mean[i] - n.m[i]) * n.precision.At(i, j) * (mean[j] - n.m[j])
		}
	}
	logDet, _ := mat.LogDet(&cov)
	logq := -0.5*logDet - 0.5*float64(d)*(1+math.Log(2*math.Pi))
	return -logp + temperature*logq
}

// Over many chains at one place with noise of their own, the gradients with and without the score have one mean, the
// gradient of the NELBO in closed form, within 4 standard errors. So has the NELBO; at T = 1 that is the divergence
// KL(q‖p).
func TestGradientsAndNELBOHaveTheRightMean(t *testing.T) {
	const d, rank, chains = 3, 2, 20000
	n := correlated(d)
	for _, temperature := range []float64{0.25, 1} {
		means, errors := map[string][]float64{}, map[string][]float64{}
		for _, stick := range []*bool{nil, &no} {
			for what, method := range methods(climb, 1, temperature, stick) {
				transform := build(t, method, n.logPosterior())
				s := begin(t, transform, params(n.layout(), make([]float64, chains*d), chains), 5)
				size := s.Variational().Layout.Dim()
				phi := spread(9 + size)[9:]
				place(t, s, repeated(phi, chains))
				next, info := update(t, transform, s, nil)
				grads := must(next.Variational().Values())
				for i := range grads {
					grads[i] -= phi[i%size]
				}
				mean, se := moments(grads, size)
				want := expectedGradient(what, n, phi, rank, temperature)
				require.Len(t, want, size)
				for i := range want {
					assert.InDelta(t, want[i], mean[i], 4*se[i], "%s, T = %g, stick %v: %s", what, temperature,
						stick == nil, s.Variational().Layout.At(i))
				}
				if before, ok := means[what]; ok {
					// The noise is the same, so that the difference has less noise than the two together.
					for i := range mean {
						assert.InDelta(t, before[i], mean[i], 4*math.Hypot(errors[what][i], se[i]),
							"%s: with and without the score", what)
					}
				}
				means[what], errors[what] = mean, se
				nelbo, nelboSE := moments(info.Stats["nelbo"], 1)
				assert.InDelta(t, expectedNELBO(what, n, phi, rank, temperature), nelbo[0], 4*nelboSE[0], "%s: NELBO",
					what)
				if temperature == 1 {
					assert.Greater(t, nelbo[0], 0.1, "the divergence")
				}
			}
		}
	}
}

// Pairs of opposite noise leave no noise in the gradient of the mean of a normal density, and halve the draws.
func TestAntitheticSamples(t *testing.T) {
	n := correlated(3)
	for what, method := range map[string]infer.Method{
		"vi.Diag":    vi.Diag{Optimizer: climb, Samples: 4, Antithetic: true},
		"vi.Dense":   vi.Dense{Optimizer: climb, Samples: 4, Antithetic: true},
		"vi.LowRank": vi.LowRank{Optimizer: climb, Samples: 4, Antithetic: true},
	} {
		transform := build(t, method, n.logPosterior())
		s := begin(t, transform, params(n.layout(), []float64{1, -2, 0.5}, 0), 1)
		before := s.Streams.Offset
		next, _ := update(t, transform, s, nil)
		phi := must(s.Variational().Values())
		want := expectedGradient(what, n, phi, 2, 1)
		got := must(next.Mean.Values())
		for i := range got {
			assert.InDelta(t, want[len(want)-3+i], got[i]-phi[len(phi)-3+i], 1e-12, what)
		}
		width := uint64(3)
		if what == "vi.LowRank" {
			width = 5
		}
		assert.LessOrEqual(t, next.Streams.Offset-before, 2*width, what) // one position gives two numbers
	}
}
