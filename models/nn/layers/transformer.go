package layers

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/models/nn"
)

// Transformer is a causal language model with normalisation before each branch (Vaswani et al. 2017; Xiong et al.
// 2020): tokens [Length] become the logits of the token that follows each, [Length, Vocab]. A block is
//
//	x ← x + attention(norm(x)),   x ← x + W₂ GELU(W₁ norm(x) + b₁) + b₂
//
// With L blocks, V tokens, width D, length T and hidden layers of H it has
//
//	V D + T D + L (4 D + 4 (D² + D) + 2 D H + H + D) + 2 D + D V + V
//
// parameters: 834 400 with all defaults.
type Transformer struct {
	Vocab  int // 0 means 96, the printable characters and the line feed
	Length int // 0 means 128
	Width  int // 0 means 128
	Heads  int // 0 means 4
	Blocks int // 0 means 4
	Hidden int // 0 means 4 Width
}

// Build checks the sizes. The layers are called "tokens", "positions", "block_1" and so on, "norm" and "output"; the
// weights of attention are "block_1.0.body.1.query.weight", and so on.
func (c Transformer) Build() (*nn.Network, error) {
	s := sizes{kind: "Transformer"}
	s.fill("Vocab", &c.Vocab, 96, 1<<24)
	s.fill("Length", &c.Length, 128, 1<<24)
	s.fill("Width", &c.Width, 128, 1<<24)
	s.fill("Heads", &c.Heads, 4, 1<<24)
	s.fill("Blocks", &c.Blocks, 4, 1000)
	s.fill("Hidden", &c.Hidden, 4*c.Width, 1<<24)
	if s.err != nil {
		return nil, s.err
	}
	net := nn.Sequential{
		nn.Named("tokens", nn.Embedding{Num: c.Vocab, Dim: c.Width}),
		nn.Named("positions", Position{}),
	}
	for i := range c.Blocks {
		attention := nn.Sequential{LayerNorm{}, Attention{Heads: c.Heads, Causal: true}}
		dense := nn.Sequential{LayerNorm{}, nn.Linear{Out: c.Hidden}, GELU{}, nn.Linear{Out: c.Width}}
		net = append(net, nn.Named(fmt.Sprintf("block_%d", i+1),
			nn.Sequential{Residual{Body: attention}, Residual{Body: dense}}))
	}
	net = append(net, nn.Named("norm", LayerNorm{}), nn.Named("output", nn.Linear{Out: c.Vocab}))
	return net.Build(c.Length)
}
