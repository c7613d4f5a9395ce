package evidence

import (
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
)

// rungs is all that the next round depends on. Row c·R + k is rung k of chain c.
type rungs struct {
	Rows      *rows
	Round     int
	Offset    uint64 // of all chains' streams
	Ladder    []float64
	Eps       []float64   // [R]
	Scale     [][]float64 // [R][d], variances
	Adapted   int         // rounds since the last window
	Count     float64     // points in the window
	Sum       [][]float64 // [R][d]
	Square    [][]float64
	Tried     float64   // rounds of each pair in the window
	Refused   []float64 // sums of the rates
	Refusals  []float64 // the same of the sampling rounds
	Fresh     []bool    // of each row: it comes from β = 0 and has not been at β = 1 since
	Arrived   int       // how many that came from β = 0 have arrived at β = 1, in the sampling rounds
	Slopes    [][]float64
	Gradients int
}

// walk is a run of TI.
type walk struct {
	*integrator
	mover  *mover
	job    infer.Job
	chains int
	size   int // R
	at     *rungs
	fresh  [][]float64 // draws at β = 0 of each chain, from round first on
	first  int
}

// block is how many rounds' draws at β = 0 are made at once.
const block = 256

// fromStart is chain c's draw at β = 0 for this round. The start of a run takes the first draws.
func (w *walk) fromStart(c int) ([]float64, error) {
	from := w.at.Round / block * block
	if w.fresh == nil || w.first != from {
		w.fresh, w.first = nil, from
		for k := range w.chains {
			x, err := w.mover.e.Start(block, w.job.Seed, starts(w.job.FirstChain+uint64(k))+uint64(w.size+from))
			if err != nil {
				return nil, err
			}
			w.fresh = append(w.fresh, x)
		}
	}
	i := (w.at.Round - from) * w.mover.d
	return w.fresh[c][i : i+w.mover.d], nil
}

// begin starts every rung at a draw of the start.
func (w *walk) begin() error {
	n, d := w.size, w.mover.d
	a := &rungs{Rows: newRows(w.chains*n, d), Ladder: slices.Clone(w.Ladder), Refused: make([]float64, n-1),
		Refusals: make([]float64, n-1), Fresh: make([]bool, w.chains*n), Slopes: make([][]float64, w.chains)}
	for c := range w.chains {
		x, err := w.mover.e.Start(n, w.job.Seed, starts(w.job.FirstChain+uint64(c)))
		if err != nil {
			return err
		}
		copy(a.Rows.X[c*n*d:], x)
	}
	for k := range n {
		scale := make([]float64, d)
		for i := range scale {
			scale[i] = 1
		}
		a.Scale, a.Sum = append(a.Scale, scale), append(a.Sum, make([]float64, d))
		a.Square = append(a.Square, make([]float64, d))
		a.Eps = append(a.Eps, math.Pow(float64(d), -0.25)/math.Sqrt(1+10*w.Ladder[k]))
	}
	w.at = a
	return w.evaluate()
}

// evaluate evaluates all rows at their rungs.
func (w *walk) evaluate() error {
	for i := range w.at.Rows.Beta {
		w.at.Rows.Beta[i] = w.at.Ladder[i%w.size]
	}
	return w.mover.eval(w.at.Rows)
}

// some evaluates a few of the rows.
func (w *walk) some(index []int) error {
	if len(index) == 0 {
		return nil
	}
	d := w.mover.d
	part := newRows(len(index), d)
	for n, i := range index {
		part.copyRow(n, w.at.Rows, i, d)
	}
	if err := w.mover.eval(part); err != nil {
		return err
	}
	for n, i := range index {
		w.at.Rows.copyRow(i, part, n, d)
	}
	return nil
}

