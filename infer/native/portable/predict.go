package portable

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// Prediction is what a model predicts at a draw. Its plan is a function of the draw and of the random numbers that the
// model takes, one after the other: x is the Given, then the numbers of each [Prediction.Take].
type Prediction struct {
	Given []draws.Site // what the plan reads of a draw
	Sites []string     // the predictions, in the order of the model
	Data  []string     // those of them that were observed
	Plan  *Plan        // for the data of the model
	Rows  int          // of these data

	Free  bool     // other numbers of rows have a prediction too
	Why   string   // they do not
	Names []string // the data that have rows
	Least int      // the fewest rows

	takes  []take
	base   int    // the rows of the body: the bytes of takes and plan
	growth []grow // from there on
	body   []byte
}

// take is a draw of random numbers. Normal and uniform numbers are of the stream of the draw; others have parameters,
// which are outputs of the plan.
type take struct {
	kind string // as torch.Source.Ask has it
	size int
}

// Take says that the model draws numbers next, of a kind of torch.Source.Ask.
func (p *Prediction) Take(kind string, size int) { p.takes = append(p.takes, take{kind, size}) }

// Parameter is the name of the output that is parameter i, 0 or 1, of draw k.
func (p *Prediction) Parameter(k, i int) string { return fmt.Sprintf("parameter %d of draw %d", i, k) }

// parameters are how many parameters the kinds of draws have.
var parameters = map[string]int{"normal": 0, "uniform": 0, "log gamma": 1, "poisson": 1, "binomial": 2,
	"multinomial": 2, "von mises": 1}

// Predictor is a prediction for a number of rows. It is safe for concurrent use.
type Predictor struct {
	sites   []string
	takes   []take
	plan    *ir.Plan // of many draws at once
	inputs  []ir.Slot
	known   [][]float64                // by input: numbers of the file, nil for what a caller gives
	machine atomic.Pointer[ir.Machine] // for some inputs
	file    bool                       // those of the file
	many    int
	given   int
	outputs []int // of the sites
	params  [][]int
	work    sync.Pool
	kept    [][]float64 // points of the draws of Keep, q.many in each
}

// manyNumbers is about how many numbers a plan works on at once.
const manyNumbers = 1 << 15

// At is the prediction for so many rows, for at most so many draws at once, of some sites; all where none is named.
func (p *Prediction) At(rows, most int, sites ...string) (*Predictor, error) {
	plan, takes, err := p.sized(rows)
	if err != nil {
		return nil, err
	}
	q := &Predictor{sites: sites, takes: takes, inputs: plan.Inputs}
	if len(sites) == 0 {
		q.sites = p.Sites
	}
	plan.Leave(func(i int) bool {
		name := plan.Outputs[i].Name
		return slices.Contains(q.sites, name) || !slices.Contains(p.Sites, name)
	})
	size := plan.Dim
	for _, b := range plan.Buffers {
		if b.Kind == ir.Work || b.Kind == ir.Aux {
			size += b.Len
		}
	}
	q.many = max(1, min(most, manyNumbers/size))
	q.plan = plan.Many(q.many)
	if err := errors.Join(bounded(q.plan), q.plan.Check()); err != nil {
		return nil, fmt.Errorf("portable: a prediction: %w", err)
	}
	for _, s := range p.Given {
		q.given += s.Size
	}
	index := func(name string) int {
		return slices.IndexFunc(plan.Outputs, func(s ir.Slot) bool { return s.Name == name })
	}
	for _, name := range q.sites {
		q.outputs = append(q.outputs, index(name))
	}
	dim := q.given
	for k, t := range takes {
		var at []int
		for i := range parameters[t.kind] {
			at = append(at, index(p.Parameter(k, i)))
		}
		q.params = append(q.params, at)
		if dim += t.size; !t.fits(plan, at) {
			return nil, fmt.Errorf("portable: the parameters of a draw are not those of %d %s numbers", t.size, t.kind)
		}
	}
	if slices.Contains(q.outputs, -1) || dim != plan.Dim {
		return nil, errors.New("portable: a prediction is not that of its plan")
	}
	complete := true
	for _, s := range plan.Inputs {
		v := p.Plan.numbers(s)
		q.known, complete = append(q.known, v), complete && v != nil
	}
	if complete {
		var m *ir.Machine
		m, err = ir.NewMachine(q.plan, q.known)
		q.machine.Store(m)
		q.file = true
	}
	return q, err
}

// positions are how far a draw moves the stream.
func (t take) positions() uint64 {
	if parameters[t.kind] > 0 {
		return 1
	}
	return uint64(t.size+1) / 2
}

