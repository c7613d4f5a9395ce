package thermo_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/kelvin-ppl/kelvin/diag/thermo"
)

func ExampleDiagnose() {
	rng := rand.New(rand.NewPCG(1, 2))
	var kinetic thermo.Kinetic
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
	report, err := thermo.Diagnose(thermo.Simulation{Kinetic: &kinetic}, thermo.Options{})
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

func ExampleGradientNoiseResult_Against() {
	rng := rand.New(rand.NewPCG(1, 2))
	var noise thermo.GradientNoise
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
	fmt.Printf("%.2f times the injected noise, dominates: %v\n", share.Mean, share.Dominates)
	// Output:
	// 4.48 times the injected noise, dominates: true
}
