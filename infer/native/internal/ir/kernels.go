package ir

//go:generate sh -c "cd gen && GOWORK=off go run . -out ../kernels_amd64.s -stubs ../kernels_amd64.go -pkg ir"

// kernels are operations on blocks in assembly. Those that are nil are loops in Go, which say what the others do: these
// have the same bits, but for exponentials and logarithms, which are those of the virtual machine in C and are right to
// 1 unit in the last place as Go's are, and for the order of sums. Lengths are multiples of four above 0; an operand
// moves by its step, 32 bytes, or 0 for a number in four places.
type kernels struct {
	one            [Select]func(d, a *float64, n int)
	two            [Select]func(d, a, b *float64, as, bs, n int)
	mulAdd, choose func(d, a, b, c *float64, as, bs, cs, n int)
	sum            func(a *float64, n int) float64
	dot            func(a, b *float64, n int) float64
}

// fast are the kernels of this processor.
var fast = fastest()

// operands are vectors or numbers for a kernel, with room for numbers and for what is left of a division by four.
type operands struct {
	number [3][4]float64
	rest   [4][4]float64
}

// value is an operand: a vector, or a number where that is nil.
type value struct {
	vector []float64
	number float64
}

// take has the operand as a kernel takes it.
func (o *operands) take(k int, v value) (p *float64, step int) {
	if v.vector != nil {
		return &v.vector[0], 32
	}
	for i := range o.number[k] {
		o.number[k][i] = v.number
	}
	return &o.number[k][0], 0
}

// tail is what is left of an operand from n on, in four places, as a kernel takes it.
func (o *operands) tail(k, n int, v value) *float64 {
	if v.vector == nil {
		p, _ := o.take(k, v)
		return p
	}
	copy(o.rest[k][:], v.vector[n:])
	return &o.rest[k][0]
}

// few elements are faster in Go: a kernel waits for numbers that were just written one by one.
const few = 16

// one runs an operation of one operand. It is false where there is no kernel, or Go is faster.
func (o *operands) one(op Op, d, a []float64) bool {
	f := fast.one[op]
	if f == nil || len(d) < few && (len(d) < 4 || op <= Sqrt) {
		return false
	}
	n := len(d) &^ 3
	f(&d[0], &a[0], n)
	if n < len(d) {
		f(&o.rest[3][0], o.tail(0, n, value{vector: a}), 4)
		copy(d[n:], o.rest[3][:])
	}
	return true
}

// two runs an operation of two operands on at least a few elements. It is false where there is no kernel.
func (o *operands) two(op Op, d []float64, a, b value) bool {
	f := fast.two[op]
	if f == nil {
		return false
	}
	n := len(d) &^ 3
	p, as := o.take(0, a)
	q, bs := o.take(1, b)
	f(&d[0], p, q, as, bs, n)
	if n < len(d) {
		f(&o.rest[3][0], o.tail(0, n, a), o.tail(1, n, b), 32, 32, 4)
		copy(d[n:], o.rest[3][:])
	}
	return true
}

// three runs a kernel of three operands, likewise: on at least a few elements.
func (o *operands) three(f func(d, a, b, c *float64, as, bs, cs, n int), d []float64, a, b, c value) bool {
	if f == nil {
		return false
	}
	n := len(d) &^ 3
	p, as := o.take(0, a)
	q, bs := o.take(1, b)
	r, cs := o.take(2, c)
	f(&d[0], p, q, r, as, bs, cs, n)
	if n < len(d) {
		f(&o.rest[3][0], o.tail(0, n, a), o.tail(1, n, b), o.tail(2, n, c), 32, 32, 32, 4)
		copy(d[n:], o.rest[3][:])
	}
	return true
}

// sum adds up, in parts that the processor does at the same time.
func sum(v []float64) float64 {
	s := 0.0
	if n := len(v) &^ 3; fast.sum != nil && n >= few {
		s, v = fast.sum(&v[0], n), v[n:]
	}
	var a, b, c, d float64
	for ; len(v) >= 4; v = v[4:] {
		a, b, c, d = a+v[0], b+v[1], c+v[2], d+v[3]
	}
	for _, x := range v {
		a += x
	}
	return s + (a + b + (c + d))
}

// dot is Σ u·v, likewise.
func dot(u, v []float64) float64 {
	s := 0.0
	v = v[:len(u)]
	if n := len(v) &^ 3; fast.dot != nil && n >= few {
		s, u, v = fast.dot(&u[0], &v[0], n), u[n:], v[n:]
	}
	var a, b, c, d float64
	for ; len(u) >= 4 && len(v) >= 4; u, v = u[4:], v[4:] {
		a, b, c, d = a+u[0]*v[0], b+u[1]*v[1], c+u[2]*v[2], d+u[3]*v[3]
	}
	for i, x := range u {
		a += x * v[i]
	}
	return s + (a + b + (c + d))
}

// mulAdd sets d to a·b + c, each rounded, of a vector a and a vector c.
func (o *operands) mulAdd(d, a []float64, b value, c []float64) {
	if len(d) >= few && o.three(fast.mulAdd, d, value{vector: a}, b, value{vector: c}) {
		return
	}
	a, c = a[:len(d)], c[:len(d)]
	if b.vector == nil {
		for i := range d {
			d[i] = float64(a[i]*b.number) + c[i]
		}
		return
	}
	v := b.vector[:len(d)]
	for i := range d {
		d[i] = float64(a[i]*v[i]) + c[i]
	}
}
