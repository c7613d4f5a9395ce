// Package nn holds the layers of small neural networks, their priors and how they start.
//
// A network is a pure function of a point and an input. [Sequential] lists its layers; Build checks that they fit, from
// the shape of one input, and gives a [Network]: its sites in one [infer.Layout], and Forward. Nothing is kept between
// calls: there is no training mode, and the random numbers of dropout are an argument.
//
//	net, err := nn.Sequential{nn.Linear{Out: 32}, nn.Tanh{}, nn.Linear{Out: 3}}.Build(4)
//	prior, err := nn.NewPrior(net, nn.HePrior(0.05))
//	start, err := nn.Init(net, nn.KaimingNormal(nn.GainTanh), &streams)
//
//	logPosterior := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
//		logits := net.Forward(p, b.Get("x"))
//		logLik := dist.CategoricalLogits(logits).LogProb(b.Get("y"))
//		...
//	}
//
// # Shapes
//
// Shapes of inputs and outputs are those of one datum; tensors have a leading axis of n data: a network built for [4]
// takes [n, 4], and also the single datum [4]. Images are [channels, height, width], sequences [steps, features], and
// the input of [Conv1d] is [channels, steps]: [Transpose] goes from one to the other.
//
// A network runs in float64 and float32, on the device of the point; inputs must be of the point's type, except tokens.
// It can be mapped by torch.Vmap over points, as all methods do with K chains, and over data, which gives a gradient
// for each datum.
//
// # Names
//
// A layer is called by its place, from 0, with zeros in front so that places sort ("00", ..., "11"), or as [Named]
// says; a site is called "layer.parameter": "0.weight", "0.bias".
//
// # Laws
//
// A [Law] is the distribution of the elements of one site, and a [Scheme] gives each site its law. The same schemes
// serve as initialisers ([Init]) and as priors ([NewPrior]).
//
// [MLP] and [CNNLSTM] are networks ready made. Package layers, below this one, has residual connections, normalisation
// and attention, and networks of them. [Augment] changes images while they are fed to a run.
package nn
