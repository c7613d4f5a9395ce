package mcmc

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"

	"github.com/kelvin-ppl/kelvin/infer"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// chain is all that the next update of a chain depends on.
type chain struct {
	X     []float64
	V     float64   // log density at X and temperature At, as density.at has it
	G     []float64 // its gradient; nil without
	At    float64
	Scale float64   // of proposals, adapted
	Width []float64 // of each coordinate, adapted
	Root  []float64 // the Cholesky factor of a covariance, d·d numbers, adapted; nil for none
	N     int       // updates in the window of the warm-up
	Mean  []float64 // of the window
	Sum   []float64 // of the window: what the adaptation adds up

	Updates, Evaluations int     // since the last draw
	Accept               float64 // of these updates, added up
}

// move is one update of one chain.
type move struct {
	*chain
	*rand.Rand
	evaluate    func(x, g []float64) (float64, error)
	prior       *gaussian   // of Elliptical
	others      [][]float64 // the points of the other half of an ensemble, which do not move
	temperature float64
	adapting    bool
	before      float64 // what the density was before the update
	norm        float64 // of its gradient there
	accept      float64 // the probability of the proposal; 1 where nothing is proposed
	evaluations int
	undefined   int       // values that were NaN or +Inf
	first       []float64 // where the first of them was
	buffer      []float64
}

// failed carries an error out of an update.
type failed struct{ error }

// value is the log density at x, −Inf where it is not a number.
func (m *move) value(x []float64) float64 { return m.graded(x, nil) }

// graded is value with the gradient, where g is not nil.
func (m *move) graded(x, g []float64) float64 {
	m.buffer = append(m.buffer[:0], x...)
	m.evaluations++
	v, err := m.evaluate(m.buffer, g)
	if err != nil {
		panic(failed{err})
	}
	if math.IsNaN(v) || v > math.MaxFloat64 {
		if m.undefined++; m.first == nil {
			m.first = append([]float64{}, x...)
		}
		return math.Inf(-1)
	}
	return v
}

// take goes to x, where the log density is v, with probability min(1, exp(ratio)).
func (m *move) take(x []float64, v, ratio float64) bool {
	m.accept = math.Min(1, math.Exp(ratio))
	if !(m.Float64() < m.accept) {
		return false
	}
	m.X, m.V = append([]float64{}, x...), v
	return true
}

// begin evaluates the density where the chain stands, if that is not known at the temperature.
func (m *move) begin(number int, graded bool) error {
	if m.At == m.temperature {
		return nil
	}
	if graded {
		m.G = make([]float64, len(m.X))
	}
	m.At, m.V = m.temperature, m.graded(m.X, m.G)
	if math.IsInf(m.V, 0) || floats.Sum(m.G)-floats.Sum(m.G) != 0 {
		return fmt.Errorf("the log density of chain %d or its gradient is not finite at the start, %.4g: %w", number, m.X,
			infer.ErrNonFinite)
	}
	return nil
}

// normals are standard normal numbers.
func (m *move) normals(n int) []float64 {
	z := make([]float64, n)
	for i := range z {
		z[i] = m.NormFloat64()
	}
	return z
}

// source is the random numbers of one update of one chain: a function of its arguments, so that nothing is to be saved.
func source(seed, chain uint64, step int) *rand.Rand {
	mix := func(x uint64) uint64 { // SplitMix64 (Steele, Lea and Flood 2014)
		x += 0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		return x ^ x>>31
	}
	a := mix(seed ^ mix(chain))
	return rand.New(rand.NewPCG(mix(a^uint64(step)), mix(mix(a)+uint64(step))))
}

// guarded calls f, whose panic is an error.
func guarded(f func() error) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case failed:
			err = v.error
		default:
			err = &infer.PanicError{In: "log density", Value: v, Stack: string(debug.Stack())}
		}
	}()
	return f()
}

// windowed says how a warm-up of so many updates learns at its n-th: where the window of what it adds up is read, and
// where the next one begins. Windows double, so that the last one is half of the warm-up and has forgotten the start.
func windowed(n, warmup int) (read, forget bool) {
	power := n >= 32 && n&(n-1) == 0
	return power || n%64 == 0 || n == warmup, power && 2*n <= warmup
}

// forget begins a window.
func (c *chain) forget() {
	c.N = 0
	clear(c.Mean)
	clear(c.Sum)
}

// learn adds the point to the covariance of the window: mean and sum of products of deviations (Welford).
func (c *chain) learn() {
	d := len(c.X)
	if c.Mean == nil {
		c.Mean, c.Sum = make([]float64, d), make([]float64, d*d)
	}
	c.N++
	before := make([]float64, d)
	for i, x := range c.X {
		before[i] = x - c.Mean[i]
		c.Mean[i] += before[i] / float64(c.N)
	}
	for i := range d {
		for j := range i + 1 {
			c.Sum[i*d+j] += before[i] * (c.X[j] - c.Mean[j])
		}
	}
}

// covariance makes Root the factor of the window's covariance, its off-diagonal shrunk as if five points more had none.
func (c *chain) covariance() {
	d := len(c.X)
	if c.N < 10 {
		return
	}
	n := float64(c.N)
	s := mat.NewSymDense(d, nil)
	for i := range d {
		for j := range i + 1 {
			v := c.Sum[i*d+j] / (n - 1)
			if i != j {
				v *= n / (n + 5)
			}
			s.SetSym(i, j, v)
		}
	}
	var factor mat.Cholesky
	if !factor.Factorize(s) {
		return
	}
	var l mat.TriDense
	factor.LTo(&l)
	c.Root = make([]float64, d*d)
	for i := range d {
		for j := range i + 1 {
			c.Root[i*d+j] = l.At(i, j)
		}
	}
}

// times is the lower triangle root times z; with a nil root z.
func times(root, z []float64) []float64 {
	if root == nil {
		return z
	}
	d := len(z)
	out := make([]float64, d)
	for i := range d {
		for j, r := range root[i*d : i*d+i+1] {
			out[i] += r * z[j]
		}
	}
	return out
}