// fits says whether the outputs of a plan are the parameters of a draw.
func (t take) fits(p *ir.Plan, at []int) bool {
	if _, known := parameters[t.kind]; !known || t.size < 0 || slices.Contains(at, -1) {
		return false
	}
	for i, o := range at {
		n := p.Outputs[o].Len()
		if t.kind != "multinomial" && n != t.size || t.kind == "multinomial" &&
			(i == 0 && (n < 1 || t.size%n != 0) || i == 1 && n != t.size) {
			return false
		}
	}
	return true
}

// numbers are those of an input of the plan, nil where it has none of that shape.
func (p *Plan) numbers(s ir.Slot) []float64 {
	for i, t := range p.plan.Inputs {
		if t.Equal(s) {
			return p.inputs[i]
		}
	}
	return nil
}

// Inputs are what the prediction reads of the data, and whether the file has numbers for each.
func (q *Predictor) Inputs() (sites []draws.Site, known []bool) {
	for i, s := range q.inputs {
		sites = append(sites, draws.Site{Name: s.Name, Shape: s.Shape, Size: s.Len()})
		known = append(known, q.known[i] != nil)
	}
	return sites, known
}

// Outputs are the predicted sites, one after the other.
func (q *Predictor) Outputs() (sites []draws.Site) {
	offset := 0
	for i, name := range q.sites {
		s := q.plan.Outputs[q.outputs[i]]
		n := s.Len() / q.many
		sites = append(sites, draws.Site{Name: name, Shape: s.Shape[1:], Offset: offset, Size: n})
		offset += n
	}
	return sites
}

// with is the machine for the data of a caller, by name; data of the file serve where they give none.
func (q *Predictor) with(data map[string][]float64) (*ir.Machine, error) {
	inputs, own := slices.Clone(q.known), q.file
	for i, s := range q.inputs {
		v, ok := data[s.Name]
		switch {
		case !ok && inputs[i] == nil:
			return nil, fmt.Errorf("portable: the data have no %q, of shape %v", s.Name, s.Shape)
		case !ok:
			continue
		}
		if err := fill(s, v); err != nil {
			return nil, err
		}
		inputs[i], own = v, false
	}
	m := q.machine.Load()
	switch {
	case own:
		return m, nil
	case m != nil:
		return m.With(inputs)
	}
	m, err := ir.NewMachine(q.plan, inputs)
	if err == nil {
		q.machine.Store(m)
	}
	return m, err
}

// mostKept is how many numbers Keep keeps: 8 MB.
const mostKept = 1 << 20

// Keep keeps what [Predictor.Draw] makes of these draws and streams before it looks at the data, so that calls of
// DrawKept are faster. It is false where that is too much. No other call may be under way.
func (q *Predictor) Keep(n int, given func(k int, to []float64), seed, first uint64) bool {
	if q.plan == nil || given == nil || n < 0 {
		return false
	}
	blocks := (n + q.many - 1) / q.many
	if blocks*q.plan.Dim > mostKept {
		return false
	}
	q.kept = nil
	for b := range blocks {
		w := q.memory()
		w.start(given, b*q.many, n, seed, first)
		q.kept = append(q.kept, w.x)
	}
	return true
}

// DrawKept is Draw at the first n of the draws of Keep, with its arguments.
func (q *Predictor) DrawKept(n int, seed, first uint64, data map[string][]float64,
	each func(k, some int, outputs [][]float64) error) error {
	return q.draw(n, nil, seed, first, data, each)
}

// Draw predicts at n draws: given has what [Prediction.Given] names of draw k, and the random numbers are those of
// the stream (seed, first + k). It calls each with the outputs of some draws from k on, a row for each, which are valid
// until it returns.
func (q *Predictor) Draw(n int, given func(k int, to []float64), seed, first uint64, data map[string][]float64,
	each func(k, some int, outputs [][]float64) error) error {
	return q.draw(n, given, seed, first, data, each)
}

// draw predicts at draws that are given, or kept where given is nil.
func (q *Predictor) draw(n int, given func(k int, to []float64), seed, first uint64, data map[string][]float64,
	each func(k, some int, outputs [][]float64) error) error {
	switch blocks := (n + max(q.many, 1) - 1) / max(q.many, 1); {
	case q.plan == nil:
		return errors.New("portable: Prediction.At has not made the predictor")
	case n < 0, given == nil && blocks > len(q.kept), each == nil:
		return fmt.Errorf("portable: %d draws, of which %d are kept, and none is given, or nothing is called", n,
			len(q.kept)*q.many)
	}
	m, err := q.with(data)
	if err != nil {
		return err
	}
	w, _ := q.work.Get().(*taking)
	if w == nil {
		w = q.memory()
	}
	defer q.work.Put(w)
	w.m = m
	for from := 0; from < n; from += q.many {
		if given != nil {
			w.start(given, from, n, seed, first)
		} else {
			w.seed, w.first = seed, first+uint64(from)
			w.keep(q.kept[from/q.many])
		}
		w.run()
		some := min(q.many, n-from)
		for i, o := range q.outputs {
			w.one[i] = w.out[o][:some*(len(w.out[o])/q.many)]
		}
		if err := each(from, some, w.one); err != nil {
			return err
		}
	}
	return nil
}

