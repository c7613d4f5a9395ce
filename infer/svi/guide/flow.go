package guide

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// layer is a one-to-one map of all numbers of the variables.
type layer interface {
	// forward is y for x, both of shape [d], and log |det dy/dx|.
	forward(c *ppl.Ctx, x torch.Tensor) (y, logDet torch.Tensor)
}

// flow is the law of θ = μ + σ f(ε) with ε standard normal and f the layers, one after the other:
//
//	log q(θ) = log N(ε) − Σ log |det| − Σ log σ
//
// The Params are "guide.loc", μ, and "guide.scale", σ, beside those of the layers.
func (l *latents) flow(layers []layer, scale float64) ppl.Model {
	d := l.dim
	zero, loc, sd := tensor(full(0, l.dim), d), tensor(l.start, d), tensor(full(scale, l.dim), d)
	return func(c *ppl.Ctx) {
		x := c.Sample("_noise", dist.Independent(dist.Normal(zero, 1), 1))
		var change torch.Tensor
		for _, f := range layers {
			var logDet torch.Tensor
			x, logDet = f.forward(c, x)
			change = change.Add(logDet)
		}
		scale := c.Param("guide.scale", sd, support.Positive)
		c.Factor("_flow", change.Add(scale.Log().Sum()).Neg())
		l.declare(c, x.Mul(scale).Add(c.Param("guide.loc", loc, support.Real)))
	}
}

// weight is a Param of a layer, with its start.
type weight struct {
	name  string
	start torch.Tensor
}

func (w weight) in(c *ppl.Ctx) torch.Tensor { return c.Param(w.name, w.start, support.Real) }

// weights makes the Params of layer number i: random where sd is positive, always the same.
func weights(i int, name string, sd float64, shape ...int) weight {
	r := rand.New(rand.NewPCG(uint64(i), uint64(len(name))))
	v := make([]float64, count(shape))
	for j := range v {
		v[j] = sd * r.NormFloat64()
	}
	return weight{name: fmt.Sprintf("guide.layer%d.%s", i, name), start: tensor(v, shape...)}
}

// positive puts a default in the place of a number that is 0, and refuses those below, and above the most.
func positive(who, field string, v *int, def, most int) error {
	if *v == 0 {
		*v = def
	}
	if *v < 1 || *v > most {
		return &infer.FieldError{Type: who, Field: field, Value: *v,
			Allowed: fmt.Sprintf("it must be from 1 to %d, or 0 for the default of %d", most, def)}
	}
	return nil
}

// A flow has at most so many layers, and all its weights of one kind together so many numbers: 2 GB.
const mostLayers, mostWeights = 1000, 1 << 28

// units checks the width of the networks of some layers: a unit has so many weights. It puts the default for variables
// of dim numbers in the place of 0.
func units(who string, hidden *int, dim, layers, weights int) error {
	return positive(who, "Hidden", hidden, max(32, 2*dim), max(1, mostWeights/layers/max(1, weights)))
}

// reversed is a vector in the opposite order.
func reversed(x torch.Tensor) torch.Tensor { return torch.Of(x.T().MustFlip([]int64{0}, false)) }

// fanIn is the standard deviation of weights that keep the size of what n inputs add up to.
func fanIn(n int) float64 { return 1 / math.Sqrt(float64(max(n, 1))) }
