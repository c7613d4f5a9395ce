// Package bench holds the densities that Kelvin's benchmarks evaluate: a logistic regression that spends its time in
// one matrix product, and eight schools, a small model that spends its time between operations.
//
//	go test -bench . ./bench     Kelvin alone
//	go run ./bench/compare       Kelvin against the same operations in C++
//	go run ./bench/memory        a million gradients in flat memory
package bench

import (
	"math"
	"math/rand/v2"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// Logistic is a Bayesian logistic regression, w ~ N(0, I), P(y_i = 1) = sigmoid(x_i . w), on made-up data.
type Logistic struct {
	X     []float64 // [N, Dim]
	Sign  []float64 // [N]: 1 where y is 1, -1 where y is 0
	N, D  int
	x, sg torch.Tensor
}

// NewLogistic draws n data of d standard normal features, the same at every call, and puts them on a device.
func NewLogistic(n, d int, device gotch.Device) (*Logistic, error) {
	rng := rand.New(rand.NewPCG(1000, 25))
	m := &Logistic{X: make([]float64, n*d), Sign: make([]float64, n), N: n, D: d}
	for i := range n {
		eta := 0.0
		for j := range d {
			v := rng.NormFloat64()
			m.X[i*d+j] = v
			eta += v * math.Sin(float64(j)) // the weights that the labels are drawn with
		}
		m.Sign[i] = -1
		if rng.Float64() < 1/(1+math.Exp(-eta)) {
			m.Sign[i] = 1
		}
	}
	var err error
	if m.x, err = torch.FromSliceOn(device, gotch.Double, m.X, n, d); err != nil {
		return nil, err
	}
	m.sg, err = torch.FromSliceOn(device, gotch.Double, m.Sign)
	return m, err
}

// LogDensity is the log posterior at w, of shape [D], without the normalising constants:
// sum_i log sigmoid(s_i x_i . w) - |w|^2 / 2.
func (m *Logistic) LogDensity(w torch.Tensor) torch.Tensor {
	logLik := m.x.T().MustMv(w.T(), false).MustMul(m.sg.T(), false).MustLogSigmoid(false).MustSum(gotch.Double, false)
	logPrior := w.Square().T().MustSum(gotch.Double, false).MustMulScalar(ts.FloatScalar(-0.5), false)
	return torch.Of(logPrior.MustAdd(logLik, false))
}

// Start is a point to evaluate at.
func (m *Logistic) Start() []float64 {
	w := make([]float64, m.D)
	for j := range w {
		w[j] = 0.3 * math.Cos(float64(j))
	}
	return w
}

// The data of eight schools: estimated effects of coaching and their standard errors (Rubin 1981, table 1).
var (
	SchoolsY     = []float64{28, 8, -3, 7, -1, 1, 18, 12}
	SchoolsSigma = []float64{15, 10, 16, 11, 9, 11, 10, 18}
)

// SchoolsDim is the number of parameters of eight schools: mu, log tau, and z for each school.
const SchoolsDim = 10

// Schools is the eight-schools model, non-centred: mu ~ N(0, 5), tau ~ half-Cauchy(0, 5), z_j ~ N(0, 1),
// y_j ~ N(mu + tau z_j, sigma_j).
type Schools struct {
	y, sigma torch.Tensor
}

// NewSchools puts the data on a device.
func NewSchools(device gotch.Device) (*Schools, error) {
	y, err := torch.FromSliceOn(device, gotch.Double, SchoolsY)
	if err != nil {
		return nil, err
	}
	sigma, err := torch.FromSliceOn(device, gotch.Double, SchoolsSigma)
	return &Schools{y: y, sigma: sigma}, err
}

// LogDensity is the log posterior at x = (mu, log tau, z), of shape [10], with the Jacobian of the logarithm and
// without the normalising constants: -sum_j ((y_j - mu - tau z_j) / sigma_j)^2 / 2 - |z|^2 / 2 - (mu / 5)^2 / 2 - log(1
// + (tau / 5)^2) + log tau.
func (m *Schools) LogDensity(x torch.Tensor) torch.Tensor {
	mu, logTau, z := x.At(0).T(), x.At(1).T(), x.T().MustNarrow(0, 2, 8, false)
	tau := logTau.MustExp(false)
	theta := z.MustMul(tau, false).MustAdd(mu, false)
	logLik := halfSquares(torch.Of(m.y.Sub(theta).Div(m.sigma).Square().T().MustSum(gotch.Double, false)))
	priorZ := halfSquares(torch.Of(z.MustSquare(false).MustSum(gotch.Double, false)))
	priorMu := halfSquares(torch.Of(mu.MustDivScalar(ts.FloatScalar(5), false).MustSquare(false)))
	priorTau := tau.MustDivScalar(ts.FloatScalar(5), false).MustSquare(false).MustLog1p(false)
	return logLik.Add(priorZ).Add(priorMu).Sub(priorTau).Add(logTau)
}

func halfSquares(sum torch.Tensor) torch.Tensor {
	return torch.Of(sum.T().MustMulScalar(ts.FloatScalar(-0.5), false))
}

// SchoolsStart is a point for each of k chains, in k rows.
func SchoolsStart(k int) []float64 {
	x := make([]float64, k*SchoolsDim)
	for i := range x {
		x[i] = math.Sin(1.7*float64(i) + 0.3)
	}
	return x
}
