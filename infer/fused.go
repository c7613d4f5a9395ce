package infer

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/kelvin-ppl/kelvin/infer/internal/fuse"
	"github.com/kelvin-ppl/kelvin/torch"
)

// fuser is a transform whose updates can be written as operations on elements, for states that are small.
type fuser interface {
	FusedGradient() Gradient
	// FusedParts are the tensors of a state that updates change, θ first; nil where they need tensors.
	FusedParts(State) ([]torch.Tensor, torch.Streams)
	// FusedWriter gives a function that adds one update to a program, and what the update tells about itself.
	FusedWriter(*fuse.Program) (info *Info, write func(step int, value, record bool) (tau float64, err error))
	// FusedState is a state with other tensors.
	FusedState(s State, steps int, offset uint64, tensors []torch.Tensor) State
}

// fused makes the updates of a group in native code, many in a call, and none of them with tensors: see package fuse.
// What it computes does not depend on how many updates a call makes. The state of the updater is behind between
// calls; sync brings it up to date.
//
// The value of the log posterior is needed for draws alone, so that most updates evaluate only the gradient. The
// value is evaluated, and must be finite, at the first update, where a draw is, and while a chain is held; elsewhere
// a finite gradient is enough for a chain to move.
type fused struct {
	*updater
	method   fuser
	gradient *autograd
	info     *Info // of the update that was written last
	last     Info  // of the last of a call
	write    func(step int, value, record bool) (tau float64, err error)
	program  fuse.Program
	chains   *fuse.Chains // nil while the state is ahead of it
	ahead    bool         // of the state
	own      int          // what the state counts more than the updater
	watched  bool         // somebody sees every update
	most     int          // updates in a call
	buffer   []float64    // draws of a call
	index    []int
	windows  map[int]*window
	queue    queue
}

// newFused is nil for a method or a target whose updates need tensors. Whether updates are fused depends on the method,
// the model and the machine, and not on who looks on, so that a run has the same bits however it is watched.
func newFused(r *updater) *fused {
	m, ok := r.transform.(fuser)
	if !ok || r.passes || r.layout.Dim() > fuse.MostDim {
		return nil
	}
	a, ok := m.FusedGradient().(*autograd)
	if !ok || a.native == nil || unfit(r.state.Position()) != "" {
		return nil
	}
	f := &fused{updater: r, method: m, gradient: a, most: 1, windows: map[int]*window{}}
	f.info, f.write = m.FusedWriter(&f.program)
	_, rarely := r.observer.(seldom)
	f.watched = !rarely || r.o.Until != nil
	return f
}

// usable says whether the target has native code, as far as is known.
func (f *fused) usable() bool {
	return f != nil && f.gradient.external.Load() == nil && !f.compilation.unplanned()
}

// advance makes at least one update and not more than most. Where the next one needs tensors it makes none.
func (f *fused) advance(most int) (made bool, err error) {
	if f == nil {
		return false, nil
	}
	if f.usable() {
		err = torch.Do(func(*torch.Scope) error {
			made, err = f.call(most)
			return err
		})
	}
	if !made && err == nil {
		err = f.leave()
	}
	return made, f.named(err)
}

// named puts the name of the method before an error, unless it is that of a field, which has it.
func (f *fused) named(err error) error {
	if field := (*FieldError)(nil); err == nil || errors.As(err, &field) && field.Type == f.name ||
		errors.Is(err, ErrNonFinite) {
		return err
	}
	return fmt.Errorf("%s: %w", f.name, err)
}

// call makes updates in one call.
func (f *fused) call(most int) (made bool, err error) {
	if ok, err := f.load(); !ok {
		return false, err
	}
	if f.watched || f.average != nil {
		f.most = 1
	}
	data, err := f.feed(min(most, f.most))
	if err != nil {
		return false, err
	}
	weight, err := f.plan(data.n)
	n := f.program.Len()
	if n == 0 {
		return false, err
	}
	at := f.batches.Position()
	began := time.Now()
	batch, taken, err := data.next(n)
	if err != nil {
		return false, err
	}
	if taken < n { // the batch after them has other shapes
		if weight, err = f.plan(taken); err != nil {
			return false, err
		}
		f.most = taken
	}
	took := time.Since(began)
	if ok, err := f.bind(batch, weight != 0); !ok {
		return false, errors.Join(err, f.batches.Seek(at))
	}
	info, err := f.watch(batch, weight)
	if err != nil {
		return false, err
	}
	began = time.Now()
	done, held, err := f.run(data)
	if errors.Is(err, fuse.ErrIndex) {
		err = explained(err, f.gradient.target, f.state.Position(), batch)
	}
	if took += time.Since(began); took < callTime && taken == f.most && f.affordable(2*f.most, data.size) {
		f.most *= 2
	} else if took > 4*callTime {
		f.most = max(1, f.most/2)
	}
	if err != nil {
		f.count(done, held)
		return true, err
	}
	if f.average != nil && f.steps >= f.o.Warmup {
		if err := f.average.add(f.state.Position().Flat, cmp.Or(info.TimeStep, info.LR)); err != nil {
			return true, err
		}
	}
	f.count(done, held)
	return true, f.made(info)
}

// callTime is about how long a call takes: so often a run looks at its context.
const callTime = 4 * time.Millisecond

// affordable limits the memory of a call.
func (f *fused) affordable(n, size int) bool {
	return n <= 1<<14 && n*(f.size*(f.layout.Dim()+3)) <= 1<<22 && n*size <= 1<<20
}

