package layers

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
)

// ResNet20 is the residual network for images [Channels, Size, Size] of He et al. 2016 in the form of Keras's example,
// as Wenzel et al. 2020 use it for CIFAR-10: three stages of blocks of two convolutions of 3 by 3, each with a bias,
// Norm and ReLU, where the stages have Filters, 2 Filters and 4 Filters, and the second and third begin with a stride
// of 2 and a shortcut by a convolution of 1 by 1. Outputs are logits.
//
// With all defaults it has 274 442 parameters, as Keras counts them: 273 066, and 1 376 means and variances. (Padding
// is the same at both edges, as in PyTorch; Keras pads strides at one.)
type ResNet20 struct {
	Channels int // 0 means 3
	Size     int // 0 means 32
	Filters  int // 0 means 16
	Depth    int // 6 k + 2 weights in a row; 0 means 20
	Classes  int // 0 means 10
	// Norm follows each convolution but those of the shortcuts; nil means BatchNorm{}, nn.Sequential{} is none.
	// Where it is FRN no ReLU follows, because it has a threshold of its own.
	Norm nn.Layer
}

// Build checks the sizes. The layers are called "stem", "stage_1_block_1" and so on, and "output".
func (c ResNet20) Build() (*nn.Network, error) {
	blocks, err := blocksOf("ResNet20", &c.Channels, &c.Size, &c.Filters, &c.Depth, &c.Classes, 16, 20)
	if err != nil {
		return nil, err
	}
	if c.Norm == nil {
		c.Norm = BatchNorm{}
	}
	conv := func(filters, stride int) nn.Sequential {
		return nn.Sequential{nn.Conv2d{Out: filters, Kernel: 3, Stride: stride, Padding: 1}, c.Norm}
	}
	activate := func(to nn.Sequential) nn.Sequential {
		if _, frn := c.Norm.(FRN); frn {
			return to
		}
		return append(to, nn.ReLU{})
	}
	net := nn.Sequential{nn.Named("stem", activate(conv(c.Filters, 1)))}
	net = append(net, stages(blocks, c.Filters, func(filters, stride int) nn.Layer {
		sum := Residual{Body: append(activate(conv(filters, stride)), conv(filters, 1)...)}
		if stride > 1 {
			sum.Shortcut = nn.Sequential{nn.Conv2d{Out: filters, Kernel: 1, Stride: stride}}
		}
		return nn.Sequential{sum, nn.ReLU{}}
	})...)
	net = append(net, GlobalAvgPool{}, nn.Named("output", nn.Linear{Out: c.Classes}))
	return net.Build(c.Channels, c.Size, c.Size)
}

// ResNetPlusPlus is the residual network without batch normalisation of Heek and Kalchbrenner 2019 (ATMC): SELU before
// each convolution, and [WeightNorm] on every weight. The paper leaves the diagram of its block out; here a
// block of two convolutions adds to what comes in, and a shortcut that changes the shape is a convolution of 1 by 1.
// Outputs are logits.
//
// Its prior is WeightNormPrior(5). Start it by Fixup{Gain: 1, Last: 0.1}: SELU needs no gain, and the
// last lengths of a branch are small; the paper does not say how small.
type ResNetPlusPlus struct {
	Channels int // 0 means 3
	Size     int // 0 means 32
	Filters  int // of the first stage; 0 means 32
	Depth    int // 6 k + 2; 0 means 56
	Classes  int // 0 means 10
}

// Build checks the sizes. The layers are called "stem", "stage_1_block_1" and so on, and "output".
func (c ResNetPlusPlus) Build() (*nn.Network, error) {
	blocks, err := blocksOf("ResNetPlusPlus", &c.Channels, &c.Size, &c.Filters, &c.Depth, &c.Classes, 32, 56)
	if err != nil {
		return nil, err
	}
	conv := func(filters, kernel, stride int) nn.Layer {
		return WeightNorm{Layer: nn.Conv2d{Out: filters, Kernel: kernel, Stride: stride, Padding: kernel / 2}}
	}
	net := nn.Sequential{nn.Named("stem", conv(c.Filters, 3, 1))}
	net = append(net, stages(blocks, c.Filters, func(filters, stride int) nn.Layer {
		sum := Residual{Body: nn.Sequential{nn.SELU{}, conv(filters, 3, stride), nn.SELU{}, conv(filters, 3, 1)}}
		if stride > 1 {
			sum.Shortcut = nn.Sequential{conv(filters, 1, stride)}
		}
		return sum
	})...)
	net = append(net, nn.SELU{}, GlobalAvgPool{},
		nn.Named("output", WeightNorm{Layer: nn.Linear{Out: c.Classes}}))
	return net.Build(c.Channels, c.Size, c.Size)
}

// stages are three stages of blocks. The first block of the second and the third has twice the filters and stride 2.
func stages(blocks, filters int, block func(filters, stride int) nn.Layer) (net nn.Sequential) {
	for stage := range 3 {
		for k := range blocks {
			stride := 1
			if stage > 0 && k == 0 {
				filters, stride = 2*filters, 2
			}
			net = append(net, nn.Named(fmt.Sprintf("stage_%d_block_%d", stage+1, k+1), block(filters, stride)))
		}
	}
	return net
}

// blocksOf fills in the defaults of a network for images, with those of its filters and its depth, and is k of the
// depth 6 k + 2.
func blocksOf(kind string, channels, size, filters, depth, classes *int, manyFilters, deep int) (int, error) {
	s := sizes{kind: kind}
	s.fill("Channels", channels, 3, 1<<24)
	s.fill("Size", size, 32, 1<<24)
	s.fill("Filters", filters, manyFilters, 1<<24)
	s.fill("Depth", depth, deep, 1202)
	s.fill("Classes", classes, 10, 1<<24)
	if s.err == nil && (*depth < 8 || (*depth-2)%6 != 0) {
		s.err = &infer.FieldError{Type: "layers." + kind, Field: "Depth", Value: *depth,
			Allowed: "it must be 6 k + 2 with k from 1 to 200, such as 20"}
	}
	return (*depth - 2) / 6, s.err
}
