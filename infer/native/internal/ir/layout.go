package ir

// Align is the alignment of each buffer inside a block, in bytes: a cache line, and the widest vector.
const Align = 64

// Size is the number of bytes of an element.
func (e Elem) Size() int {
	switch e {
	case F32, I32:
		return 4
	case U8:
		return 1
	}
	return 8
}

// Layout places the buffers of the kinds Const, Prepared and Work in one block each. Both back ends use it, so that a
// caller makes the blocks without knowing who runs the plan.
type Layout struct {
	Offset                   []int // of each buffer in its block, in bytes; 0 for kinds without a block
	Const, Prepared, Scratch int   // bytes of the blocks
}

// Place computes the layout of a plan.
func (p *Plan) Place() Layout {
	l := Layout{Offset: make([]int, len(p.Buffers))}
	for i, b := range p.Buffers {
		var end *int
		switch b.Kind {
		case Const:
			end = &l.Const
		case Prepared:
			end = &l.Prepared
		case Work:
			end = &l.Scratch
		default:
			continue
		}
		l.Offset[i] = *end
		*end += (b.Len*b.Elem.Size() + Align - 1) / Align * Align
	}
	return l
}
