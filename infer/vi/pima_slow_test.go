//go:build slow

package vi_test

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
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/vi"
)

const patients, features = 768, 8

// pima is the standardised features, row by row, and the diagnoses as signs.
func pima(t testing.TB) (x, y []float64) {
	t.Helper()
	f, err := os.Open("../../examples/internal/pima/pima.csv")
	require.NoError(t, err)
	defer f.Close()
	table, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	require.Len(t, table, patients+1)
	x, y = make([]float64, patients*features), make([]float64, patients)
	column := make([]float64, patients)
	for j := range features + 1 {
		for i := range column {
			column[i], err = strconv.ParseFloat(table[i+1][j], 64)
			require.NoError(t, err)
		}
		mean, sd := stat.PopMeanStdDev(column, nil)
		for i, v := range column {
			if j == features {
				y[i] = 2*v - 1
			} else {
				x[i*features+j] = (v - mean) / sd
			}
		}
	}
	return x, y
}

// logistic is the mean log posterior of a logistic regression without an intercept, with prior N(0, 1); it goes with T
// = 1/768.
func logistic(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
	w := p.Get("w").T()
	prior := w.MustDot(w, false).MustMulScalar(ts.FloatScalar(-0.5/patients), false)
	likelihood := b.Get("x").T().MustMv(w, false).MustMul(b.Get("y").T(),
		false).MustLogSigmoid(false).MustMean(gotch.Double, false)
	return torch.Of(prior.MustAdd(likelihood, false)), nil
}

// mode is the mode of the logistic regression by Newton's method, and the precision I + XᵀWX there.
func mode(x, y []float64) ([]float64, *mat.SymDense) {
	w := mat.NewVecDense(features, nil)
	precision := mat.NewSymDense(features, nil)
	for range 20 {
		gradient := mat.NewVecDense(features, nil)
		gradient.ScaleVec(-1, w)
		precision.Zero()
		for i := range features {
			precision.SetSym(i, i, 1)
		}
		for i := range y {
			row := mat.NewVecDense(features, x[i*features:(i+1)*features])
			p := 1 / (1 + math.Exp(-mat.Dot(row, w)))
			gradient.AddScaledVec(gradient, (y[i]+1)/2-p, row)
			precision.SymRankOne(precision, p*(1-p), row)
		}
		var step mat.VecDense
		if err := step.SolveVec(precision, gradient); err != nil {
			panic(err)
		}
		w.AddVec(w, &step)
	}
	return w.RawVector().Data, precision
}

// The posterior means of a long run of Hamiltonian Monte Carlo. The step size does not decay here, and there is one
// sample in an update, so that the means still move by about 0.01.
func TestPimaDiag(t *testing.T) {
	x, y := pima(t)
	b := infer.Batch{"x": torch.Of(vector(x, patients, features)), "y": torch.Of(vector(y))}
	l := layout(infer.Shapes{"w": {features}})
	transform := build(t, vi.Diag{Optimizer: optim.Adam{LR: infer.Constant(1e-3)}, Samples: 1, InitScale: 1,
		Temperature: infer.Constant(1.0 / patients)}, logistic)
	s := fitted(t, transform, params(l, make([]float64, features), 0), b, 8000, 1)
	within(t, []float64{0.3883, 1.0864, -0.2453, 0.0206, -0.1562, 0.5947, 0.3247, 0.1268}, must(s.Mean.Values()), 0.03,
		"mean")
}

// With many samples and a step size that falls to zero, the variances are those of a normal posterior with the
// precision Λ at the mode: 1/Λ_ii for independent elements, and Λ⁻¹ for a dense covariance. (The posterior is near to
// normal: 768 data for 8 parameters.)
func TestPimaStandardDeviations(t *testing.T) {
	const steps = 1200
	x, y := pima(t)
	_, precision := mode(x, y)
	var covariance mat.Dense
	require.NoError(t, covariance.Inverse(precision))
	b := infer.Batch{"x": torch.Of(vector(x, patients, features)), "y": torch.Of(vector(y))}
	l := layout(infer.Shapes{"w": {features}})
	temperature := infer.Constant(1.0 / patients)
	for what, method := range map[string]infer.Method{
		"vi.Diag": vi.Diag{Optimizer: decaying(0.02, steps), Samples: 32, Antithetic: true, Temperature: temperature,
			InitScale: 0.13},
		"vi.Dense": vi.Dense{Optimizer: decaying(0.02, steps), Samples: 32, Antithetic: true, Temperature: temperature,
			InitScale: 0.1},
	} {
		s := fitted(t, build(t, method, logistic), params(l, make([]float64, features), 0), b, steps, 1)
		for i, sd := range must(must(s.SD()).Values()) {
			want := 1 / math.Sqrt(precision.At(i, i))
			if what == "vi.Dense" {
				want = math.Sqrt(covariance.At(i, i))
			}
			assert.InEpsilon(t, want, sd, 0.03, "%s: standard deviation %d", what, i)
		}
	}
}
