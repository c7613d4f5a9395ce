package kernel

// node is a subtree of 2^height consecutive points. Its first point is the one nearest to where it grew from. In a leaf
// the first point is all there is, and rho and last say nothing.
type node struct {
	height      int
	weight      float64   // the sum of the points' weights
	rho         []float64 // sum of the momenta
	first, last *motion   // of the first and last point
	drawn       *proposal
}

// proposal is the point drawn from a subtree.
type proposal struct {
	place
	energy float64
	moved  bool // it is not the point that the transition began with
}

func newNode(d int) node {
	b := make([]float64, 7*d)
	at := func(i int) []float64 { return b[i*d : (i+1)*d : (i+1)*d] }
	return node{rho: at(0), first: &motion{P: at(1), V: at(2)}, last: &motion{P: at(3), V: at(4)},
		drawn: &proposal{place: place{X: at(5), Grad: at(6)}}}
}

// leaf makes the node one point, whose place and motion are there already.
func (n *node) leaf(weight, energy float64) {
	n.height, n.weight = 0, weight
	n.drawn.energy, n.drawn.moved = energy, true
}

// turn changes first and last.
func (n *node) turn() {
	if n.height > 0 {
		n.first, n.last = n.last, n.first
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
	rho, p, q, v, w := a.rho, a.first.P[:d], b.first.P[:d], a.first.V[:d], b.first.V[:d]
	for i := range rho {
		r := p[i] + q[i]
		first += v[i] * r
		last += w[i] * r
		rho[i] = r
	}
	a.last, b.first = b.first, a.last
	return first > 0 && last > 0
}

// join joins two subtrees.
func join(a, b *node) bool {
	var whole1, whole2, left1, left2, right1, right2 float64
	d := len(a.rho)
	rho, rhoB, p2, q1 := a.rho, b.rho[:d], a.last.P[:d], b.first.P[:d]
	v1, v2, w1, w2 := a.first.V[:d], a.last.V[:d], b.first.V[:d], b.last.V[:d]
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
	a.last, b.last = b.last, a.last
	return whole1 > 0 && whole2 > 0 && left1 > 0 && left2 > 0 && right1 > 0 && right2 > 0
}
