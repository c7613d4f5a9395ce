package lower

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// networkRules are activations and losses of networks.
var networkRules = map[string]rule{
	"relu": func(l *lowering, c *Call) { l.out(c, 0, l.of(ir.Max, l.in(c, 0), l.num(0))) },
	"threshold_backward": func(l *lowering, c *Call) {
		l.out(c, 0, l.choose(l.of(ir.Le, l.in(c, 1), l.num(c.number(2, 0))), l.num(0), l.in(c, 0)))
	},
	"silu": func(l *lowering, c *Call) {
		x := l.in(c, 0)
		l.out(c, 0, l.div(x, l.add(l.exp(l.neg(x)), l.num(1))))
	},
	"silu_backward": func(l *lowering, c *Call) {
		grad, x := l.in(c, 0), l.in(c, 1)
		s := l.sigmoid(x)
		l.out(c, 0, l.mul(l.mul(grad, s), l.add(l.mul(x, l.sub(l.num(1), s)), l.num(1))))
	},
	"gelu": func(l *lowering, c *Call) {
		x := l.in(c, 0)
		if c.has(1) && c.Args[1].Text == "tanh" {
			l.out(c, 0, l.mul(l.scale(x, 0.5), l.add(l.of(ir.Tanh, geluInner(l.calc, x)), l.num(1))))
			return
		}
		l.out(c, 0, l.mul(l.scale(x, 0.5), l.add(l.of(ir.Erf, l.scale(x, math.Sqrt2/2)), l.num(1))))
	},
	"gelu_backward": func(l *lowering, c *Call) {
		grad, x := l.in(c, 0), l.in(c, 1)
		if c.has(2) && c.Args[2].Text == "tanh" {
			t := l.of(ir.Tanh, geluInner(l.calc, x))
			left := l.scale(l.add(t, l.num(1)), 0.5)
			slope := l.scale(l.add(l.scale(l.mul(x, x), 3*geluCubic), l.num(1)), geluScale)
			right := l.mul(l.mul(l.scale(x, 0.5), l.sub(l.num(1), l.mul(t, t))), slope)
			l.out(c, 0, l.mul(grad, l.add(left, right)))
			return
		}
		cdf := l.scale(l.add(l.of(ir.Erf, l.scale(x, math.Sqrt2/2)), l.num(1)), 0.5)
		pdf := l.scale(l.exp(l.scale(l.mul(x, x), -0.5)), 1/math.Sqrt(2*math.Pi))
		l.out(c, 0, l.mul(grad, l.add(cdf, l.mul(x, pdf))))
	},
	"elu": func(l *lowering, c *Call) {
		x := l.in(c, 0)
		alpha, scale, in := c.number(1, 1), c.number(2, 1), c.number(3, 1)
		low := l.scale(l.of(ir.Expm1, l.scale(x, in)), alpha*scale)
		l.out(c, 0, l.choose(l.of(ir.Le, x, l.num(0)), low, l.scale(x, scale)))
	},
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
	"leaky_relu": func(l *lowering, c *Call) {
		x := l.in(c, 0)
		l.out(c, 0, l.choose(l.less(l.num(0), x), x, l.scale(x, c.number(1, 0.01))))
	},
	"leaky_relu_backward": func(l *lowering, c *Call) {
		grad, x := l.in(c, 0), l.in(c, 1)
		l.out(c, 0, l.choose(l.less(l.num(0), x), grad, l.scale(grad, c.number(2, 0.01))))
	},
	"hardtanh": func(l *lowering, c *Call) {
		x := l.in(c, 0)
		l.out(c, 0, l.of(ir.Min, l.of(ir.Max, x, l.num(c.number(1, -1))), l.num(c.number(2, 1))))
	},
	"hardtanh_backward": func(l *lowering, c *Call) {
		grad, x := l.in(c, 0), l.in(c, 1)
		outside := l.of(ir.Or, l.of(ir.Le, x, l.num(c.number(2, -1))), l.of(ir.Le, l.num(c.number(3, 1)), x))
		l.out(c, 0, l.choose(outside, l.num(0), grad))
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
