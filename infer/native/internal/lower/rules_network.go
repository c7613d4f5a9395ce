package lower

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// networkFormulas are activations of networks, and their gradients.
var networkFormulas = map[string]formula{
	"relu": {1, func(k calc, _ *Call, a []array) array { return k.of(ir.Max, a[0], k.num(0)) }},
	"threshold_backward": {2, func(k calc, c *Call, a []array) array {
		return k.choose(k.of(ir.Le, a[1], k.num(c.number(2, 0))), k.num(0), a[0])
	}},
	"silu": {1, func(k calc, _ *Call, a []array) array { return k.div(a[0], k.add(k.exp(k.neg(a[0])), k.num(1))) }},
	"silu_backward": {2, func(k calc, _ *Call, a []array) array {
		s := k.sigmoid(a[1])
		return k.mul(k.mul(a[0], s), k.add(k.mul(a[1], k.sub(k.num(1), s)), k.num(1)))
	}},
	"gelu": {1, func(k calc, c *Call, a []array) array {
		if c.has(1) && c.Args[1].Text == "tanh" {
			return k.mul(k.scale(a[0], 0.5), k.add(k.of(ir.Tanh, geluInner(k, a[0])), k.num(1)))
		}
		return k.mul(k.scale(a[0], 0.5), k.add(k.of(ir.Erf, k.scale(a[0], math.Sqrt2/2)), k.num(1)))
	}},
	"gelu_backward": {2, func(k calc, c *Call, a []array) array {
		grad, x := a[0], a[1]
		if c.has(2) && c.Args[2].Text == "tanh" {
			t := k.of(ir.Tanh, geluInner(k, x))
			left := k.scale(k.add(t, k.num(1)), 0.5)
			slope := k.scale(k.add(k.scale(k.mul(x, x), 3*geluCubic), k.num(1)), geluScale)
			right := k.mul(k.mul(k.scale(x, 0.5), k.sub(k.num(1), k.mul(t, t))), slope)
			return k.mul(grad, k.add(left, right))
		}
		cdf := k.scale(k.add(k.of(ir.Erf, k.scale(x, math.Sqrt2/2)), k.num(1)), 0.5)
		pdf := k.scale(k.exp(k.scale(k.mul(x, x), -0.5)), 1/math.Sqrt(2*math.Pi))
		return k.mul(grad, k.add(cdf, k.mul(x, pdf)))
	}},
	"elu": {1, func(k calc, c *Call, a []array) array {
		alpha, scale, in := c.number(1, 1), c.number(2, 1), c.number(3, 1)
		low := k.scale(k.of(ir.Expm1, k.scale(a[0], in)), alpha*scale)
		return k.choose(k.of(ir.Le, a[0], k.num(0)), low, k.scale(a[0], scale))
	}},
	"leaky_relu": {1, func(k calc, c *Call, a []array) array {
		return k.choose(k.less(k.num(0), a[0]), a[0], k.scale(a[0], c.number(1, 0.01)))
	}},
	"leaky_relu_backward": {2, func(k calc, c *Call, a []array) array {
		return k.choose(k.less(k.num(0), a[1]), a[0], k.scale(a[0], c.number(2, 0.01)))
	}},
	"hardtanh": {1, func(k calc, c *Call, a []array) array {
		return k.of(ir.Min, k.of(ir.Max, a[0], k.num(c.number(1, -1))), k.num(c.number(2, 1)))
	}},
	"hardtanh_backward": {2, func(k calc, c *Call, a []array) array {
		low, high := k.of(ir.Le, a[1], k.num(c.number(2, -1))), k.of(ir.Le, k.num(c.number(3, 1)), a[1])
		return k.choose(k.of(ir.Or, low, high), k.num(0), a[0])
	}},
}

