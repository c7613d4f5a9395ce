package nn_test

import (
	"context"
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// A network with a prior, three starts of it, and the modes that they reach: which of two rings a point is on cannot be
// said by a line.
func Example() {
	err := func() error {
		var x, y []float64
		for i := range 40 {
			angle, radius := float64(i)*math.Pi/10, 1+float64(i/20)
			x = append(x, radius*math.Cos(angle), radius*math.Sin(angle))
			y = append(y, float64(i/20))
		}
		inputs, err := torch.FromSlice(x, 40, 2)
		if err != nil {
			return err
		}
		labels, err := torch.FromSlice(y)
		if err != nil {
			return err
		}

		net, err := nn.Sequential{
			nn.Named("hidden", nn.Linear{Out: 16}),
			nn.Tanh{},
			nn.Named("output", nn.Linear{Out: 2}),
		}.Build(
			2,
		)
		if err != nil {
			return err
		}
		fmt.Print(net)
		prior, err := nn.NewPrior(net, nn.Same(nn.Normal(3)))
		if err != nil {
			return err
		}
		logPosterior := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
			logits := net.Forward(p, b.Get("x"))
			return dist.CategoricalLogits(logits).LogProb(b.Get("y")).Mean().Add(prior.LogDensity(p).Div(40)), nil
		}

		streams := torch.NewStreams(1, 3)
		start, err := nn.Init(net, nn.KaimingNormal(nn.GainTanh), &streams)
		if err != nil {
			return err
		}
		data := infer.Batch{"x": inputs, "y": labels}
		program := infer.Handwritten(infer.Mean(logPosterior, 40), start, data)
		result, err := infer.Run(context.Background(), program, optim.Adam{LR: infer.Constant(0.03)},
			infer.Options{Chains: 3, Warmup: 300, Draws: infer.None})
		if err != nil {
			return err
		}
		logits, err := net.Predict(result.Last, inputs, nil) // [3, 40, 2]
		if err != nil {
			return err
		}
		values := logits.Values()
		for k := range 3 {
			right := 0
			for i := range 40 {
				at := values[2*(40*k+i):]
				if (at[1] > at[0]) == (y[i] == 1) {
					right++
				}
			}
			fmt.Printf("chain %d: %d of 40\n", k, right)
		}
		return nil
	}()
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// layer   kind    output  parameters
	//         input   [2]
	// hidden  Linear  [16]    48
	// 1       Tanh    [16]    0
	// output  Linear  [2]     34
	//                 total   82
	// chain 0: 40 of 40
	// chain 1: 40 of 40
	// chain 2: 40 of 40
}

// Where layers do not fit, Build names the layer and what would be right.
func ExampleSequential_Build() {
	_, err := nn.Sequential{nn.Embedding{Num: 1000, Dim: 16}, nn.Conv1d{Out: 8, Kernel: 5, In: 16}}.Build(50)
	fmt.Println(err)
	net, err := nn.Sequential{
		nn.Embedding{Num: 1000, Dim: 16},
		nn.Transpose{},
		nn.Conv1d{Out: 8, Kernel: 5, In: 16},
	}.Build(
		50,
	)
	fmt.Println(net.Out(), err)
	// Output:
	// nn: layer "1" (Conv1d): nn.Conv1d: In is 16: inputs have shape [50 16], so it must be 50, or 0 to take what comes
	// [8 46] <nil>
}

// Monte-Carlo dropout: 50 passes through one network, each with masks of its own.
func ExampleNetwork_Predict() {
	err := func() error {
		net, err := nn.MLP{Sizes: []int{2, 64, 1}, Keep: 0.9}.Build()
		if err != nil {
			return err
		}
		starts, passes := torch.NewStreams(1, 1), torch.NewStreams(2, 50)
		p, err := nn.Init(net, nn.PyTorch(), &starts)
		if err != nil {
			return err
		}
		x, err := torch.FromSlice([]float64{1, 0, 0, 1, 1, 1}, 3, 2)
		if err != nil {
			return err
		}
		outputs, err := net.Predict(p, x, &passes)
		if err != nil {
			return err
		}
		fmt.Println(outputs.Shape())
		return nil
	}()
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// [50 3 1]
}

// Kronecker-factored curvature of a network: the linear layers are left to the method, which sees what goes in and out.
func ExampleNetwork_ForwardLinear() {
	err := func() error {
		net, err := nn.MLP{Sizes: []int{1, 10, 1}, Activation: nn.Tanh{}}.Build()
		if err != nil {
			return err
		}
		layers := net.LinearLayers()
		fmt.Println(layers)
		network := func(p infer.Params, b infer.Batch, linear laplace.Linear) torch.Tensor {
			return net.ForwardLinear(p, b.Get("x"), linear)
		}
		noise := func(z torch.Tensor, b infer.Batch) torch.Tensor { // log N(y; z, 0.1²) and a constant
			return b.Get("y").Sub(z.Squeeze(1)).Square().Mul(-50)
		}
		transform, err := laplace.KFAC{
			Network:        network,
			Layers:         layers,
			Outer:          noise,
			PriorPrecision: laplace.Isotropic(1),
		}.Build(
			infer.Target{},
		)
		if err != nil {
			return err
		}
		x, err := torch.FromSlice([]float64{-1, 0, 1}, 3, 1)
		if err != nil {
			return err
		}
		y, err := torch.FromSlice([]float64{-0.8, 0, 0.8})
		if err != nil {
			return err
		}
		streams := torch.NewStreams(1, 1)
		mode, err := nn.Init(net, nn.KaimingNormal(nn.GainTanh), &streams) // an optimiser would find it
		if err != nil {
			return err
		}
		state, err := transform.Init(mode)
		if err != nil {
			return err
		}
		state, _, err = transform.Update(state, infer.Batch{"x": x, "y": y})
		if err != nil {
			return err
		}
		points, err := transform.(infer.Sampler).Sample(state, 100, &streams)
		if err != nil {
			return err
		}
		shape, err := torch.Shape(points.Flat)
		fmt.Println(shape)
		return err
	}()
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// [{0.weight 0.bias} {2.weight 2.bias}]
	// [100 31]
}

// The hook shows what goes through the network.
func ExampleRun() {
	net, err := nn.MLP{Sizes: []int{4, 3, 2}}.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	err = torch.Do(func(*torch.Scope) error {
		p := torch.Must(infer.Zeros(net.Layout()))
		x := torch.New(make([]float64, 20), 5, 4)
		net.ForwardWith(p, x, nn.Run{Hook: func(name string, input, output torch.Tensor) torch.Tensor {
			fmt.Println(name, input.Shape(), output.Shape())
			return torch.Tensor{}
		}})
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// 0 [5 4] [5 3]
	// 1 [5 3] [5 3]
	// 2 [5 3] [5 2]
}
