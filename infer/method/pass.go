package method

import (
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"github.com/kelvin-ppl/kelvin/infer/internal/fuse"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// programs are those that passes write; they are used again.
var programs = sync.Pool{New: func() any { return &fuse.Program{} }}

// pass makes the update from s to next in one pass over memory, as Fused writes it. It makes none, and says so, where
// the update is not written so or its tensors are not plain numbers of one type in main memory. Chains that diverged
// are held. before and after are the parts of s and next.
func (t *stepper[S, P]) pass(s, next *S, before, after []Part, m *Move) bool {
	if t.Fused == nil || fuse.Off.Load() {
		return false
	}
	theta, err := m.Grad.KelvinDescribe()
	if err != nil || theta.DType != int(gotch.Float.CInt()) && theta.DType != int(gotch.Double.CInt()) {
		return false
	}
	p := &fuse.Pass{Dim: int(theta.Shape[len(theta.Shape)-1]), Single: theta.DType == int(gotch.Float.CInt()),
		Streams: P(next).base().Streams, Held: m.Info.Diverged}
	if t.Temperature == nil {
		p.Streams.Chains = make([]uint64, P(s).base().Params.Chains())
	}
	grad, ok := plain(m.Grad, theta, theta)
	if !ok || len(before) > fuse.MostParts+1 {
		return false
	}
	p.Rows(fuse.Grad, grad.at, nil)
	made := make([]*ts.Tensor, len(before))
	for i, part := range before {
		from := *part.Tensor // nil where an estimate is missing, which Step says
		if from == nil && part.Shared && part.Estimate == nil {
			continue
		}
		if from == nil {
			return false
		}
		d, err := from.KelvinDescribe()
		if err != nil {
			return false
		}
		x, ok := plain(from, d, theta)
		r := fuse.Theta
		if i > 0 {
			r = fuse.Part(i - 1)
		}
		switch {
		case !ok || !part.Shared && x.kind == alike:
			return false
		case part.Shared && x.kind == alike:
			p.Alike(r, x.at)
			continue
		case part.Shared:
			p.Rows(r, x.at, nil)
			continue
		}
		made[i] = torch.Must(ts.Empty(x.shape, gotch.CKind2DType(int32(theta.DType)), torch.CPU))
		to := torch.Must(ts.KelvinData(made[i], theta.DType))
		if x.kind == rows {
			p.Rows(r, x.at, to)
		} else {
			p.Numbers(r, x.at, to)
		}
	}
	program := programs.Get().(*fuse.Program)
	defer programs.Put(program)
	program.Reset()
	program.Begin(m.Tau, false, false)
	t.Algorithm.Fused(s, program, m)
	if stats := p.Run(program); stats != nil {
		m.Info.Stats = stats
	}
	runtime.KeepAlive(before)
	runtime.KeepAlive(m.Grad)
	for i, part := range after {
		if made[i] != nil {
			*part.Tensor = made[i]
		}
	}
	P(next).base().Streams.Offset = p.Streams.Offset
	return true
}

// The forms of a tensor beside θ.
const (
	rows    = iota // that of θ
	alike          // one row for all chains
	numbers        // one number for each chain
)

// flat is a tensor whose numbers follow each other in main memory.
type flat struct {
	shape []int64
	kind  int
	at    unsafe.Pointer
}

// plain looks at a tensor that is to be of the type of θ.
func plain(t *ts.Tensor, d, theta ts.KelvinDescription) (f flat, ok bool) {
	if d.Device >= 0 || !d.Contiguous || d.Mapped || d.DType != theta.DType {
		return f, false
	}
	n := len(theta.Shape)
	switch {
	case slices.Equal(d.Shape, theta.Shape):
		f.kind = rows
	case slices.Equal(d.Shape, theta.Shape[n-1:]):
		f.kind = alike
	case len(d.Shape) == n && slices.Equal(d.Shape[:n-1], theta.Shape[:n-1]) && d.Shape[n-1] == 1:
		f.kind = numbers
	default:
		return f, false
	}
	f.shape = d.Shape
	var err error
	f.at, err = ts.KelvinData(t, d.DType)
	return f, err == nil
}
