package method

import (
	"runtime"
	"sync"

	"github.com/kelvin-ppl/kelvin/infer/internal/fuse"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// programs are those that passes write; they are used again.
var programs = sync.Pool{New: func() any { return &fuse.Program{} }}

// pass makes the update from s to next in one pass over memory, as Fused writes it. It makes none, and says so, where
// the update is not written so or its tensors are not plain numbers of one type in main memory. Chains that diverged
// are held. before and after are the parts of s and next. With advance next has the memory of s where nothing else has.
func (t *stepper[S, P]) pass(s, next *S, before, after []Part, m *Move, advance bool) bool {
	if t.Fused == nil || fuse.Off.Load() || len(before) > fuse.MostParts+1 {
		return false
	}
	var tensors [fuse.MostParts + 2]*ts.Tensor // the gradient, θ, and the parts
	var makes [fuse.MostParts + 2]int
	var looks [fuse.MostParts + 2]ts.KelvinRow
	n, how := len(before)+1, ts.KelvinMake
	if advance && m.Info.Diverged == nil { // a chain that is held keeps what it had
		how = ts.KelvinTake
	}
	tensors[0] = m.Grad
	for i, part := range before {
		if *part.Tensor == nil && (!part.Shared || part.Estimate != nil) {
			return false // an estimate is missing, which Step says
		}
		if tensors[i+1] = *part.Tensor; !part.Shared {
			makes[i+1] = how
		}
	}
	streams := P(next).base().Streams
	if t.Temperature == nil {
		streams.Chains = make([]uint64, P(s).base().Params.Chains())
	}
	// Written first: a schedule may give a number that is an error, and then s is to be as it was.
	program := programs.Get().(*fuse.Program)
	defer programs.Put(program)
	program.Reset()
	program.Begin(m.Tau, false, false)
	t.Algorithm.Fused(s, program, m)
	dim, dtype, err := ts.KelvinLook(tensors[:n], makes[:n], looks[:n])
	if err != nil || dtype < 0 {
		return false
	}
	p := &fuse.Pass{Dim: int(dim), Single: dtype == int(gotch.Float.CInt()), Streams: streams, Held: m.Info.Diverged}
	for i, x := range looks[:n] {
		r := fuse.Grad
		switch {
		case i == 1:
			r = fuse.Theta
		case i > 1:
			r = fuse.Part(i - 2)
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
			*part.Tensor = made
		}
	}
	P(next).base().Streams.Offset = p.Streams.Offset
	return true
}
