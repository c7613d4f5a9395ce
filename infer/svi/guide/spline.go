package guide

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Spline is a flow of coupling layers with rational quadratic splines (Durkan et al. 2019): normal noise that goes
// through layers. Each layer moves one half of the numbers by monotone functions, and a network of the other half gives
// the functions; the halves take turns. A function is a spline of Bins pieces on (−Bound, Bound), which changes nothing
// outside, and then a scale and a shift. The Params are "guide.loc" and "guide.scale", and the weights of the networks.
// Of a single number the functions have knots of their own.
type Spline struct {
	Layers    int        // 0 means 4
	Bins      int        // pieces of a function; 0 means 8
	Bound     float64    // in standard deviations of the noise; 0 means 4
	Hidden    int        // units of each network; 0 means twice the numbers of the variables, at least 32
	InitScale float64    // standard deviation at the start; 0 means 0.1
	Start     ppl.Values // where variables start; those not named start at 0 of unconstrained space
}

// Build finds the variables of a model on a batch.
func (g Spline) Build(model ppl.Model, batch infer.Batch) (ppl.Model, error) {
	const who = "guide.Spline"
	if g.Bound == 0 {
		g.Bound = 4
	}
	if !(g.Bound > 0) || math.IsInf(g.Bound, 1) {
		return nil, &infer.FieldError{Type: who, Field: "Bound", Value: g.Bound,
			Allowed: "it must be finite and greater than 0, or 0 for the default of 4"}
	}
	if err := positive(who, "Layers", &g.Layers, 4, mostLayers); err != nil {
		return nil, err
	}
	if err := positive(who, "Bins", &g.Bins, 8, mostBins); err != nil {
		return nil, err
	}
	l, scale, err := begin(who, model, batch, g.Start, g.InitScale)
	if err != nil {
		return nil, err
	}
	if err := units(who, &g.Hidden, l.dim, g.Layers, l.dim*(3*g.Bins+1)); err != nil {
		return nil, err
	}
	layers := make([]layer, g.Layers)
	for i := range layers {
		layers[i] = g.layer(i, l.dim)
	}
	return l.flow(layers, scale), nil
}

// A piece has at least this share of the width and of the height of all pieces together, and its ends at least this
// slope. mostBins keeps room for it.
const (
	leastShare, leastSlope = 1e-3, 1e-3
	mostBins               = 256
)

// coupling is one layer of a [Spline]. It moves the second half of the numbers, or the first.
type coupling struct {
	first                    bool
	half, bins               int
	bound                    float64
	hidden, bias, out, knots weight
	one, zero                torch.Tensor // [moved, 1]
}

func (g Spline) layer(i, d int) *coupling {
	f := &coupling{first: i%2 == 1 && d > 1, half: d / 2, bins: g.Bins, bound: g.Bound}
	given, moved := f.half, d-f.half
	if f.first {
		given, moved = moved, given
	}
	n := moved * (3*g.Bins + 1)
	if given > 0 {
		f.hidden = weights(i, "hidden", fanIn(given), given, g.Hidden)
		f.bias = weights(i, "bias", 1.5, g.Hidden)
		f.out = weights(i, "out", 0.01*fanIn(g.Hidden), g.Hidden, n)
	}
	f.knots = weights(i, "knots", 0, n)
	f.one = tensor(full(1, moved), moved, 1)
	f.zero = tensor(full(0, moved), moved, 1)
	return f
}

func (f *coupling) forward(c *ppl.Ctx, x torch.Tensor) (y, logDet torch.Tensor) {
	d := x.Shape()[0]
	given, moved := x.Slice(0, 0, f.half), x.Slice(0, f.half, d)
	if f.first {
		given, moved = moved, given
	}
	raw := f.knots.in(c)
	if f.out.start != (torch.Tensor{}) {
		raw = raw.Add(given.MatMul(f.hidden.in(c)).Add(f.bias.in(c)).Softplus().MatMul(f.out.in(c)))
	}
	raw = raw.Reshape(moved.Shape()[0], 3*f.bins+1)
	moved, logDet = f.spline(moved, raw.Slice(1, 0, 3*f.bins-1))
	scale := raw.Slice(1, 3*f.bins-1, 3*f.bins).Squeeze(1).Add(math.Log(math.E - 1)).Softplus() // 1 where raw is 0
	moved = moved.Mul(scale).Add(raw.Slice(1, 3*f.bins, 3*f.bins+1).Squeeze(1))
	logDet = logDet.Add(scale.Log().Sum())
	if f.out.start == (torch.Tensor{}) {
		return moved, logDet
	}
	if f.first {
		return torch.Cat(0, moved, given), logDet
	}
	return torch.Cat(0, given, moved), logDet
}

// spline moves each of n numbers by a function of its own, whose knots are in the rows of raw, [n, 3·bins − 1]. On the
// piece with the left end (x_k, y_k), the width w, the height h and slopes δ_k and δ_{k+1} at its ends, with s = h/w,
// ξ = (x − x_k)/w and D = s + (δ_{k+1} + δ_k − 2s) ξ(1 − ξ),
//
//	y = y_k + h (s ξ² + δ_k ξ(1 − ξ)) / D
//	dy/dx = s² (δ_{k+1} ξ² + 2 s ξ(1 − ξ) + δ_k (1 − ξ)²) / D²
func (f *coupling) spline(x, raw torch.Tensor) (y, logDet torch.Tensor) {
	b, k := f.bound, f.bins
	lengths := func(raw torch.Tensor) (length, left torch.Tensor) {
		length = raw.Softmax(1).Mul(1 - float64(k)*leastShare).Add(leastShare).Mul(2 * b)
		return length, length.CumSum(1).Sub(length).Sub(b)
	}
	width, lefts := lengths(raw.Slice(1, 0, k))
	height, bottoms := lengths(raw.Slice(1, k, 2*k))
	slopes := f.one
	if k > 1 { // a raw slope of 0 is a slope of 1, that of the identity
		inner := raw.Slice(1, 2*k, 3*k-1).Add(math.Log(math.Expm1(1 - leastSlope))).Softplus().Add(leastSlope)
		slopes = torch.Cat(1, f.one, inner)
	}
	slopes = torch.Cat(1, slopes, f.one) // [n, bins + 1]
	inside := x.AtLeast(-b).AtMost(b).Unsqueeze(1)
	piece := f.one // 1 at the piece of x, else 0
	if k > 1 {
		beyond := torch.Of(inside.Ge(lefts.Slice(1, 1, k)).T().MustTotype(x.T().DType(), false))
		piece = torch.Cat(1, f.one, beyond).Sub(torch.Cat(1, beyond, f.zero))
	}
	at := func(v torch.Tensor) torch.Tensor { return v.Mul(piece).Sum(1) }
	w, h, from, to := at(width), at(height), at(slopes.Slice(1, 0, k)), at(slopes.Slice(1, 1, k+1))
	xi := inside.Squeeze(1).Sub(at(lefts)).Div(w)
	rest := xi.Neg().Add(1)
	both, s := xi.Mul(rest), h.Div(w)
	under := s.Add(from.Add(to).Sub(s.Mul(2)).Mul(both))
	moved := at(bottoms).Add(h.Mul(s.Mul(xi.Square()).Add(from.Mul(both))).Div(under))
	slope := to.Mul(xi.Square()).Add(s.Mul(both).Mul(2)).Add(from.Mul(rest.Square()))
	log := slope.Log().Add(s.Log().Mul(2)).Sub(under.Log().Mul(2))
	out := x.Abs().Ge(b)
	return torch.Choose(out, x, moved), torch.Choose(out, x.Mul(0), log).Sum()
}