// plan writes the next updates, at most n: those whose Jacobian counts as in the first. An error comes when it is
// that of the first.
func (f *fused) plan(n int) (weight float64, err error) {
	f.program.Reset()
	made := 0
	err = torch.Do(func(*torch.Scope) error {
		for i := range n {
			step := f.steps + i
			due := f.o.draws(step)
			w, err := f.write(f.own+step, due || step == 0, due && (i > 0 || f.pending != nil))
			if err != nil {
				return err
			}
			if i == 0 {
				weight = w
			} else if (w != 0) != (weight != 0) {
				return nil
			}
			made, f.last = made+1, *f.info
			if step == 0 {
				return nil // whether it is finite is seen before the next
			}
		}
		return nil
	})
	f.program.Truncate(made)
	return weight, err
}

// bind finds the native functions of a batch.
func (f *fused) bind(b Batch, jacobian bool) (ok bool, err error) {
	a, p := f.gradient, f.state.Position()
	value, err := a.native.find(a.target, p, b, jacobian)
	if err != nil || value == nil || !value.Planned() {
		if err != nil && a.asked(err) {
			err = nil
		}
		return false, err
	}
	if s := &f.compilation.spots; s.after(f.program.Len() * f.size) {
		if err := value.Set(b); err != nil { // whose rows are written by native code
			return false, err
		}
		weight := 0.0
		if jacobian {
			weight = 1 / a.target.N()
		}
		s.look(a.target, b, func() (Params, float64, []float64, []float64, error) {
			return coded(value, p, f.chains.Get(fuse.Theta)[:f.layout.Dim()], weight)
		})
	}
	grad := value
	if f.program.Values() < f.program.Len() {
		if grad, err = a.free.find(a.target, p, b, jacobian); err != nil {
			return false, err
		}
		if grad == nil {
			grad = value
		}
	}
	return true, f.chains.Bind(value, grad)
}

// watch is the Info of the last update that was planned. Where somebody looks on, that is the only one, and it has the
// value of the log posterior and its aux.
func (f *fused) watch(b Batch, weight float64) (Info, error) {
	info := f.last
	if !f.watched {
		return info, nil
	}
	e, err := f.gradient.ValueAndGrad(f.state.Position(), b, weight)
	info.LogPosterior, info.Aux = e.Values, e.Aux
	return info, err
}

// run makes the updates that are planned and keeps the draws that they complete.
func (f *fused) run(data *feed) (done int, held int, err error) {
	d, records := f.layout.Dim(), f.program.Records(f.program.Len())
	width := d + len(updateStats)
	if records > 0 {
		if err := f.declare(nil); err != nil {
			return 0, 0, err
		}
	}
	f.buffer = slices.Grow(f.buffer[:0], records*f.size*width)[:records*f.size*width]
	var rows []fuse.Rows
	if data.window != nil {
		rows = data.window.rows
	}
	var index []int
	if len(rows) > 0 {
		index = f.index
	}
	done, held, err = f.chains.Run(&f.program, f.buffer, rows, data.size, index)
	for i := range f.program.Records(done) {
		f.pending = nil
		for k := range f.size {
			row := f.buffer[(i*f.size+k)*width:][:width]
			row[d] *= f.data
			if err := f.keep(k, row[:d], row[d:]); err != nil {
				return done, held, err
			}
		}
	}
	return done, held, err
}

// count counts updates that were made.
func (f *fused) count(done int, held int) {
	f.ahead = true
	f.steps += done
	f.session.updates = max(f.session.updates, f.steps)
	f.session.gradients += done * f.size
	f.held += held
	for k := 0; k < f.size && f.chains.Undefined() > 0; k++ {
		if d := f.layout.Dim(); f.chains.Held(k) && math.IsNaN(f.chains.Norms[k]) {
			f.compilation.undefined.see(f.chains.Get(fuse.Theta)[k*d:(k+1)*d], f.chains.Undefined())
			return
		}
	}
}

// made is what comes after updates.
func (f *fused) made(info Info) error {
	for k := range f.size {
		if !f.chains.Held(k) {
			continue
		}
		if info.Diverged == nil {
			info.Diverged = make([]bool, f.size)
		}
		if info.Diverged[k] = true; f.steps == 1 {
			return f.nowhere(k, f.chains.Values[k], f.chains.Norms[k])
		}
	}
	info.GradNorm = slices.Clone(f.chains.Norms)
	if info.LogPosterior == nil {
		info.LogPosterior = slices.Clone(f.chains.Values)
	}
	f.updater.rows.info, f.stuck = info, info.Diverged
	if f.o.draws(f.steps) {
		if err := f.draw(f.chains.Get(fuse.Theta), info); err != nil {
			return err
		}
	}
	switch {
	case f.watched || f.average != nil || watches(f.observer):
		if err := f.sync(); err != nil {
			return err
		}
		f.tell(info)
	}
	return nil
}

// settle is settle of the updater where the evaluation is native.
func (f *fused) settle() (made bool, err error) {
	if !f.usable() {
		return false, nil
	}
	err = torch.Do(func(*torch.Scope) error {
		ok, err := f.load()
		if !ok {
			return err
		}
		f.program.Reset()
		weight, err := f.write(f.own+f.steps, true, true)
		if err != nil {
			return err
		}
		f.program.Still()
		at := f.batches.Position()
		batch, err := f.batches.Next()
		if err != nil {
			return err
		}
		if made, err = f.bind(batch, weight != 0); made {
			_, _, err = f.run(&feed{})
		}
		return errors.Join(err, f.batches.Seek(at))
	})
	if !made && err == nil {
		err = f.leave()
	}
	return made, f.named(err)
}

// close gives back what the updates needed.
func (f *fused) close() {
	if f == nil {
		return
	}
	if f.chains != nil {
		f.chains.Unbind()
	}
	for _, w := range f.windows {
		w.free()
	}
	f.queue.free()
}
