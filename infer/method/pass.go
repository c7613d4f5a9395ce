package method

import (
	"runtime"
	"sync"

	"github.com/kelvin-ppl/kelvin/infer/internal/fuse"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// programs are those that passes write; they are used again.
var programs = sync.Pool{New: func() any { return &fuse.Program{} }}

// perform makes the update from s to next that Program writes: in one pass over memory or, where the tensors are not
// plain numbers of one type in main memory, with tensors. It says which chains that diverged are still to be held.
// before and after are the parts of s and next. With advance next has the memory of s where nothing else has.
func (t *stepper[S, P]) perform(s, next *S, before, after []Part, m *Move, advance bool) (held []bool) {
	program := programs.Get().(*fuse.Program)
	defer programs.Put(program)
	program.Reset()
	program.Begin(m.Tau, false, false)
	t.Algorithm.Program(s, program, m) // first: a schedule may give a number that is an error, and then s is as it was
	if !fuse.Off.Load() && t.pass(program, s, next, before, after, m, advance) {
		return nil
	}
	x := fuse.Tensors{Normal: func() *ts.Tensor { return m.Normal(*before[0].Tensor).T() }}
	x.Set(fuse.Grad, m.Grad.T())
	for i, part := range before {
		x.Set(fuse.OfState(i), (*part.Tensor).T())
	}
	if stats := x.Run(program); stats != nil {
		m.Info.Stats = stats
	}
	for i, part := range after {
		if part.Shared {
			continue
		}
		if *part.Tensor = torch.Of(x.Get(fuse.OfState(i))); *part.Tensor == *before[i].Tensor { // it is not the old state's
			*part.Tensor = torch.Must(torch.Copy(*part.Tensor))
		}
	}
	return m.Info.Diverged
}

// pass is perform in one pass over memory; false, and nothing, where the tensors do not allow it.
func (t *stepper[S, P]) pass(program *fuse.Program, s, next *S, before, after []Part, m *Move, advance bool) bool {
	var tensors [fuse.MostParts + 2]*ts.Tensor // the gradient, θ, and the parts
	var makes [fuse.MostParts + 2]int
	var looks [fuse.MostParts + 2]ts.KelvinRow
	n, how := len(before)+1, ts.KelvinMake
	if advance && m.Info.Diverged == nil { // a chain that is held keeps what it had
		how = ts.KelvinTake
	}
	tensors[0] = m.Grad.T()
	for i, part := range before {
		if tensors[i+1] = (*part.Tensor).T(); !part.Shared {
			makes[i+1] = how
		}
	}
	streams := P(next).base().Streams
	if t.Temperature == nil {
		streams.Chains = make([]uint64, P(s).base().Params.Chains())
	}
	dim, dtype, err := ts.KelvinLook(tensors[:n], makes[:n], looks[:n])
	if err != nil || dtype < 0 {
		return false
	}
	p := &fuse.Pass{Dim: int(dim), Single: dtype == int(gotch.Float.CInt()), Streams: streams, Held: m.Info.Diverged}
	for i, x := range looks[:n] {
		r := fuse.Grad
		if i > 0 {
			r = fuse.OfState(i - 1)
		}
		switch {
		case tensors[i] == nil:
		case x.Kind == ts.KelvinRows:
			p.Rows(r, x.From, x.To)
		case x.Kind == ts.KelvinAlike:
			p.Alike(r, x.From)
		default:
			p.Numbers(r, x.From, x.To)
		}
	}
	if stats := p.Run(program); stats != nil {
		m.Info.Stats = stats
	}
	runtime.KeepAlive(before)
	runtime.KeepAlive(m.Grad)
	for i, part := range after {
		if made := looks[i+1].Made; made != nil {
			*part.Tensor = torch.Of(made)
		}
	}
	P(next).base().Streams.Offset = p.Streams.Offset
	return true
}
