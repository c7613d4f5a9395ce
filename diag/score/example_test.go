package score_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/kelvin-ppl/kelvin/diag/score"
)

func ExamplePredictive() {
	draws := [][][]float64{ // logits of 2 cases and 2 classes under 3 draws
		{{2, 0}, {0, 1}},
		{{3, 0}, {2, 0}},
		{{1, 0}, {0, 4}},
	}
	p, err := score.NewPredictive(2, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, logits := range draws {
		if err := p.AddLogits(logits); err != nil {
			fmt.Println(err)
			return
		}
	}
	scores, err := score.Score(p.LogMean(), []int{0, 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.3f\n%.3f accuracy %v\n", p.Mean(), scores.LogLoss, scores.Accuracy)
	for _, u := range p.Uncertainty() {
		fmt.Printf("total %.3f aleatoric %.3f epistemic %.3f\n", u.Total, u.Aleatoric, u.Epistemic)
	}
	// Output:
	// [[0.855 0.145] [0.389 0.611]]
	// 0.325 accuracy 1
	// total 0.414 aleatoric 0.379 epistemic 0.035
	// total 0.668 aleatoric 0.346 epistemic 0.323
}

func ExampleFitTemperature() {
	// Logits of ±5 that are right three times in four: σ(5/T) should be 3/4.
	logits := [][]float64{{0, 5}, {0, 5}, {5, 0}, {5, 0}}
	fit, err := score.FitTemperature(logits, []int{1, 1, 0, 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("T %.3f, log loss %.3f to %.3f\n", fit.T, fit.Before, fit.After)
	// Output:
	// T 4.551, log loss 1.257 to 0.562
}

func ExampleReliability_String() {
	rng := rand.New(rand.NewPCG(1, 2))
	var confidence []float64
	var right []bool
	for range 2000 { // over-confident: 90% means 80%
		p := 0.5 + 0.5*rng.Float64()
		confidence, right = append(confidence, p), append(right, rng.Float64() < 0.5+0.75*(p-0.5))
	}
	r, err := score.Calibration(confidence, right, score.Binning{Bins: 5, EqualMass: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(r)
	// Output:
	// confidence   cases  accuracy
	// 0.000-0.598    400  0.532 ##################### |
	// 0.598-0.700    400  0.593 ########################  |
	// 0.700-0.798    400  0.695 ############################  |
	// 0.798-0.899    400  0.757 ##############################    |
	// 0.899-1.000    400  0.840 ##################################    |
	// ECE 0.0658, largest gap 0.1091
}
