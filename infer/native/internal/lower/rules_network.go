package lower

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// networkRules are activations and losses of networks.
var networkRules = map[string]rule{
	"relu": func(l *lowering, c *Call) { l.out(c, 0, l.g.apply(ir.Max, l.in(c, 0), l.g.scalar(0))) },
	"threshold_backward": func(l *lowering, c *Call) {
		k := calc{l.g}
		l.out(c, 0, k.choose(k.of(ir.Le, l.in(c, 1), k.num(c.number(2, 0))), k.num(0), l.in(c, 0)))
	},
	"silu": func(l *lowering, c *Call) {
		k, x := calc{l.g}, l.in(c, 0)
		l.out(c, 0, k.div(x, k.add(k.exp(k.neg(x)), k.num(1))))
	},
	"silu_backward": func(l *lowering, c *Call) {
		k, grad, x := calc{l.g}, l.in(c, 0), l.in(c, 1)
		s := k.sigmoid(x)
		l.out(c, 0, k.mul(k.mul(grad, s), k.add(k.mul(x, k.sub(k.num(1), s)), k.num(1))))
	},
	"gelu": func(l *lowering, c *Call) {
		k, x := calc{l.g}, l.in(c, 0)
		if c.has(1) && c.Args[1].Text == "tanh" {
			l.out(c, 0, k.mul(k.scale(x, 0.5), k.add(k.of(ir.Tanh, geluInner(k, x)), k.num(1))))
			return
		}
		l.out(c, 0, k.mul(k.scale(x, 0.5), k.add(k.of(ir.Erf, k.scale(x, math.Sqrt2/2)), k.num(1))))
	},
	"gelu_backward": func(l *lowering, c *Call) {
		k, grad, x := calc{l.g}, l.in(c, 0), l.in(c, 1)
		if c.has(2) && c.Args[2].Text == "tanh" {
			t := k.of(ir.Tanh, geluInner(k, x))
			left := k.scale(k.add(t, k.num(1)), 0.5)
			slope := k.scale(k.add(k.scale(k.mul(x, x), 3*geluCubic), k.num(1)), geluScale)
			right := k.mul(k.mul(k.scale(x, 0.5), k.sub(k.num(1), k.mul(t, t))), slope)
			l.out(c, 0, k.mul(grad, k.add(left, right)))
			return
		}
		cdf := k.scale(k.add(k.of(ir.Erf, k.scale(x, math.Sqrt2/2)), k.num(1)), 0.5)
		pdf := k.scale(k.exp(k.scale(k.mul(x, x), -0.5)), 1/math.Sqrt(2*math.Pi))
		l.out(c, 0, k.mul(grad, k.add(cdf, k.mul(x, pdf))))
	},
	"elu": func(l *lowering, c *Call) {
		k, x := calc{l.g}, l.in(c, 0)
		alpha, scale, in := c.number(1, 1), c.number(2, 1), c.number(3, 1)
		low := k.scale(k.of(ir.Expm1, k.scale(x, in)), alpha*scale)
		l.out(c, 0, k.choose(k.of(ir.Le, x, k.num(0)), low, k.scale(x, scale)))
	},
	"elu_backward": func(l *lowering, c *Call) {
		k, grad, y := calc{l.g}, l.in(c, 0), l.in(c, 5)
		alpha, scale, in := c.number(1, 1), c.number(2, 1), c.number(3, 1)
		var low array
		if c.flag(4) { // y is the result
			low = k.scale(k.mul(grad, k.add(y, k.num(alpha*scale))), in)
		} else {
			low = k.scale(k.mul(grad, k.exp(k.scale(y, in))), in*alpha*scale)
		}
		l.out(c, 0, k.choose(k.of(ir.Le, y, k.num(0)), low, k.scale(grad, scale)))
	},
	"leaky_relu": func(l *lowering, c *Call) {
		k, x := calc{l.g}, l.in(c, 0)
		l.out(c, 0, k.choose(k.less(k.num(0), x), x, k.scale(x, c.number(1, 0.01))))
	},
	"leaky_relu_backward": func(l *lowering, c *Call) {
		k, grad, x := calc{l.g}, l.in(c, 0), l.in(c, 1)
		l.out(c, 0, k.choose(k.less(k.num(0), x), grad, k.scale(grad, c.number(2, 0.01))))
	},
	"hardtanh": func(l *lowering, c *Call) {
		k, x := calc{l.g}, l.in(c, 0)
		l.out(c, 0, k.of(ir.Min, k.of(ir.Max, x, k.num(c.number(1, -1))), k.num(c.number(2, 1))))
	},
	"hardtanh_backward": func(l *lowering, c *Call) {
		k, grad, x := calc{l.g}, l.in(c, 0), l.in(c, 1)
		outside := k.of(ir.Or, k.of(ir.Le, x, k.num(c.number(2, -1))), k.of(ir.Le, k.num(c.number(3, 1)), x))
		l.out(c, 0, k.choose(outside, k.num(0), grad))
	},
	"nll_loss_forward":  nllForward,
	"nll_loss_backward": nllBackward,
	"mse_loss": func(l *lowering, c *Call) {
		k := calc{l.g}
		off := k.sub(l.in(c, 0), l.in(c, 1))
		l.out(c, 0, l.lossOf(c, k.mul(off, off), c.int(2, 1)))
	},
	"mse_loss_backward": func(l *lowering, c *Call) {
		k, grad := calc{l.g}, l.in(c, 0)
		off := k.sub(l.in(c, 1), l.in(c, 2))
		by := 2.0
		if c.int(3, 1) == 1 {
			by /= float64(max(off.n(), 1))
		}
		l.out(c, 0, k.mul(k.scale(off, by), grad))
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
		return calc{l.g}.div(l.g.reduce(ir.Sum, a, nil, false), l.g.scalar(n))
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
	counts = l.g.apply(ir.Ne, classes, l.g.scalar(ignored))
	return p, l.g.apply(ir.Select, counts, classes, l.g.scalar(0)), counts
}

func nllForward(l *lowering, c *Call) {
	k := calc{l.g}
	p, classes, counts := l.nll(c, 0)
	loss := k.choose(counts, k.neg(l.gather(p, 1, classes.insert(1)).drop(1)), k.num(0))
	total := l.g.reduce(ir.Sum, counts, nil, false)
	switch c.int(3, 1) {
	case 1:
		loss = k.div(l.g.reduce(ir.Sum, loss, nil, false), total)
	case 2:
		loss = l.g.reduce(ir.Sum, loss, nil, false)
	}
	l.out(c, 0, loss)
	l.out(c, 1, total)
}

func nllBackward(l *lowering, c *Call) {
	k := calc{l.g}
	grad := l.in(c, 0)
	p, classes, counts := l.nll(c, 1)
	if c.int(4, 1) == 1 {
		grad = k.div(grad, l.g.reduce(ir.Sum, counts, nil, false))
	}
	src := k.choose(counts, k.neg(grad), k.num(0)).broadcast(classes.sizes)
	// One-hot: a comparison fuses with the loop over the probabilities, and needs no memory of its own.
	n := p.sizes[1]
	labels := make([]float64, n)
	for i := range labels {
		labels[i] = float64(i)
	}
	hot := k.of(ir.Eq, classes.insert(1), single([]int{1, n}, whole(l.g.constant(labels), []int{1, n})))
	l.out(c, 0, k.choose(hot, src.insert(1), k.num(0)))
}
