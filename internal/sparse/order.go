package sparse

import "slices"

// minimumDegree is an order of elimination with little fill: next comes the variable whose row has the fewest others,
// by the quotient graph and the approximate degrees of Amestoy, Davis and Duff (1996, SIAM Journal on Matrix Analysis
// and Applications 17).
func (p *Pattern) minimumDegree() []int {
	q := &quotient{variables: make([][]int, p.N), elements: make([][]int, p.N), members: make([][]int, p.N),
		mark: make([]int, p.N), degree: make([]int, p.N), outside: make([]int, p.N), seen: make([]int, p.N)}
	for j := range p.N {
		for _, i := range p.Row[p.Start[j]+1 : p.Start[j+1]] {
			q.variables[i] = append(q.variables[i], j)
			q.variables[j] = append(q.variables[j], i)
		}
	}
	q.buckets = newBuckets(p.N)
	for i := range p.N {
		q.mark[i], q.seen[i] = -1, -1
		q.degree[i] = len(q.variables[i])
		q.buckets.put(i, q.degree[i])
	}
	for len(q.order) < p.N {
		q.eliminate(q.buckets.take())
	}
	return q.order
}

// quotient is the graph of the variables that are left: two of them are neighbours by themselves, or as members of an
// element, which a variable that was eliminated has left behind.
type quotient struct {
	variables, elements [][]int // of each variable: its neighbours, and the elements that it is a member of
	members             [][]int // of each element; nil once another has taken it in
	degree              []int
	buckets             *buckets
	order               []int

	mark          []int // of variables: the last element that had them
	outside, seen []int // of elements: how many members the new element lacks, and for which element that was counted
}

// eliminate makes an element of a variable.
func (q *quotient) eliminate(e int) {
	q.order = append(q.order, e)
	q.mark[e] = e
	var members []int
	add := func(all []int) {
		for _, i := range all {
			if q.mark[i] != e {
				q.mark[i] = e
				members = append(members, i)
			}
		}
	}
	for _, other := range q.elements[e] {
		add(q.members[other])
		q.members[other] = nil
	}
	add(q.variables[e])
	q.variables[e], q.elements[e] = nil, nil
	for _, i := range members {
		for _, other := range q.elements[i] {
			if q.members[other] == nil {
				continue
			}
			if q.seen[other] != e {
				q.seen[other], q.outside[other] = e, len(q.members[other])
			}
			q.outside[other]--
		}
	}
	q.members[e] = members
	left := len(members) - 1
	for _, i := range members {
		degree := left
		q.elements[i] = slices.DeleteFunc(q.elements[i], func(other int) bool {
			if q.members[other] == nil || q.outside[other] == 0 { // e has all of its members
				return true
			}
			degree += q.outside[other]
			return false
		})
		q.elements[i] = append(q.elements[i], e)
		q.variables[i] = slices.DeleteFunc(q.variables[i], func(j int) bool { return q.mark[j] == e })
		degree = min(degree+len(q.variables[i]), q.degree[i]+left, len(q.mark)-len(q.order)-1)
		q.buckets.move(i, q.degree[i], degree)
		q.degree[i] = degree
	}
}

// buckets hold the variables of each degree in linked lists.
type buckets struct {
	head, next, before []int
	least              int
}

func newBuckets(n int) *buckets {
	b := &buckets{head: make([]int, n), next: make([]int, n), before: make([]int, n)}
	for i := range n {
		b.head[i] = -1
	}
	return b
}

func (b *buckets) put(i, degree int) {
	b.before[i], b.next[i] = -1, b.head[degree]
	if b.head[degree] >= 0 {
		b.before[b.head[degree]] = i
	}
	b.head[degree] = i
	b.least = min(b.least, degree)
}

func (b *buckets) drop(i, degree int) {
	if b.next[i] >= 0 {
		b.before[b.next[i]] = b.before[i]
	}
	if b.before[i] >= 0 {
		b.next[b.before[i]] = b.next[i]
	} else {
		b.head[degree] = b.next[i]
	}
}

func (b *buckets) move(i, from, to int) {
	b.drop(i, from)
	b.put(i, to)
}

// take is a variable of the least degree, which it takes out.
func (b *buckets) take() int {
	for b.head[b.least] < 0 {
		b.least++
	}
	i := b.head[b.least]
	b.drop(i, b.least)
	return i
}
