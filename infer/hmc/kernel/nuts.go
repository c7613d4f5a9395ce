package kernel

import (
	"math"
	"math/bits"
)

// NUTS is the no-U-turn sampler (Hoffman and Gelman 2014) with multinomial weights (Betancourt 2017), as in Stan since
// version 2.21. One transition draws p ~ N(0, M) and doubles a trajectory forwards or backwards, at random, until it
// turns:
//
//   - a point has the weight exp(H₀ - H);
//   - within the new half a point is drawn with probability proportional to its weight. Between the old trajectory and
//     the new half the new one is preferred: its point is taken with probability min(1, W_new/W_old);
//   - a (sub)trajectory with ends 1, 2, velocities v = M⁻¹p and momentum sum ρ goes on while v₁·ρ > 0 and v₂·ρ > 0. Two
//     joined halves are asked the same of the left half with the first point of the right, and of the right with the
//     last of the left, which catches the turns that ends alone do not see;
//   - a new half that turns or diverges within itself is dropped, and ends the transition.
//
// The tree is walked from leaf to leaf with a stack of one node for each depth, as a binary counter counts: merging
// happens in the order of the recursion, and no memory is allocated after build.
type NUTS struct {
	MaxDepth  int     // doublings allowed; default 10, at most 30
	MaxDeltaH float64 // energy error H - H₀ above which the trajectory diverges; default 1000
}

type nuts struct {
	NUTS
	start     place
	fwd, bck  phase    // the two ends of the trajectory, wherever they lie
	own       [2]phase // memory of theirs
	tree      node     // the trajectory
	stack     []node   // of the half that grows
	reference float64  // the H of weight 1
}

// build checks the configuration and makes the memory, (7 MaxDepth + 22) d numbers.
func (c NUTS) build(d int) (transition, error) {
	check := checks{typ: "kernel.NUTS"}
	check.require(d >= 1, "dimension", d, "it must be at least 1")
	check.atLeast("MaxDepth", &c.MaxDepth, 10, 1)
	check.require(c.MaxDepth <= 30, "MaxDepth", c.MaxDepth, "it must be at most 30")
	if check.positive("MaxDeltaH", &c.MaxDeltaH, 1000); check.err != nil {
		return nil, check.err
	}
	t := &nuts{NUTS: c, own: [2]phase{newPhase(d), newPhase(d)}, tree: newNode(d), stack: make([]node, c.MaxDepth+1)}
	for i := range t.stack {
		t.stack[i] = newNode(d)
	}
	return t, nil
}

func (t *nuts) Target() float64 { return 0.8 }

// grown is how a half ended.
type grown int

const (
	whole grown = iota
	turned
	diverged
)

func (t *nuts) Step(s *position, stepSize, temperature float64, m massMatrix, g gradient, rng *stream) (Info, error) {
	if err := checkStep("kernel.NUTS", stepSize, temperature); err != nil {
		return Info{}, err
	}
	start := rng.Position
	// The start lies in s, which does not change before the end, and in the tree, where it stays as long as it is an end.
	t.start = place{X: s.X, Grad: s.Grad, LogP: s.LogP}
	z := phase{&t.start, t.tree.first, t.own[0].pull}
	m.Sample(z.P, rng)
	m.Velocity(z.V, z.P)
	h0 := z.Energy(temperature)
	t.fwd, t.bck = z, z
	t.bck.pull = t.own[1].pull
	t.fwd.known, t.bck.known = false, false
	copy(t.tree.drawn.X, s.X)
	copy(t.tree.drawn.Grad, s.Grad)
	t.reference = h0
	t.tree.leaf(1, h0)
	t.tree.drawn.LogP = s.LogP
	t.tree.drawn.moved = false

	info := Info{StepSize: stepSize}
	sum, both := 0.0, 0.0 // of the Metropolis probabilities of the points, and of the symmetric ones
	for info.Depth < t.MaxDepth && !info.Turning && !info.Divergent {
		backwards := rng.Float64() < 0.5
		end, own, eps := &t.fwd, &t.own[0], stepSize
		if backwards {
			end, own, eps = &t.bck, &t.own[1], -stepSize
		}
		how, err := t.grow(end, info.Depth, eps, h0, temperature, m, g, rng, &info.Leapfrogs, &sum, &both)
		if err != nil {
			rng.Position = start
			return Info{}, err
		}
		if how != whole {
			info.Turning, info.Divergent = how == turned, how == diverged
			break
		}
		info.Depth++
		if backwards {
			t.tree.turn() // so that the new half follows
		}
		info.Turning = !merge(&t.tree, &t.stack[0], true, rng)
		if backwards {
			t.tree.turn()
		}
		if !info.Turning { // the memory of the end is that of a node, which is used again
			own.arrive(*end)
			*end = *own
		}
	}
	info.MaxDepth = !info.Turning && !info.Divergent
	info.Accept, info.symmetric = sum/float64(info.Leapfrogs), both/float64(info.Leapfrogs)
	drawn := t.tree.drawn
	info.Accepted, info.LogP, info.Energy = drawn.moved, drawn.LogP, drawn.energy
	copy(s.X, drawn.X)
	copy(s.Grad, drawn.Grad)
	s.LogP = drawn.LogP
	s.Momentum = nil
	return info, nil
}

