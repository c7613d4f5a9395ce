package loo_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/kelvin-ppl/kelvin/diag/loo"
)

func ExamplePSIS() {
	rng := rand.New(rand.NewPCG(1, 2))
	light, heavy := make([]float64, 4000), make([]float64, 4000)
	for i := range light {
		e := rng.ExpFloat64()
		light[i], heavy[i] = 0.2*e, 0.9*e // log ratios whose ratios have Pareto tails of shape 0.2 and 0.9
	}
	for _, ratios := range [][]float64{light, heavy} {
		r, err := loo.PSIS(ratios, 1)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(r.K < loo.KThreshold(len(ratios)))
	}
	// Output:
	// true
	// false
}

func ExampleCompare() {
	y := []float64{-0.9, 0.1, 0.4, 1.3, -0.2, 0.8, -1.5, 0.6}
	rng := rand.New(rand.NewPCG(1, 2))
	var models []loo.Model
	for _, sigma := range []float64{1, 5} { // a normal mean with known standard deviation
		loglik := make([][]float64, 1000)
		for s := range loglik {
			mu := 0.075 + sigma/math.Sqrt(8)*rng.NormFloat64()
			for _, v := range y {
				z := (v - mu) / sigma
				loglik[s] = append(loglik[s], -z*z/2-math.Log(sigma)-0.5*math.Log(2*math.Pi))
			}
		}
		result, err := loo.LOO(loglik, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		models = append(models, result.Model(fmt.Sprintf("sigma %v", sigma)))
	}
	ranked, err := loo.Compare(models, loo.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(ranked)
	// Output:
	//          rank   elpd     p  elpd_diff  stacking  bma+    se  se_diff
	// sigma 1     0 -11.24  0.79       0.00      1.00  1.00  1.41     0.00
	// sigma 5     1 -20.88  0.10      -9.63      0.00  0.00  0.06     1.35
}
