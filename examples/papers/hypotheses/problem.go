package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/kelvin-ppl/kelvin/examples/internal/classify"
	"github.com/kelvin-ppl/kelvin/examples/internal/digits"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// priorOf are the priors of the study: weights and biases N(0, variance), or He's law for the weights with biases of
// some other standard deviation.
type priorOf struct {
	Kind     string  `json:"kind"` // "normal" or "he"
	Variance float64 `json:"variance,omitempty"`
	BiasSD   float64 `json:"bias_sd,omitempty"`
}

func (p priorOf) scheme() nn.Scheme {
	if p.Kind == "he" {
		return nn.HePrior(p.BiasSD)
	}
	return nn.Same(nn.Normal(math.Sqrt(p.Variance)))
}

func (p priorOf) String() string {
	if p.Kind == "he" {
		return fmt.Sprintf("He, biases N(0, %g²)", p.BiasSD)
	}
	return fmt.Sprintf("N(0, %g)", p.Variance)
}

// Parts of the digits: the first are to train with, the next to tune on, and the last to score.
const (
	mostImages  = 500
	tuneImages  = 400
	quickImages = 60 // that -quick trains with
)

// digitsTask is a perceptron on images of digits.
func digitsTask(train int, hidden []int, prior priorOf, tune bool) (*classify.Task, error) {
	if train < 1 || train > mostImages {
		return nil, fmt.Errorf("%d images to train with: it must be from 1 to %d", train, mostImages)
	}
	first, rest, err := digits.Split(mostImages + tuneImages)
	if err != nil {
		return nil, err
	}
	part := func(from, to int) (classify.Set, error) {
		x, err := torch.FromSliceOn(torch.CPU, gotch.Float, first.Pixels[from*digits.Pixels:to*digits.Pixels],
			to-from, digits.Pixels)
		return classify.Set{X: x, Labels: first.Labels[from:to]}, err
	}
	a, err := part(0, train)
	if err != nil {
		return nil, err
	}
	b, err := part(mostImages, mostImages+tuneImages)
	if !tune && err == nil {
		b.Labels = rest.Labels
		b.X, err = torch.FromSliceOn(torch.CPU, gotch.Float, rest.Pixels, rest.Len(), digits.Pixels)
	}
	if err != nil {
		return nil, err
	}
	net, err := nn.MLP{Sizes: append(append([]int{digits.Pixels}, hidden...), digits.Classes)}.Build()
	if err != nil {
		return nil, err
	}
	return classify.New(net, prior.scheme(), a, b, gotch.Float)
}

// The problem of data that are drawn from the prior: inputs N(0, I) and labels of a network of two hidden layers that
// is drawn from the prior that the study has too.
const (
	priorInputs  = 5
	priorUnits   = 10
	priorClasses = 3
	priorTrain   = 100
	biasSD       = 0.05
)

// priorTask is a network of some depth on such data.
func priorTask(depth, cases int, seed uint64) (*classify.Task, error) {
	build := func(depth int) (*nn.Network, error) {
		sizes := []int{priorInputs}
		for range depth {
			sizes = append(sizes, priorUnits)
		}
		return nn.MLP{Sizes: append(sizes, priorClasses)}.Build()
	}
	truth, err := build(2)
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(seed, 1))
	n := priorTrain + cases
	x := make([]float64, n*priorInputs)
	for i := range x {
		x[i] = random.NormFloat64()
	}
	all, err := torch.FromSlice(x, n, priorInputs)
	if err != nil {
		return nil, err
	}
	teacher, err := classify.New(truth, nn.HePrior(biasSD), classify.Set{}, classify.Set{X: all}, gotch.Double)
	if err != nil {
		return nil, err
	}
	streams := torch.NewStreams(seed, 1)
	theta, err := teacher.Prior.Draw(&streams)
	if err != nil {
		return nil, err
	}
	flat, err := theta.Values()
	if err != nil {
		return nil, err
	}
	logits, err := teacher.Logits(flat)
	if err != nil {
		return nil, err
	}
	labels := make([]int, n)
	for i, z := range logits {
		// Gumbel's trick: the largest of z + G has the law softmax(z).
		best := math.Inf(-1)
		for k, v := range z {
			if v -= math.Log(random.ExpFloat64()); v > best {
				best, labels[i] = v, k
			}
		}
	}
	net, err := build(depth)
	if err != nil {
		return nil, err
	}
	train, err := torch.FromSlice(x[:priorTrain*priorInputs], priorTrain, priorInputs)
	if err != nil {
		return nil, err
	}
	test, err := torch.FromSlice(x[priorTrain*priorInputs:], cases, priorInputs)
	if err != nil {
		return nil, err
	}
	return classify.New(net, nn.HePrior(biasSD), classify.Set{X: train, Labels: labels[:priorTrain]},
		classify.Set{X: test, Labels: labels[priorTrain:]}, gotch.Double)
}
