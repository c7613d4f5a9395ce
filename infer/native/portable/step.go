package portable

import "github.com/kelvin-ppl/kelvin/infer/native/internal/ir"

func (w *writer) steps(all []ir.Step) {
	w.ints(len(all))
	for i := range all {
		s := &all[i]
		w.ints(int(s.Kind))
		w.list(s.Sizes)
		switch s.Kind {
		case ir.Loop:
			w.body(s.Body)
		case ir.Repeat:
			w.ints(s.Times)
			w.steps(s.Inner)
		default:
			w.ints(s.M, s.N, s.K)
			w.bool(s.Upper, s.Unit, s.Right, s.Lower, s.Product)
			for _, m := range []*ir.Matrix{&s.Out, &s.A, &s.B} {
				w.ints(m.Buf, m.Off, m.Row, m.Col, m.Turn)
				w.list(m.Strides)
			}
		}
	}
}

func (w *writer) body(list []ir.Instr) {
	w.ints(len(list))
	for i := range list {
		in := &list[i]
		w.ints(int(in.Op))
		w.ints(in.Operands()...)
		switch {
		case in.Op == ir.Num:
			w.float(in.Num)
		case in.Op == ir.Coord:
			w.ints(in.Dim)
		case in.Op == ir.Load || in.Op.Writes():
			w.address(&in.At)
		}
		if in.Op == ir.StoreIndex {
			w.ints(in.Limit)
		}
	}
}

func (r *reader) steps(inner bool) []ir.Step {
	out := make([]ir.Step, r.many(3, 4))
	for i := range out {
		s := &out[i]
		s.Kind = ir.StepKind(r.enum(int(ir.Repeat)))
		s.Sizes = r.list()
		switch {
		case s.Kind == ir.Loop:
			s.Body = r.body()
		case s.Kind == ir.Repeat && inner:
			r.fail()
		case s.Kind == ir.Repeat:
			s.Times, s.Inner = r.int(), r.steps(true)
		default:
			s.M, s.N, s.K = r.int(), r.int(), r.int()
			for _, flag := range []*bool{&s.Upper, &s.Unit, &s.Right, &s.Lower, &s.Product} {
				*flag = r.bool()
			}
			for _, m := range []*ir.Matrix{&s.Out, &s.A, &s.B} {
				m.Buf, m.Off, m.Row, m.Col, m.Turn = r.int(), r.int(), r.int(), r.int(), r.int()
				m.Strides = r.list()
			}
		}
		if r.err != nil {
			return nil
		}
	}
	return out
}

func (r *reader) body() []ir.Instr {
	out := make([]ir.Instr, r.many(1, 1))
	for i := range out {
		in := &out[i]
		in.Op = ir.Op(r.enum(int(ir.StoreIndex)))
		for j := range in.Operands() {
			*[]*int{&in.A, &in.B, &in.C}[j] = r.int()
		}
		switch {
		case in.Op == ir.Num:
			in.Num = r.float()
		case in.Op == ir.Coord:
			in.Dim = r.int()
		case in.Op == ir.Load || in.Op.Writes():
			in.At = r.address(false)
		}
		if in.Op == ir.StoreIndex {
			in.Limit = r.int()
		}
		if r.err != nil {
			return nil
		}
	}
	return out
}
