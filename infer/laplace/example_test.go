package laplace_test

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The posterior and the evidence of a mean: prior N(0, 1), and four measurements 1, 2, 3, 2 with noise of variance 1.
// The posterior is N(8/5, 1/5), and y ~ N(0, I + 11ᵀ) has log density −½(4 log 2π + log 5 + 18 − 64/5).
func Example() {
	level := func(p infer.Params, b infer.Batch) torch.Tensor { // z, a prediction for each measurement
		return p.Get("level").Expand(b.Get("y").Shape()...)
	}
	noise := func(z torch.Tensor, b infer.Batch) torch.Tensor { // log N(y; z, 1)
		return b.Get("y").Sub(z).Square().Mul(-0.5).Sub(0.5 * math.Log(2*math.Pi))
	}
	err := func() error {
		y, err := torch.FromSlice([]float64{1, 2, 3, 2})
		if err != nil {
			return err
		}
		layout, err := infer.NewLayout(infer.Shapes{"level": {}})
		if err != nil {
			return err
		}
		mode, err := infer.NewParams(layout, []float64{1.6}) // an optimiser finds it in other models
		if err != nil {
			return err
		}
		transform, err := laplace.DenseGGN{Forward: level, Outer: noise,
			PriorPrecision: laplace.Isotropic(1)}.Build(infer.Target{})
		if err != nil {
			return err
		}
		state, err := transform.Init(mode)
		if err != nil {
			return err
		}
		state, info, err := transform.Update(state, infer.Batch{"y": y})
		if err != nil {
			return err
		}
		precision, err := state.(laplace.Posterior).Precision()
		if err != nil {
			return err
		}
		p, err := torch.Item(precision)
		if err != nil {
			return err
		}
		logPrior := -0.5*math.Log(2*math.Pi) - 0.5*1.6*1.6
		evidence, err := state.(laplace.Posterior).LogEvidence(info.LogPosterior[0] + logPrior)
		if err != nil {
			return err
		}
		fmt.Printf("variance %.3f, log evidence %.4f\n", 1/p, evidence)
		return nil
	}()
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// variance 0.200, log evidence -7.0805
}

// What was learned in one episode is the prior of the next: a level is measured twice, y = 1, 2, and later twice more,
// y = 3, 2, each with noise of variance 1. The prior is N(0, 1), the first posterior N(1, 1/3), and the second N(8/5,
// 1/5), as if all came at once.
func ExamplePosterior_LogPrior() {
	level := func(p infer.Params, b infer.Batch) torch.Tensor {
		return p.Get("level").Expand(b.Get("y").Shape()...)
	}
	noise := func(z torch.Tensor, b infer.Batch) torch.Tensor {
		return b.Get("y").Sub(z).Square().Mul(-0.5)
	}
	learn := func(mode float64, prior laplace.Precision, data ...float64) (infer.State, error) {
		y, err := torch.FromSlice(data)
		if err != nil {
			return nil, err
		}
		layout, err := infer.NewLayout(infer.Shapes{"level": {}})
		if err != nil {
			return nil, err
		}
		at, err := infer.NewParams(layout, []float64{mode})
		if err != nil {
			return nil, err
		}
		transform, err := laplace.DiagGGN{Forward: level, Outer: noise, PriorPrecision: prior}.Build(infer.Target{})
		if err != nil {
			return nil, err
		}
		state, err := transform.Init(at)
		if err != nil {
			return nil, err
		}
		state, _, err = transform.Update(state, infer.Batch{"y": y})
		return state, err
	}
	err := func() error {
		first, err := learn(1, laplace.Isotropic(1), 1, 2)
		if err != nil {
			return err
		}
		logPrior, err := first.(laplace.Posterior).LogPrior(1) // a part of the log posterior whose mode is 8/5
		if err != nil {
			return err
		}
		density := logPrior(first.Position()).Item()
		prior, err := first.(laplace.Posterior).AsPrior()
		if err != nil {
			return err
		}
		second, err := learn(1.6, prior, 3, 2)
		if err != nil {
			return err
		}
		precision, err := second.(laplace.Posterior).Precision()
		if err != nil {
			return err
		}
		p, err := torch.ToSlice[float64](precision)
		if err != nil {
			return err
		}
		fmt.Printf("log density of the first posterior at its mean %.4f, precision of the second %.1f\n", density, p[0])
		return nil
	}()
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// log density of the first posterior at its mean -0.3696, precision of the second 5.0
}
