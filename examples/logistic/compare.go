package main

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// The names of the two forms of the model.
const (
	handwritten = "handwritten"
	language    = "language"
)

// posterior is the model in one of the two forms. The hand-written one starts at 0.
func posterior(form string, data infer.Batch) (infer.Program, error) {
	switch form {
	case handwritten:
		layout, err := infer.NewLayout(infer.Shapes{"w": {features}})
		if err != nil {
			return nil, err
		}
		start, err := infer.Zeros(layout)
		return infer.Handwritten(infer.Mean(logPosterior, patients), start, data), err
	case language:
		return ppl.Compile(regression, data)
	}
	return nil, fmt.Errorf("there is no model %q; there are: %s, %s", form, handwritten, language)
}

// priorConstant is what the language's prior has and the hand-written one leaves out, over N: −(d/2) log 2π.
var priorConstant = -0.5 * features * math.Log(2*math.Pi) / patients

// disagreement is the greatest difference between the two forms, of values and of elements of the gradients, at random
// points of N(0, 1), on all data and on minibatches of 32.
func disagreement(data infer.Batch, points int, seed uint64) (greatest float64, err error) {
	byHand, err := posterior(handwritten, data)
	if err != nil {
		return 0, err
	}
	compiled, err := posterior(language, data)
	if err != nil {
		return 0, err
	}
	parts, err := infer.Minibatches(data, infer.MinibatchOptions{Size: 32, Seed: seed})
	if err != nil {
		return 0, err
	}
	for _, batches := range []infer.Batches{infer.Full(data), parts} {
		err := torch.Do(func(*torch.Scope) error {
			batch := torch.Must(batches.Next())
			flat := torch.Must(torch.NewSource(seed, 0).Normal([]int{points, features}, gotch.Double, torch.CPU))
			at := infer.Params{Layout: byHand.Layout(), Flat: flat}
			one := torch.Must(valueAndGrad(byHand.Target(), at, batch))
			two := torch.Must(valueAndGrad(compiled.Target(), at, batch))
			for i := range one {
				if i < points {
					one[i] += priorConstant
				}
				difference := math.Abs(one[i] - two[i])
				if !(difference <= greatest) { // not a number too
					greatest = difference
				}
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return greatest, nil
}

// valueAndGrad is the mean log posteriors at K points, and then the gradients.
func valueAndGrad(t infer.Target, at infer.Params, b infer.Batch) ([]float64, error) {
	g, err := infer.NewGradient(t)
	if err != nil {
		return nil, err
	}
	e, err := g.ValueAndGrad(at, b, 0)
	if err != nil {
		return nil, err
	}
	grads, err := torch.ToSlice[float64](e.Grad)
	return append(e.Values, grads...), err
}
