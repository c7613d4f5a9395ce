package mcmc

import (
	"errors"
	"fmt"
	"math"
	"runtime"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/parallel"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// engine moves the chains of a run.
type engine struct {
	*algorithm
	at      *infer.Evaluator
	like    infer.Params
	batch   infer.Batch
	seed    uint64
	streams []uint64 // of each chain
	warmup  int
	prior   *gaussian // at a temperature
	heat    float64
	detail  *Detail
	errs    []error // of each chain, in the last updates
}

// heated is the temperature of an update; the prior is that at it.
func (e *engine) heated(step int) (float64, error) {
	t := e.temperature(step)
	if err := e.temperature.Check(e.name, "Temperature", step, 0, true); err != nil {
		return t, err
	}
	var err error
	if e.algorithm.prior != nil && t != e.heat {
		e.heat = t
		if e.prior, err = e.algorithm.prior(e.like, e.batch, t); err == nil && len(e.prior.mean) != e.like.Layout.Dim() {
			err = &infer.FieldError{Type: e.name, Field: "Mean", Value: fmt.Sprintf("of %d numbers", len(e.prior.mean)),
				Allowed: fmt.Sprintf("it must have d = %d", e.like.Layout.Dim())}
		}
		if err != nil {
			return t, fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return t, nil
}

// block is how many updates chains make before they meet.
func (e *engine) block(every int) int {
	const most = 16
	switch {
	case e.fewest != nil || !e.at.Concurrent() || e.algorithm.prior != nil && e.scheduled:
		return 1
	case every > 0:
		return min(every, most)
	}
	return most
}

// run makes n updates of all chains from a number of them on, and calls each after every one. Chains of an ensemble
// move in two halves, those of even numbers first.
func (e *engine) run(chains []*chain, from, n int, each func(k int, step int, m *move)) error {
	if _, err := e.heated(from); err != nil {
		return err
	}
	all := make([]int, len(chains))
	halves := [2][]int{}
	for k := range all {
		all[k] = k
		halves[k%2] = append(halves[k%2], k)
	}
	if e.fewest == nil {
		return e.move(chains, all, nil, from, n, each)
	}
	for h, half := range halves {
		var others [][]float64
		for _, k := range halves[1-h] {
			others = append(others, chains[k].X)
		}
		if err := e.move(chains, half, others, from, n, each); err != nil {
			return err
		}
	}
	return nil
}

// move makes n updates of some chains, side by side.
func (e *engine) move(chains []*chain, which []int, others [][]float64, from, n int,
	each func(k int, step int, m *move)) error {
	errs, moves := make([]error, len(chains)), make([]*move, len(chains))
	defer func() { e.errs = append(e.errs[:0], errs...) }()
	var table *desk
	workers := min(runtime.GOMAXPROCS(0), len(which))
	if !e.at.Concurrent() {
		t := e.temperature(from) // they meet after each update
		table = &desk{live: len(which), graded: e.graded,
			eval: func(x, values, grads []float64) error { return e.at.Eval(x, t, values, grads) }}
		workers = len(which)
	}
	work := func(w int) {
		for i := w; i < len(which); i += workers {
			k := which[i]
			moves[k] = &move{chain: chains[k], others: others, prior: e.prior}
			errs[k] = guarded(func() error { return e.updates(moves[k], k, table, from, n, each) })
			if table != nil {
				table.leave()
			}
		}
	}
	if workers == 1 {
		work(0)
	} else {
		var group parallel.Group
		for w := range workers {
			group.Go(func() { work(w) })
		}
		group.Wait()
	}
	for _, m := range moves {
		if m != nil {
			e.detail.add(m)
		}
	}
	return errors.Join(errs...)
}

// updates makes n updates of one chain.
func (e *engine) updates(m *move, k int, table *desk, from, n int, each func(k int, step int, m *move)) error {
	var value [1]float64
	m.evaluate = func(x, g []float64) (v float64, err error) {
		if table != nil {
			v, err = table.ask(k, x, g)
		} else {
			err = e.at.Eval(x, m.temperature, value[:], g)
			v = value[0]
		}
		if v /= m.temperature; e.divides {
			v -= e.prior.density(x)
		}
		for i := range g {
			g[i] /= m.temperature
		}
		return v, err
	}
	for step := from; step < from+n; step++ {
		m.temperature = e.temperature(step)
		if err := e.temperature.Check(e.name, "Temperature", step, 0, true); err != nil {
			return err
		}
		m.Rand, m.adapting = source(e.seed, e.streams[k], step), step < e.warmup
		before := m.evaluations
		if err := m.begin(k, e.graded); err != nil {
			return err
		}
		m.accept, m.before, m.norm = 1, e.logp(m), floats.Norm(m.G, 2)
		e.step(m)
		if m.adapting && e.learn != nil {
			read, forget := windowed(step+1, e.warmup)
			e.learn(m.chain, read, forget)
		}
		m.Updates++
		m.Accept += m.accept
		m.Evaluations += m.evaluations - before
		each(k, step, m)
	}
	return nil
}

// logp is N·LogPosterior + T·LogJacobian where the chain stands.
func (e *engine) logp(m *move) float64 {
	if e.prior != nil {
		return m.temperature * (m.V + e.prior.density(m.X))
	}
	return m.temperature * m.V
}

// apart checks the start of an ensemble: there must be enough chains, and they must not lie in a plane.
func (e *engine) apart(chains []*chain) error {
	if e.fewest == nil {
		return nil
	}
	d := len(chains[0].X)
	n, text := e.fewest(d)
	if len(chains) < n {
		return &infer.FieldError{Type: "infer.Options", Field: "Chains", Value: len(chains), Allowed: fmt.Sprintf(
			"%s needs at least %s: set infer.Options{Chains: %d} or more, and no smaller Group", e.name, text, n)}
	}
	from := mat.NewDense(len(chains)-1, d, nil)
	for i := range len(chains) - 1 {
		for j, x := range chains[0].X {
			from.Set(i, j, chains[i+1].X[j]-x)
		}
	}
	var svd mat.SVD
	if !svd.Factorize(from, mat.SVDNone) {
		return fmt.Errorf("%s: the chains start where numbers are not finite: %w", e.name, infer.ErrNonFinite)
	}
	values := svd.Values(nil)
	least := values[len(values)-1]
	if !e.spans {
		least = values[0]
	}
	if !(least > 1e-13*math.Max(values[0], math.SmallestNonzeroFloat64)) {
		return fmt.Errorf("%s: the chains start in a plane of fewer than d = %d dimensions, which they cannot leave: start "+
			"each at a point of its own (infer.Options.Start): %w", e.name, d, infer.ErrConfig)
	}
	return nil
}