// start makes the points of the draws from a number on, of n.
func (w *taking) start(given func(k int, to []float64), from, n int, seed, first uint64) {
	w.x = w.own
	row := w.row(w.q.given)
	for k := range w.q.many {
		given(min(from+k, n-1), row)
		w.put(k, 0, row)
	}
	w.seed, w.first = seed, first+uint64(from)
	w.stream()
}

func (q *Predictor) memory() *taking {
	w := &taking{q: q, own: make([]float64, q.plan.Dim), one: make([][]float64, len(q.outputs)),
		before: make([][]float64, 2*len(q.takes))}
	for _, s := range q.plan.Outputs {
		w.out = append(w.out, make([]float64, s.Len()))
	}
	return w
}

// taking is what one prediction works on.
type taking struct {
	q           *Predictor
	m           *ir.Machine
	x, own      []float64 // a column for each draw; own is memory of this one alone
	some        []float64
	out, before [][]float64
	one         [][]float64 // the outputs of some draws
	seed, first uint64
}

// put sets numbers of draw k, from one on.
func (w *taking) put(k, from int, numbers []float64) {
	for i, v := range numbers {
		w.x[(from+i)*w.q.many+k] = v
	}
}

// keep takes points that were made before: as they are, where nothing is drawn anew.
func (w *taking) keep(x []float64) {
	if w.x = x; !w.q.fixed() {
		w.x = w.own
		copy(w.x, x)
	}
}

// row is room for so many numbers, until it is called again.
func (w *taking) row(n int) []float64 {
	w.some = slices.Grow(w.some[:0], n)[:n]
	return w.some
}

// fixed says whether no draw has parameters: points are those of the streams then.
func (q *Predictor) fixed() bool {
	return !slices.ContainsFunc(q.takes, func(t take) bool { return parameters[t.kind] > 0 })
}

// run evaluates until the numbers of all draws are those of their parameters: once where none has any, and else once
// more than such draws hang on each other. A damaged plan, in which they hang on themselves, ends too.
func (w *taking) run() {
	for i := range w.before {
		w.before[i] = w.before[i][:0]
	}
	for range len(w.q.takes) + 2 {
		w.m.Eval(w.x, 1, nil, w.out)
		if !w.take() {
			return
		}
	}
}

// stream fills in the numbers that have no parameters.
func (w *taking) stream() {
	for k := range w.q.many {
		at, position := w.q.given, uint64(0)
		for _, t := range w.q.takes {
			to := w.row(t.size)
			if clear(to); parameters[t.kind] == 0 {
				numbers(t.kind == "normal", w.seed, w.first+uint64(k), position, to)
			}
			w.put(k, at, to)
			at, position = at+t.size, position+t.positions()
		}
	}
}

// take draws the numbers that have parameters. It is false where these are those of the draws before.
func (w *taking) take() bool {
	changed := false
	for i := range w.q.takes {
		for j, o := range w.q.params[i] {
			changed = w.was(2*i+j, w.out[o]) || changed
		}
	}
	if !changed {
		return false
	}
	at, position := w.q.given, uint64(0)
	for i, t := range w.q.takes {
		from, p := at, position
		at, position = at+t.size, position+t.positions()
		if parameters[t.kind] == 0 {
			continue
		}
		for k := range w.q.many {
			e := engine{seed: seedAt(w.seed, w.first+uint64(k), p)}
			var params [2][]float64
			for j, o := range w.q.params[i] {
				n := len(w.out[o]) / w.q.many
				params[j] = w.out[o][k*n : (k+1)*n]
			}
			to := w.row(t.size)
			t.draw(e, params[0], params[1], to)
			w.put(k, from, to)
		}
	}
	return true
}

// was remembers parameters, and says whether they are others than before.
func (w *taking) was(slot int, now []float64) bool {
	same := slices.EqualFunc(w.before[slot], now, same)
	w.before[slot] = append(w.before[slot][:0], now...)
	return !same
}

// draw draws the numbers of a seed, each element with a generator of its own.
func (t take) draw(e engine, a, b, out []float64) {
	if t.kind == "multinomial" {
		n := len(b) / len(a)
		for i, count := range a {
			own := engine{seed: e.seed, element: uint64(i)}
			own.categories(count, b[i*n:(i+1)*n], out[i*n:(i+1)*n])
		}
		return
	}
	for i := range out {
		own := engine{seed: e.seed, element: uint64(i)}
		switch t.kind {
		case "log gamma":
			out[i] = own.logGamma(a[i])
		case "poisson":
			out[i] = own.poisson(a[i])
		case "binomial":
			out[i] = own.binomial(a[i], b[i])
		case "von mises":
			out[i] = own.vonMises(a[i])
		}
	}
}
