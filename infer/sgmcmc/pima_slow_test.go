//go:build slow

package sgmcmc_test

import (
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
)

// The posterior of Bayesian logistic regression on the Pima Indians diabetes data: prior N(0, I), no intercept,
// features standardised. These are the moments of 60,000 draws of Hamiltonian Monte Carlo, an independent
// implementation without discretisation bias. The standard error of a mean is about 0.0006, which makes it 0.0006/√2
// for a standard deviation, as both come from equally many effective draws of a nearly normal law.
var (
	pimaMean = []float64{0.3883, 1.0864, -0.2453, 0.0206, -0.1562, 0.5947, 0.3247, 0.1268}
	pimaSD   = []float64{0.1052, 0.1177, 0.0994, 0.1054, 0.1067, 0.1089, 0.0963, 0.1065}
)

const (
	patients    = 768
	features    = 8
	pimaMeanErr = 0.0006
	pimaSDErr   = pimaMeanErr / math.Sqrt2
)

// pima are the standardised features and the labels 0 and 1.
func pima(t *testing.T) (x *mat.Dense, y []float64) {
	file, err := os.Open("../../examples/internal/pima/pima.csv")
	require.NoError(t, err)
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, patients+1)
	x, y = mat.NewDense(patients, features, nil), make([]float64, patients)
	for j := range features + 1 {
		column := make([]float64, patients)
		for i, row := range rows[1:] {
			column[i], err = strconv.ParseFloat(row[j], 64)
			require.NoError(t, err)
		}
		if j == features {
			copy(y, column)
			break
		}
		mean, sd := stat.PopMeanStdDev(column, nil)
		for i, v := range column {
			x.Set(i, j, (v-mean)/sd)
		}
	}
	return x, y
}

// curvature is what the mean log posterior of the logistic regression is like at its mode, found by Newton's method:
// the precision H = −∇² and the third derivatives.
func curvature(t *testing.T, x *mat.Dense, y []float64) (h *mat.SymDense, third [features][features][features]float64) {
	var w [features]float64
	for range 30 {
		var g [features]float64
		h = mat.NewSymDense(features, nil)
		third = [features][features][features]float64{}
		for i := range features {
			g[i] = -w[i] / patients
			h.SetSym(i, i, 1.0/patients)
		}
		for n := range patients {
			row := x.RawRowView(n)
			f := 0.0
			for i, v := range row {
				f += v * w[i]
			}
			p := 1 / (1 + math.Exp(-f))
			for i, a := range row {
				g[i] += (y[n] - p) * a / patients
				for j, b := range row {
					if j >= i {
						h.SetSym(i, j, h.At(i, j)+p*(1-p)*a*b/patients)
					}
					for k, c := range row {
						third[i][j][k] -= p * (1 - p) * (1 - 2*p) * a * b * c / patients
					}
				}
			}
		}
		var step mat.VecDense
		require.NoError(t, step.SolveVec(h, mat.NewVecDense(features, g[:])))
		for i := range w {
			w[i] += step.AtVec(i)
		}
		if mat.Norm(&step, 2) < 1e-13 {
			return h, third
		}
	}
	t.Fatal("Newton's method did not find the mode")
	return nil, third
}

