package kernel

import "math"

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

// node is a subtree of 2^height consecutive points. Its first point is the one nearest to where it grew from.
type node struct {
	height     int
	logW       float64   // log of the sum of the weights
	rho        []float64 // sum of the momenta
	p1, p2     []float64 // momenta of the first and last point
	v1, v2     []float64 // their velocities
	x, grad    []float64 // the point drawn
	logp       float64   // its log density
	energy     float64   // its H
	isProposal bool      // it is not the point that the transition began with
}

func newNode(d int) node {
	b := make([]float64, 7*d)
	at := func(i int) []float64 { return b[i*d : (i+1)*d : (i+1)*d] }
	return node{rho: at(0), p1: at(1), p2: at(2), v1: at(3), v2: at(4), x: at(5), grad: at(6)}
}

// leaf sets the node to one point of weight exp(logW).
func (n *node) leaf(z *phase, logW, energy float64) {
	copy(n.rho, z.P)
	copy(n.p1, z.P)
	copy(n.p2, z.P)
	copy(n.v1, z.V)
	copy(n.v2, z.V)
	copy(n.x, z.X)
	copy(n.grad, z.Grad)
	n.height, n.logW, n.logp, n.energy, n.isProposal = 0, logW, z.LogP, energy, true
}

// turn changes first and last.
func (n *node) turn() {
	n.p1, n.p2 = n.p2, n.p1
	n.v1, n.v2 = n.v2, n.v1
}

// merge joins b, which follows a, to a. Its point replaces a's with probability W_b/(W_a + W_b), or min(1, W_b/W_a)
// when biased. It reports whether the joined trajectory goes on, by the three checks. b is used up.
func merge(a, b *node, biased bool, rng *stream) bool {
	total := logAddExp(a.logW, b.logW)
	accept := math.Exp(b.logW - total)
	if biased {
		accept = math.Exp(b.logW - a.logW)
	}
	if rng.Float64() < accept {
		a.x, b.x = b.x, a.x
		a.grad, b.grad = b.grad, a.grad
		a.logp, a.energy, a.isProposal = b.logp, b.energy, b.isProposal
	}
	var whole1, whole2, left1, left2, right1, right2 float64
	d := len(a.rho)
	rho, rhoB, p2, q1 := a.rho, b.rho[:d], a.p2[:d], b.p1[:d]
	v1, v2, w1, w2 := a.v1[:d], a.v2[:d], b.v1[:d], b.v2[:d]
	for i, ra := range rho {
		rb := rhoB[i]
		r := ra + rb
		whole1 += v1[i] * r
		whole2 += w2[i] * r
		l := ra + q1[i]
		left1 += v1[i] * l
		left2 += w1[i] * l
		k := rb + p2[i]
		right1 += v2[i] * k
		right2 += w2[i] * k
		rho[i] = r
	}
	a.p2, b.p2 = b.p2, a.p2
	a.v2, b.v2 = b.v2, a.v2
	a.logW = total
	a.height++
	return whole1 > 0 && whole2 > 0 && left1 > 0 && left2 > 0 && right1 > 0 && right2 > 0
}

// logAddExp is log(e^a + e^b).
func logAddExp(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(a, -1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}

type nuts struct {
	NUTS
	d        int
	fwd, bck phase  // the two ends of the trajectory
	tree     node   // the trajectory
	stack    []node // of the half that grows
}

// build checks the configuration and makes the memory, (7 MaxDepth + 22) d numbers.
func (c NUTS) build(d int) (transition, error) {
	const typ = "kernel.NUTS"
	if d < 1 {
		return nil, &FieldError{typ, "dimension", d, "it must be at least 1"}
	}
	if err := atLeast(typ, "MaxDepth", &c.MaxDepth, 10, 1); err != nil {
		return nil, err
	}
	if c.MaxDepth > 30 {
		return nil, &FieldError{typ, "MaxDepth", c.MaxDepth, "it must be at most 30"}
	}
	if err := positive(typ, "MaxDeltaH", &c.MaxDeltaH, 1000); err != nil {
		return nil, err
	}
	t := &nuts{NUTS: c, d: d, fwd: newPhase(d), bck: newPhase(d), tree: newNode(d), stack: make([]node, c.MaxDepth+1)}
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
	start := *rng
	z := &t.fwd
	copy(z.X, s.X)
	copy(z.Grad, s.Grad)
	z.LogP = s.LogP
	m.Sample(z.P, rng)
	m.Velocity(z.V, z.P)
	h0 := z.Energy(temperature)
	t.bck.Copy(z)
	t.tree.leaf(z, 0, h0)
	t.tree.isProposal = false

	info := Info{StepSize: stepSize}
	sum := 0.0 // of the Metropolis probabilities of the points
	for info.Depth < t.MaxDepth && !info.Turning && !info.Divergent {
		backwards := rng.Float64() < 0.5
		end, eps := &t.fwd, stepSize
		if backwards {
			end, eps = &t.bck, -stepSize
		}
		how, err := t.grow(end, info.Depth, eps, h0, temperature, m, g, rng, &info.Leapfrogs, &sum)
		if err != nil {
			*rng = start
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
	}
	info.MaxDepth = !info.Turning && !info.Divergent
	info.Accept = sum / float64(info.Leapfrogs)
	info.Accepted = t.tree.isProposal
	info.LogP, info.Energy = t.tree.logp, t.tree.energy
	copy(s.X, t.tree.x)
	copy(s.Grad, t.tree.grad)
	s.LogP = t.tree.logp
	s.Momentum = nil
	return info, nil
}

// grow makes 2^depth points from the end z, leaving their tree in stack[0], or stops at the first subtree that turns or
// point that diverges.
func (t *nuts) grow(z *phase, depth int, eps, h0, temperature float64, m massMatrix, g gradient, rng *stream, n *int,
	sum *float64) (grown, error) {
	top := 0 // nodes on the stack
	for range 1 << depth {
		if err := leapfrog(z, eps, temperature, m, g); err != nil {
			return diverged, err
		}
		h := z.Energy(temperature)
		*n++
		*sum += math.Min(1, math.Exp(h0-h))
		if h-h0 > t.MaxDeltaH {
			return diverged, nil
		}
		t.stack[top].leaf(z, h0-h, h)
		top++
		for top > 1 && t.stack[top-1].height == t.stack[top-2].height {
			top--
			if !merge(&t.stack[top-1], &t.stack[top], false, rng) {
				return turned, nil
			}
		}
	}
	return whole, nil
}
