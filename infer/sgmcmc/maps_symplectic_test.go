package sgmcmc_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
)

// At T = 0 the sampler is SGD bit for bit; at T its noise in the velocity has the variance that the map says.
func TestSymplecticIsSGDAtZeroTemperature(t *testing.T) {
	q := newQuartic()
	const lr, momentum, n = 0.02, 0.9, 40
	e := must(sgmcmc.FromSGD(lr, momentum, n))
	cold := build(t, e.Symplectic(zero), q.logPosterior)
	sgd := build(t, optim.SGD{LR: infer.Constant(lr), Momentum: momentum}, q.logPosterior)
	start, batch := params(q.layout, spread(q.layout.Dim()), 0), q.batch()
	a, b := begin[infer.State](t, cold, start, 1), begin[infer.State](t, sgd, start, 1)
	for step := range 100 {
		a, _ = update(t, cold, a, batch)
		b, _ = update(t, sgd, b, batch)
		if !identical(t, values(b.Position().Flat.T()), values(a.Position().Flat.T()), name("update %d", step)) {
			return
		}
	}

	// The same momenta and gradient with noise and without: what is between them is √(variance) z.
	config, still := e.Symplectic(infer.Constant(0.7)), e.Symplectic(zero)
	config.Momenta = torch.Of(vector(spread(q.layout.Dim())))
	still.Momenta = config.Momenta
	warm := must(config.Build(infer.Mean(q.logPosterior, n)))
	cold = must(still.Build(infer.Mean(q.logPosterior, n)))
	s := begin[sgmcmc.SymplecticSGHMCState](t, warm, start, 5)
	z := noise(t, s.Streams, s.Momenta)
	x, _ := update(t, warm, s, batch)
	y, _ := update(t, cold, begin[sgmcmc.SymplecticSGHMCState](t, cold, start, 5), batch)
	for i, v := range values(x.Params.Flat.T()) {
		require.InDelta(t, math.Sqrt(2*(1-momentum)*lr*0.7/n)*z[i], v-values(y.Params.Flat.T())[i], golden)
	}
}

// SGD with learning rate 0.01 and momentum 0.9 on the mean loss of 25 000 data, as samplers of the Bayes posterior.
func ExampleFromSGD() {
	e, err := sgmcmc.FromSGD(0.01, 0.9, 25000)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("Wenzel et al.: h = %.6f, γ = %.2f\n", e.Step, e.Friction)
	fmt.Printf("SGHMC: ε = %.1f, α = %.1f, σ = %.1f\n", e.Epsilon, e.Alpha, e.Sigma)

	back, err := sgmcmc.FromLangevin(e.Step, e.Friction, e.N)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("and back: learning rate %.2f, momentum %.1f\n", back.LR, back.Momentum)
	// Output:
	// Wenzel et al.: h = 0.000632, γ = 158.11
	// SGHMC: ε = 0.1, α = 1.0, σ = 1.0
	// and back: learning rate 0.01, momentum 0.9
}