// The samplers have the moments of the reference at the step size zero. At a finite one they are off, to first order in
// the step, by what the recursion says for the Gaussian of the posterior's curvature at its mode: the covariance by δΣ
// = Σ(ε) − TH⁻¹, and with it the mean by ½H⁻¹ times the third derivatives in δΣ, because the mean gradient is zero in
// the stationary law of both methods whatever the step. The law is within a few per cent of that Gaussian (768 data for
// 8 parameters), and δΣ is a few per cent of Σ: what is left out is at most a few thousandths of a variance, which is a
// fraction of one standard error here.
//
// 16 comparisons for each of two methods at four standard errors: they fail for about one seed in 500.
func TestPimaPosterior(t *testing.T) {
	x, y := pima(t)
	h, third := curvature(t, x, y)
	signs := make([]float64, patients)
	for i, v := range y {
		signs[i] = 2*v - 1
	}
	data := infer.Batch{"x": torch.Of(vector(x.RawMatrix().Data, patients, features)), "y": torch.Of(vector(signs))}
	mean := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		w := p.Get("w").T()
		prior := w.MustDot(w, false).MustMulScalar(ts.FloatScalar(-0.5/patients), false)
		likelihood := b.Get("x").T().MustMv(w, false).MustMul(b.Get("y").T(),
			false).MustLogSigmoid(false).MustMean(gotch.Double, false)
		return torch.Of(prior.MustAdd(likelihood, false)), nil
	}
	for _, e := range []experiment{
		{setting: setting{eps: 0.4}},
		{setting: setting{eps: 0.1, alpha: 0.6, sigma: 1}, momenta: true},
	} {
		e.precision, e.temperature = h, 1.0/patients
		t.Run(e.String(), func(t *testing.T) {
			sigma, ideal := e.law().covariance(), e.ideal(e.momenta)
			wantMean, wantSD := make([]float64, features), make([]float64, features)
			var pull, shift mat.VecDense
			pull.ReuseAsVec(features)
			for i := range features {
				wantSD[i] = pimaSD[i] * math.Sqrt(sigma.At(i, i)/ideal.At(i, i))
				for j := range features {
					for k := range features {
						pull.SetVec(i, pull.AtVec(i)+0.5*third[i][j][k]*(sigma.At(j, k)-ideal.At(j, k)))
					}
				}
			}
			require.NoError(t, shift.SolveVec(h, &pull))
			for i := range features {
				wantMean[i] = pimaMean[i] + shift.AtVec(i)
			}

			const chains, updates, thin = 64, 40_000, 10
			method := infer.Method(sgmcmc.SGLD{LR: infer.Constant(e.eps), Temperature: infer.Constant(e.temperature)})
			if e.momenta {
				method = sgmcmc.SGHMC{LR: infer.Constant(e.eps), Alpha: infer.Constant(e.alpha),
					Temperature: infer.Constant(e.temperature)}
			}
			m, point, settle := newMoments(features, chains), make([]float64, features), e.law().settle()
			start := params(layout(infer.Shapes{"w": {features}}), make([]float64, chains*features), chains)
			run(t, build(t, method, mean), start, infer.Full(data), settle+updates, 1, func(s infer.State) {
				if s.Steps() <= settle || s.Steps()%thin != 0 {
					return
				}
				m.count++
				w := values(s.Position().Flat.T())
				for k := range chains {
					for i := range features {
						point[i] = w[k*features+i] - wantMean[i]
					}
					m.add(k, point, 1)
				}
			})

			worst, at := 0.0, features
			for i := range features {
				off, se := m.estimate(i)
				z := math.Abs(off) / math.Hypot(se, pimaMeanErr)
				assert.LessOrEqualf(t, z, float64(allowed), "mean %d is %.5f, want %.5f", i, wantMean[i]+off,
					wantMean[i])
				square, squareErr := m.estimate(at)
				at += features - i
				sd := math.Sqrt(square)
				zsd := math.Abs(sd-wantSD[i]) / math.Hypot(squareErr/(2*sd), pimaSDErr)
				assert.LessOrEqualf(t, zsd, float64(allowed), "sd %d is %.5f, want %.5f", i, sd, wantSD[i])
				worst = max(worst, z, zsd)
				assert.Less(t, se, 0.01*sd, "the run is worth fewer than 10,000 independent draws")
				t.Logf("mean %8.5f (%.5f, want %8.5f, reference %7.4f), sd %.5f (%.5f, want %.5f, reference %.4f)",
					wantMean[i]+off, se, wantMean[i], pimaMean[i], sd, squareErr/(2*sd), wantSD[i], pimaSD[i])
			}
			t.Logf("the worst is off by %.2f combined standard errors", worst)
		})
	}
}