// networkRules are losses of networks, and what has arguments that are no operands.
var networkRules = map[string]rule{
	"elu_backward": func(l *lowering, c *Call) {
		grad, y := l.in(c, 0), l.in(c, 5)
		alpha, scale, in := c.number(1, 1), c.number(2, 1), c.number(3, 1)
		var low array
		if c.flag(4) { // y is the result
			low = l.scale(l.mul(grad, l.add(y, l.num(alpha*scale))), in)
		} else {
			low = l.scale(l.mul(grad, l.exp(l.scale(y, in))), in*alpha*scale)
		}
		l.out(c, 0, l.choose(l.of(ir.Le, y, l.num(0)), low, l.scale(grad, scale)))
	},
	"nll_loss_forward":  nllForward,
	"nll_loss_backward": nllBackward,
	"mse_loss": func(l *lowering, c *Call) {
		off := l.sub(l.in(c, 0), l.in(c, 1))
		l.out(c, 0, l.lossOf(c, l.mul(off, off), c.int(2, 1)))
	},
	"mse_loss_backward": func(l *lowering, c *Call) {
		grad := l.in(c, 0)
		off := l.sub(l.in(c, 1), l.in(c, 2))
		by := 2.0
		if c.int(3, 1) == 1 {
			by /= float64(max(off.n(), 1))
		}
		l.out(c, 0, l.mul(l.scale(off, by), grad))
	},
}

// The tanh form of GELU.
const (
	geluScale = 0.7978845608028654 // √(2/π)
	geluCubic = 0.044715
)

func geluInner(k calc, x array) array {
	return k.scale(k.add(x, k.scale(k.mul(k.mul(x, x), x), geluCubic)), geluScale)
}

// lossOf combines the losses of the data: 0 none, 1 their mean, 2 their sum.
func (l *lowering) lossOf(c *Call, a array, reduction int) array {
	switch reduction {
	case 0:
		return a
	case 1:
		n := float64(a.n())
		return l.div(l.g.reduce(ir.Sum, a, nil, false), l.num(n))
	}
	return l.g.reduce(ir.Sum, a, nil, false)
}

// nll are the arguments of the negative log likelihood of classes: the log probabilities [n, k], the classes [n] and
// which of them count.
func (l *lowering) nll(c *Call, first int) (p, classes, counts array) {
	p, classes = l.in(c, first), l.in(c, first+1)
	if c.has(first + 2) {
		refuse("weights of classes are not understood")
	}
	if len(p.sizes) != 2 {
		refuse("log probabilities of shape %v are not understood", p.sizes)
	}
	ignored := float64(c.int(first+4, -100))
	counts = l.of(ir.Ne, classes, l.num(ignored))
	return p, l.of(ir.Select, counts, classes, l.num(0)), counts
}

func nllForward(l *lowering, c *Call) {
	p, classes, counts := l.nll(c, 0)
	loss := l.choose(counts, l.neg(l.gather(p, 1, classes.insert(1)).drop(1)), l.num(0))
	total := l.g.reduce(ir.Sum, counts, nil, false)
	switch c.int(3, 1) {
	case 1:
		loss = l.div(l.g.reduce(ir.Sum, loss, nil, false), total)
	case 2:
		loss = l.g.reduce(ir.Sum, loss, nil, false)
	}
	l.out(c, 0, loss)
	l.out(c, 1, total)
}

func nllBackward(l *lowering, c *Call) {
	grad := l.in(c, 0)
	p, classes, counts := l.nll(c, 1)
	if c.int(4, 1) == 1 {
		grad = l.div(grad, l.g.reduce(ir.Sum, counts, nil, false))
	}
	src := l.choose(counts, l.neg(grad), l.num(0)).broadcast(classes.sizes)
	// One-hot: a comparison fuses with the loop over the probabilities, and needs no memory of its own.
	n := p.sizes[1]
	labels := make([]float64, n)
	for i := range labels {
		labels[i] = float64(i)
	}
	hot := l.of(ir.Eq, classes.insert(1), single([]int{1, n}, whole(l.g.constant(labels), []int{1, n})))
	l.out(c, 0, l.choose(hot, src.insert(1), l.num(0)))
}
