package kernel

// node is a subtree of 2^height consecutive points. Its first point is the one nearest to where it grew from. In a leaf
// the first point is all there is, and rho, p2 and v2 say nothing.
type node struct {
	height int
	weight float64   // the sum of the points' weights
	rho    []float64 // sum of the momenta
	p1, p2 []float64 // momenta of the first and last point
	v1, v2 []float64 // their velocities
	drawn  *proposal
}

// proposal is the point drawn from a subtree.
type proposal struct {
	x, grad      []float64
	logp, energy float64
	moved        bool // it is not the point that the transition began with
}

func newNode(d int) node {
	b := make([]float64, 7*d)
	at := func(i int) []float64 { return b[i*d : (i+1)*d : (i+1)*d] }
	return node{rho: at(0), p1: at(1), p2: at(2), v1: at(3), v2: at(4), drawn: &proposal{x: at(5), grad: at(6)}}
}

// leaf sets the node to one point.
func (n *node) leaf(z *phase, weight, energy float64) {
	n.height, n.weight = 0, weight
	copy(n.p1, z.P)
	copy(n.v1, z.V)
	copy(n.drawn.x, z.X)
	copy(n.drawn.grad, z.Grad)
	n.drawn.logp, n.drawn.energy, n.drawn.moved = z.LogP, energy, true
}

// turn changes first and last.
func (n *node) turn() {
	if n.height > 0 {
		n.p1, n.p2 = n.p2, n.p1
		n.v1, n.v2 = n.v2, n.v1
	}
}

// merge joins b, which follows a and is of the same height, to a. Its point replaces a's with probability
// W_b/(W_a + W_b), or min(1, W_b/W_a) when biased. It reports whether the joined trajectory goes on, by the three
// checks. b is used up.
func merge(a, b *node, biased bool, rng *stream) bool {
	total := a.weight + b.weight
	of := total
	if biased {
		of = a.weight
	}
	// No branch: it would be guessed wrong every other time, and only when the last energy is known.
	points, i := [2]*proposal{a.drawn, b.drawn}, 0
	if rng.Float64()*of < b.weight {
		i = 1
	}
	a.drawn, b.drawn = points[i], points[1-i]
	a.weight = total
	a.height++
	if a.height == 1 {
		return joinLeaves(a, b)
	}
	return join(a, b)
}

// joinLeaves joins two points. The three checks are one.
func joinLeaves(a, b *node) bool {
	var first, last float64
	d := len(a.rho)
	rho, p, q, v, w := a.rho, a.p1[:d], b.p1[:d], a.v1[:d], b.v1[:d]
	for i := range rho {
		r := p[i] + q[i]
		first += v[i] * r
		last += w[i] * r
		rho[i] = r
	}
	a.p2, b.p1 = b.p1, a.p2
	a.v2, b.v1 = b.v1, a.v2
	return first > 0 && last > 0
}

// join joins two subtrees.
func join(a, b *node) bool {
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
	return whole1 > 0 && whole2 > 0 && left1 > 0 && left2 > 0 && right1 > 0 && right2 > 0
}