// round moves every rung, swaps neighbours, and keeps what is drawn.
func (w *walk) round() error {
	a, n, d := w.at, w.size, w.mover.d
	before := w.mover.count
	counted := before
	k := w.chains * n
	t := trajectory{eps: make([]float64, k), steps: make([]int, k), variance: make([][]float64, k)}
	swaps := make([][]float64, w.chains)
	var offset uint64
	for c := range w.chains {
		numbers := newNumbers(w.job.Seed, w.job.FirstChain+uint64(c), a.Offset)
		z, err := numbers.normals(n * d)
		if err != nil {
			return err
		}
		u, err := numbers.uniforms(3 * n)
		if err != nil {
			return err
		}
		offset = numbers.Offset
		t.normals, t.uniforms = append(t.normals, z...), append(t.uniforms, u[:n]...)
		for r := range n {
			i := c*n + r
			t.eps[i], t.variance[i] = a.Eps[r], a.Scale[r]
			if r > 0 {
				t.steps[i] = lengths(a.Eps[r], u[n+r])
			}
		}
		swaps[c] = u[2*n:]
	}
	accept, err := w.mover.move(a.Rows, t)
	if err != nil {
		return err
	}
	var lowest []int
	for c := range w.chains {
		x, err := w.fromStart(c)
		if err != nil {
			return err
		}
		i := c * n
		copy(a.Rows.X[i*d:(i+1)*d], x)
		a.Fresh[i] = true
		lowest = append(lowest, i)
	}
	if err := w.some(lowest); err != nil {
		return err
	}
	if err := w.swap(swaps); err != nil {
		return err
	}
	a.Offset = offset
	a.Round++
	a.Gradients += w.mover.count - before
	if a.Round <= w.job.Warmup {
		before = w.mover.count
		err := w.adapt(accept)
		a.Gradients += w.mover.count - before
		if err != nil {
			return err
		}
	}
	return w.keep(accept, w.mover.count-counted)
}

// swap lets neighbours swap, even and odd pairs in turn.
func (w *walk) swap(u [][]float64) error {
	a, n, d := w.at, w.size, w.mover.d
	crossed := a.Rows
	if !w.mover.e.Linear() { // each row at its partner's β
		crossed = newRows(len(a.Rows.Beta), d)
		copy(crossed.X, a.Rows.X)
		for i := range crossed.Beta {
			crossed.Beta[i] = a.Ladder[min(max(w.partner(i%n), 0), n-1)]
		}
		if err := w.mover.eval(crossed); err != nil {
			return err
		}
	}
	sampling := a.Round >= w.job.Warmup
	var moved []int
	for c := range w.chains {
		for r := a.Round % 2; r+1 < n; r += 2 {
			i, j := c*n+r, c*n+r+1
			var log float64
			if w.mover.e.Linear() {
				log = (a.Ladder[r+1] - a.Ladder[r]) * (a.Rows.Slope[i] - a.Rows.Slope[j])
			} else {
				log = crossed.LogP[i] + crossed.LogP[j] - a.Rows.LogP[i] - a.Rows.LogP[j]
			}
			p := math.Min(1, math.Exp(log))
			if math.IsNaN(p) || !finite(a.Rows.Slope[i]) {
				p = 0
			}
			if sampling {
				a.Refusals[r] += (1 - p) / float64(w.chains)
			} else {
				a.Refused[r] += (1 - p) / float64(w.chains)
			}
			if u[c][r] >= p {
				continue
			}
			for q := range d {
				a.Rows.X[i*d+q], a.Rows.X[j*d+q] = a.Rows.X[j*d+q], a.Rows.X[i*d+q]
			}
			a.Fresh[i], a.Fresh[j] = a.Fresh[j], a.Fresh[i]
			moved = append(moved, i, j)
		}
		if top := c*n + n - 1; a.Fresh[top] {
			a.Fresh[top] = false
			if sampling {
				a.Arrived++
			}
		}
	}
	return w.some(moved)
}

// partner is the rung that rung r may swap with in this round.
func (w *walk) partner(r int) int {
	if r%2 == w.at.Round%2 {
		return r + 1
	}
	return r - 1
}

// keep keeps the slopes of a round, and hands out the points at β = 1.
func (w *walk) keep(accept []float64, spent int) error {
	a, n, d := w.at, w.size, w.mover.d
	warm := a.Round <= w.job.Warmup
	for c := range w.chains {
		if !warm {
			a.Slopes[c] = append(a.Slopes[c], a.Rows.Slope[c*n:(c+1)*n]...)
			if (a.Round-w.job.Warmup)%w.job.Thin != 0 {
				continue
			}
		}
		i := c*n + n - 1
		stats := [3]float64{a.Rows.LogP[i], accept[i], a.Eps[n-1]}
		err := w.job.Record(infer.Transition{Chain: c, Warmup: warm, X: a.Rows.X[i*d : (i+1)*d], Stats: stats[:],
			Gradients: spent / w.chains, StepSize: a.Eps[n-1]})
		if err != nil {
			return err
		}
	}
	return nil
}