// grow makes 2^depth points from the end z, leaving their tree in stack[0] and the last of them in z, or stops at the
// first subtree that turns or point that diverges. Each point is made in the memory of its leaf. Merging gives that
// away, but nothing writes to it before the next point is made.
func (t *nuts) grow(z *phase, depth int, eps, h0, temperature float64, m massMatrix, g gradient, rng *stream, n *int,
	sum, both *float64) (grown, error) {
	top := 0 // nodes on the stack
	at := *z
	for i := 1; i <= 1<<depth; i++ {
		last := &t.stack[top]
		next := phase{&last.drawn.place, last.first, at.pull}
		if err := leap(next, at, eps, temperature, m, g); err != nil {
			return diverged, err
		}
		at = next
		h := at.moved(temperature)
		*n++
		accept := exp(h0 - h)
		weight := accept
		*sum += min(1, accept)
		*both += 2 * min(1, accept) / (1 + accept)
		if h-h0 > t.MaxDeltaH {
			return diverged, nil
		}
		if t.reference != h0 || h0-h > maxLogWeight {
			weight = t.weigh(h, top)
		}
		last.leaf(weight, h)
		top++
		for range bits.TrailingZeros(uint(i)) { // as many nodes of equal height end here
			top--
			before := &t.stack[top-1]
			if !merge(before, last, false, rng) {
				return turned, nil
			}
			last = before
		}
	}
	*z = at
	return whole, nil
}

// maxLogWeight is the largest log weight of a point. 2^30 points of that weight add up to a number still.
const maxLogWeight = 600

// weigh is the weight exp(reference - h) of a point. A point so probable that its weight might be no number becomes the
// reference, and the weights before it, of the trajectory and of the first top nodes, shrink accordingly. A weight that
// underflows is one of a point that is never drawn: less than e^-700 of the whole.
func (t *nuts) weigh(h float64, top int) float64 {
	if t.reference-h <= maxLogWeight {
		return math.Exp(t.reference - h)
	}
	shrink := math.Exp(h - t.reference)
	t.tree.weight *= shrink
	for i := range t.stack[:top] {
		t.stack[i].weight *= shrink
	}
	t.reference = h
	return 1
}

// expTable is 2^(j/128).
var expTable = func() (t [128]float64) {
	for j := range t {
		t[j] = math.Exp2(float64(j) / 128)
	}
	return t
}()

// exp is math.Exp with a shorter chain of operations that wait for each other: x = (128 e + j) ln 2/128 + r, and
// e^x = 2^e 2^(j/128) e^r with five terms of the series of e^r - 1, |r| < 0.0028. The error is below 2 ulp.
func exp(x float64) float64 {
	if !(math.Abs(x) < 700) {
		return math.Exp(x)
	}
	const (
		shift = 3 << 51 // its last bit is worth 1, so that a sum with it is rounded to a whole number
		high  = 0x1.62e42fefap-8
		low   = 0x1.cf79abc9e3b3ap-47
	)
	whole := x*(128/math.Ln2) + shift
	n := whole - shift
	k := int(math.Float64bits(whole)) - 0x4338000000000000
	r := (x - n*high) - n*low
	r2 := r * r
	p := r + r2*((1./2+r*(1./6))+r2*(1./24+r*(1./120)))
	t := expTable[k&127]
	return math.Float64frombits(math.Float64bits(t+t*p) + uint64(k>>7)<<52)
}
