package infer

import (
	"fmt"
	"math"
	"sync"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// changedKind is the kind of the note about a model that is not what was compiled.
const changedKind = "model_changed"

const changedAdvice = "Compiled code keeps the numbers and branches of the model as they were when the run began. " +
	"Put what changes in the batch, or set infer.Options{Native: native.Eager}, which runs the model every time."

// Compiled code is compared with the model after so many gradients, and then each time after so many more. One eager
// evaluation takes as long as some hundred compiled ones.
const (
	firstSpot = 1000
	spotEvery = 10_000
)

// How far a compiled number may be from an eager one, relative to the largest of its kind: more than what
// [native.Compile] asks for, as a run goes to points that are worse, in other types than float64 some rounding, and
// where that is more a hundred times what rounding the point moves.
const (
	spotNear   = 1e-6
	spotSingle = 1e-3
	spotSlack  = 100
)

// spots compares compiled code with the model now and then in a run, which notices that a variable of the program that
// the model reads has changed. It reads no random numbers.
type spots struct {
	mu        sync.Mutex
	seen, due int // gradients
	compiled  []spot
	aside     func(f func()) // calls f, whose evaluations do not count; nil is f itself
	text      string         // of the difference that was found first; "" for none
}

// spot is code that a driver calls by itself.
type spot struct {
	f      *native.Func
	target Target
	start  Params
	batch  Batch
	free   bool // of the gradient
}

// after counts gradients, and says whether a comparison is due.
func (s *spots) after(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.due == 0 {
		s.due = firstSpot
	}
	if s.seen += n; s.text != "" || s.seen < s.due {
		return false
	}
	s.due = s.seen + spotEvery
	return true
}

// keep remembers code that a driver has got.
func (s *spots) keep(f *native.Func, t Target, start Params, b Batch, free bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compiled = append(s.compiled, spot{f, t, start, b, free})
}

// driven compares the code of drivers at a point. What they compile may have more coordinates.
func (s *spots) driven(x []float64) {
	s.mu.Lock()
	compiled := s.compiled
	s.mu.Unlock()
	for _, c := range compiled {
		s.look(c.target, c.batch, func() (Params, float64, []float64, []float64, error) {
			at, err := c.start.Values()
			if err != nil {
				return Params{}, 0, nil, nil, err
			}
			at = at[:c.start.Layout.Dim()]
			copy(at, x)
			p, weight, values, grads, err := coded(c.f, c.start, at, 1/c.target.N())
			if c.free {
				grads = nil
			}
			return p, weight, values, grads, err
		})
	}
}

// coded is what code gives at one point, as look compares it.
func coded(f *native.Func, like Params, x []float64, weight float64) (p Params, w float64, values, grad []float64,
	err error) {
	grad, values = make([]float64, len(x)), make([]float64, 1)
	if values[0], err = f.Eval(x, weight, grad); err != nil {
		return p, 0, nil, nil, err
	}
	device, err := torch.DeviceOf(like.Flat)
	if err != nil {
		return p, 0, nil, nil, err
	}
	flat, err := torch.FromSliceOn(device, like.Flat.T().DType(), x, len(x))
	return Params{Layout: like.Layout, Flat: flat}, weight, values, grad, err
}

// look compares code with the model: compiled gives a point of shape [d] or [K, d], the weight of the log Jacobian, and
// the K values and gradients of the code. Where the model fails there is nothing to compare.
func (s *spots) look(t Target, b Batch, compiled func() (Params, float64, []float64, []float64, error)) {
	compare := func() error {
		return torch.Do(func(*torch.Scope) error {
			p, weight, values, grads, err := compiled()
			if err != nil {
				return err
			}
			want, wantGrads, err := t.anew(p, b, weight)
			if err != nil {
				return err
			}
			bound := spotNear
			if p.Flat.T().DType() != gotch.Double {
				bound = spotSingle
			}
			if k := differs(bound, values, grads, want, wantGrads, want, wantGrads); k < 0 {
				return nil
			}
			beside, besideGrads, err := t.anew(p.beside(), b, weight)
			if err != nil {
				return err
			}
			if k := differs(bound, values, grads, want, wantGrads, beside, besideGrads); k >= 0 {
				s.found(values[k], want[k], t.N())
			}
			return nil
		})
	}
	aside := s.aside
	if aside == nil {
		aside = func(f func()) { f() }
	}
	aside(func() { _ = guard("model", compare) })
}

func (s *spots) found(have, want, n float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text == "" {
		s.text = fmt.Sprintf("After %d gradients the log posterior was no longer what was compiled: the code gives %.10g "+
			"at a point where the model gives %.10g", s.seen, n*have, n*want)
		if have == want {
			s.text += ", with another gradient"
		}
		s.text += "."
	}
}

// note is what there is to say.
func (s *spots) note() []draws.Note {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text == "" {
		return nil
	}
	return []draws.Note{{Kind: changedKind, Serious: true, Text: s.text, Advice: changedAdvice}}
}

// anew runs the model, on other handles of the batch, so that nothing is found that was kept of it.
func (t Target) anew(p Params, b Batch, weight float64) (values, grads []float64, err error) {
	own := Batch{}
	for name, x := range b {
		if own[name], err = raw.Of(x.T().Detach(false)); err != nil {
			return nil, nil, err
		}
	}
	value, grad, _, err := differentiate(t.Density(weight), p, own)
	if err != nil {
		return nil, nil, err
	}
	if values, err = torch.ToSlice[float64](value); err != nil {
		return nil, nil, err
	}
	grads, err = torch.ToSlice[float64](grad)
	return values, grads, err
}

// beside is a point that rounding might make of one, each coordinate in another direction than the next.
func (p Params) beside() Params {
	eps := 8 * 0x1p-52
	if p.Flat.T().DType() != gotch.Double {
		eps = 8 * 0x1p-23
	}
	factors := make([]float64, p.Layout.Dim())
	for i := range factors {
		factors[i] = 1 + eps*float64(1-2*(i%2))
	}
	device := torch.Must(torch.DeviceOf(p.Flat))
	by := torch.Must(torch.FromSliceOn(device, p.Flat.T().DType(), factors, len(factors)))
	p.Flat = p.Flat.Mul(by)
	return p
}

// differs is the first of some evaluations whose value or gradient is not that of the model, nor within what it moves
// by to a point beside; -1 for none.
func differs(bound float64, values, grads, want, wantGrads, beside, besideGrads []float64) int {
	d := len(grads) / len(values)
	for k := range values {
		g := func(x []float64) []float64 { return x[k*d : (k+1)*d] }
		if !agree(bound, 1, values[k:k+1], want[k:k+1], beside[k:k+1]) ||
			!agree(bound, 1e-3, g(grads), g(wantGrads), g(besideGrads)) {
			return k
		}
	}
	return -1
}

// agree says whether finite numbers agree, in units of the largest or of least, or of what moves most to beside.
func agree(bound, least float64, have, want, beside []float64) bool {
	scale := least
	for _, v := range want {
		if finite(v) {
			scale = math.Max(scale, math.Abs(v))
		}
	}
	slack := bound * scale
	for i, v := range want {
		if moved := spotSlack * math.Abs(beside[i]-v); finite(moved) {
			slack = math.Max(slack, moved)
		}
	}
	for i, v := range want {
		if d := math.Abs(have[i] - v); finite(d) && d > slack {
			return false
		}
	}
	return true
}
