package main

import (
	"github.com/kelvin-ppl/kelvin/examples/internal/classify"
	"github.com/kelvin-ppl/kelvin/examples/internal/digits"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// dtype is the type of all tensors. float32 takes about an eighth less time than float64 here: the matrices are small.
const dtype = gotch.Float

// newTask is classification by a perceptron with ReLU and the prior N(0, I) on all weights and biases.
func newTask(hidden []int, classes int, train, test digits.Data) (*classify.Task, error) {
	inputs := len(train.Pixels) / train.Len()
	net, err := nn.MLP{Sizes: append(append([]int{inputs}, hidden...), classes)}.Build()
	if err != nil {
		return nil, err
	}
	var sets [2]classify.Set
	for i, d := range []digits.Data{train, test} {
		sets[i].Labels = d.Labels
		if sets[i].X, err = torch.FromSliceOn(torch.CPU, dtype, d.Pixels, d.Len(), inputs); err != nil {
			return nil, err
		}
	}
	return classify.New(net, nn.Same(nn.Normal(1)), sets[0], sets[1], dtype)
}

// start starts networks as they are usually started: small weights, biases 0.
var start = nn.KaimingNormal(nn.GainReLU)
