package diag_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/kelvin-ppl/kelvin/diag"
)

func ExampleDiagnoseSimulation() {
	rng := rand.New(rand.NewPCG(1, 2))
	var kinetic diag.Kinetic
	m := make([]float64, 50)
	for range 20 { // the ends of 20 cycles at T = 0.1, with half the noise there should be
		for i := range m {
			m[i] = math.Sqrt(0.05) * rng.NormFloat64()
		}
		if _, err := kinetic.Add("dense", 0, m, nil, 0.1); err != nil {
			fmt.Println(err)
			return
		}
	}
	report, err := diag.DiagnoseSimulation(diag.Simulation{Kinetic: &kinetic}, diag.SimulationOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.OK())
	for _, f := range report.Findings {
		fmt.Println(f.Severity, f.Code, f.Site, math.Round(100*f.Figure)/100)
	}
	// Output:
	// false
	// serious kinetic_cold dense 0.49
	// serious kinetic_coverage  0.25
}

func ExampleKineticInterval() {
	for _, d := range []int{1, 10, 1000, 1000000} {
		low, high, err := diag.KineticInterval(d, 0.1, 0)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%7d momenta: %.5f to %.5f\n", d, low, high)
	}
	// Output:
	//       1 momenta: 0.00000 to 0.78794
	//      10 momenta: 0.02156 to 0.25188
	//    1000 momenta: 0.08886 to 0.11189
	// 1000000 momenta: 0.09964 to 0.10036
}

func ExampleGradientNoiseResult_Against() {
	rng := rand.New(rand.NewPCG(1, 2))
	noise, err := diag.NewGradientNoise(3)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 100 { // gradients of minibatches at one θ
		if err := noise.Add([]float64{1 + rng.NormFloat64(), -2 + rng.NormFloat64(), rng.NormFloat64()}); err != nil {
			fmt.Println(err)
			return
		}
	}
	r, err := noise.Result()
	if err != nil {
		fmt.Println(err)
		return
	}
	const step, temperature = 0.1, 0.01
	share, err := r.Against(step, 2*temperature*step) // SGLD
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(share.Message)
	// Output:
	// gradient noise is 4.48 times the injected noise and dominates it: use a smaller step, larger batches, more friction, or a thermostat
}
