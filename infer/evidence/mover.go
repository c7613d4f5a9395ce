package evidence

import (
	"cmp"
	"context"
	"math"
	"runtime"

	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
	"github.com/kelvin-ppl/kelvin/infer/path"
	"github.com/kelvin-ppl/kelvin/internal/parallel"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// rows are K points of a path with what is known of them. They are all of a checkpoint's numbers of the points.
type rows struct {
	X     []float64 // [K, d]
	Beta  []float64 // [K]
	LogP  []float64 // [K]
	Slope []float64 // [K]
	Grad  []float64 // [K, d]
}

func newRows(k, d int) *rows {
	return &rows{X: make([]float64, k*d), Beta: make([]float64, k), LogP: make([]float64, k), Slope: make([]float64, k),
		Grad: make([]float64, k*d)}
}

// copyRow sets row i to row j of from.
func (r *rows) copyRow(i int, from *rows, j, d int) {
	copy(r.X[i*d:(i+1)*d], from.X[j*d:(j+1)*d])
	copy(r.Grad[i*d:(i+1)*d], from.Grad[j*d:(j+1)*d])
	r.Beta[i], r.LogP[i], r.Slope[i] = from.Beta[j], from.LogP[j], from.Slope[j]
}

// mover evaluates points of a path and moves them by Hamiltonian Monte Carlo, many at a time.
type mover struct {
	ctx   context.Context
	e     *path.Evaluator
	d     int
	count int // evaluations
	parts []path.Points
}

// fewest is how many rows are worth a goroutine of their own.
const fewest = 16

// eval evaluates the points at their β. Native code takes rows one after the other, in as many goroutines as there are
// processors: that changes no bit.
func (m *mover) eval(r *rows) error {
	if err := m.ctx.Err(); err != nil {
		return err
	}
	k := len(r.Beta)
	workers := 1
	if m.e.Compiled() {
		workers = max(1, min(runtime.GOMAXPROCS(0), k/fewest))
	}
	for len(m.parts) < workers {
		m.parts = append(m.parts, path.Points{})
	}
	errs := make([]error, workers)
	var all parallel.Group
	for w := range workers {
		all.Go(func() {
			from, to := w*k/workers, (w+1)*k/workers
			p := &m.parts[w]
			if errs[w] = m.e.Eval(r.X[from*m.d:to*m.d], r.Beta[from:to], p); errs[w] != nil {
				return
			}
			copy(r.LogP[from:to], p.LogP)
			copy(r.Slope[from:to], p.Slope)
			copy(r.Grad[from*m.d:to*m.d], p.Grad)
		})
	}
	all.Wait() // a panic of the model is that of this goroutine, which the run makes an error
	m.count += k
	return cmp.Or(errs...)
}

// trajectory is what one HMC transition of each row needs.
type trajectory struct {
	eps      []float64   // step size of each row
	steps    []int       // leapfrog steps of each row, drawn without looking at its point; 0 leaves it
	variance [][]float64 // of each row, diag M⁻¹
	normals  []float64   // [K, d], for the momenta
	uniforms []float64   // [K], for the acceptance
}

// move makes one transition of each row in place, and returns the acceptance probability of each, NaN of a row that
// stands where the density is not finite, or has no steps to make:
//
//	p ~ N(0, M), L leapfrog steps of size ε on −log density(x) + p·M⁻¹p/2, accept with min(1, exp(−ΔH))
//
// A trajectory is broken off where it is not finite, and bounces from the walls of a reference.
func (m *mover) move(r *rows, t trajectory) ([]float64, error) {
	k, d := len(r.Beta), m.d
	next := newRows(k, d)
	copy(next.X, r.X)
	copy(next.Beta, r.Beta)
	copy(next.Grad, r.Grad)
	copy(next.LogP, r.LogP)
	copy(next.Slope, r.Slope)
	p, before := make([]float64, k*d), make([]float64, k)
	active := make([]int, 0, k)
	for i := range k {
		before[i] = -r.LogP[i]
		for j := range d {
			z := t.normals[i*d+j]
			p[i*d+j] = z / math.Sqrt(t.variance[i][j])
			before[i] += 0.5 * z * z
		}
		if finite(before[i]) && t.steps[i] > 0 {
			active = append(active, i)
		}
	}
	block := newRows(k, d)
	lower, upper := m.e.Walls()
	for step := 1; len(active) > 0; step++ {
		b := &rows{X: block.X[:len(active)*d], Beta: block.Beta[:len(active)], LogP: block.LogP[:len(active)],
			Slope: block.Slope[:len(active)], Grad: block.Grad[:len(active)*d]}
		for n, i := range active {
			b.Beta[n] = r.Beta[i]
			for j := range d {
				q := p[i*d+j] + 0.5*t.eps[i]*next.Grad[i*d+j]
				p[i*d+j] = q
				b.X[n*d+j] = next.X[i*d+j] + t.eps[i]*t.variance[i][j]*q
			}
			bounce(b.X[n*d:(n+1)*d], p[i*d:(i+1)*d], lower, upper)
		}
		if err := m.eval(b); err != nil {
			return nil, err
		}
		left := active[:0]
		for n, i := range active {
			next.copyRow(i, b, n, d)
			whole := finite(b.LogP[n])
			for j := range d {
				p[i*d+j] += 0.5 * t.eps[i] * b.Grad[n*d+j]
				whole = whole && finite(p[i*d+j])
			}
			if !whole {
				next.LogP[i] = math.Inf(-1)
			} else if step < t.steps[i] {
				left = append(left, i)
			}
		}
		active = left
	}
	accept := make([]float64, k)
	for i := range k {
		x := next.X[i*d : (i+1)*d]
		if !finite(before[i]) || t.steps[i] == 0 {
			accept[i] = math.NaN()
			continue
		}
		if !finite(next.LogP[i]) || !finite(next.Slope[i]) || !m.e.Inside(x) {
			continue
		}
		after := -next.LogP[i]
		for j := range d {
			q := p[i*d+j]
			after += 0.5 * q * q * t.variance[i][j]
		}
		if accept[i] = math.Min(1, math.Exp(before[i]-after)); math.IsNaN(accept[i]) {
			accept[i] = 0
		}
		if t.uniforms[i] < accept[i] {
			r.copyRow(i, next, i, d)
		}
	}
	return accept, nil
}

// bounce keeps a point within the walls; lower and upper may be nil. Walls that the point met turn its momentum.
func bounce(x, p, lower, upper []float64) {
	if lower == nil && upper == nil {
		return
	}
	low, high := math.Inf(-1), math.Inf(1)
	for j, v := range x {
		if lower != nil {
			low = lower[j]
		}
		if upper != nil {
			high = upper[j]
		}
		var back bool
		if x[j], back = kernel.Bounce(v, low, high); back {
			p[j] = -p[j]
		}
	}
}

// meanAccept is the mean of the acceptance probabilities that are not NaN; ok is false if all are.
func meanAccept(accept []float64) (mean float64, ok bool) {
	n := 0.0
	for _, a := range accept {
		if !math.IsNaN(a) {
			mean += a
			n++
		}
	}
	return mean / max(n, 1), n > 0
}

// numbers are random numbers of one stream.
type numbers struct{ torch.Streams }

func newNumbers(seed, chain, offset uint64) numbers {
	s := torch.NewStreams(seed, 1)
	s.Chains[0], s.Offset = chain, offset
	return numbers{s}
}

func (s *numbers) normals(n int) ([]float64, error) { return s.read(n, s.Normal) }

func (s *numbers) uniforms(n int) ([]float64, error) { return s.read(n, s.Uniform) }

func (s *numbers) read(n int,
	f func(shape []int, dtype gotch.DType, device gotch.Device) (torch.Tensor, error)) (x []float64, err error) {
	err = torch.Do(func(*torch.Scope) error {
		t, err := f([]int{n}, gotch.Double, torch.CPU)
		if err != nil {
			return err
		}
		x, err = torch.ToSlice[float64](t)
		return err
	})
	return x, err
}

// starts is the first stream of the draws at β = 0 of a chain. No chain of a run has a number as high.
func starts(chain uint64) uint64 { return 1<<62 + chain<<32 }

// pace is the integration time of a trajectory, where the masses make the posterior's scale 1: a little less than a
// quarter of a period.
const pace = 1.5

// mostSteps bounds the leapfrog steps of a trajectory.
const mostSteps = 128

// lengths draws the leapfrog steps of trajectories of a step size, uniformly around pace/ε, so that no period of the
// target is met again and again.
func lengths(eps, u float64) int {
	n := math.Ceil(pace / eps)
	return max(1, int(math.Min(n, mostSteps)*(0.5+u)+0.5))
}
