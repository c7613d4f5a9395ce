package lower

import (
	"cmp"
	"fmt"
	"math"

	"github.com/sugarme/gotch/record"
)

// reader goes through the words of a recording.
type reader struct {
	words []int64
	bytes []byte
	at    int
	texts map[string]string // that were read, each once
}

func (r *reader) next() int { return int(r.word()) }

func (r *reader) word() int64 {
	w := r.words[r.at]
	r.at++
	return w
}

func (r *reader) text() string {
	at, n := r.next(), r.next()
	text, ok := r.texts[string(r.bytes[at:at+n])]
	if !ok {
		text = string(r.bytes[at : at+n])
		r.texts[text] = text
	}
	return text
}

func (r *reader) value() Arg {
	switch kind := r.next(); kind {
	case record.None:
		return Arg{Kind: None}
	case record.Int:
		return Arg{Kind: Int, Int: r.word()}
	case record.Double:
		return Arg{Kind: Double, Double: math.Float64frombits(uint64(r.word()))}
	case record.Bool:
		return Arg{Kind: Bool, Int: r.word()}
	case record.String:
		return Arg{Kind: String, Text: r.text()}
	case record.Tensor:
		t := &Tensor{Storage: r.next(), Offset: r.next(), Type: Type(r.next()), Device: r.next()}
		t.Wrapped = r.next() != 0
		rank := r.next()
		both := r.ints(2 * rank)
		t.Sizes, t.Strides = both[:rank:rank], both[rank:]
		return Arg{Kind: TensorKind, Tensor: t}
	case record.Undefined:
		return Arg{Kind: Undefined}
	case record.List:
		return Arg{Kind: List, List: r.values()}
	case record.Opaque:
		return Arg{Kind: Opaque, Text: r.text()}
	default:
		return Arg{Kind: Other, Text: r.text()}
	}
}

func (r *reader) values() []Arg {
	out := make([]Arg, r.next())
	for i := range out {
		out[i] = r.value()
	}
	return out
}

func (r *reader) ints(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = r.next()
	}
	return out
}

// parse reads a recording as the C++ side wrote it, [shorten]ed.
func parse(words []int64, bytes []byte) (*Recording, error) {
	r := &reader{words: words, bytes: bytes, texts: map[string]string{}}
	out := &Recording{}
	var calls []*Call
	for r.at < len(words) {
		switch kind := r.next(); kind {
		case record.Begin:
			parent := r.next()
			// Bit 1 alone says little: every operation with a functional form by way of another has it.
			c := &Call{Composite: r.next()&1 != 0}
			c.Name, c.Overload, c.Args = r.text(), r.text(), r.values()
			if parent < 0 {
				out.Calls = append(out.Calls, c)
			} else {
				calls[parent].Calls = append(calls[parent].Calls, c)
			}
			calls = append(calls, c)
		case record.End:
			c := calls[r.next()]
			c.Results, c.Ended = r.values(), true
		case record.Known, record.Output:
			v := r.value()
			if v.Kind != TensorKind {
				return nil, fmt.Errorf("a tensor that goes in or comes out is %s", cmp.Or(v.Text, "undefined"))
			}
			list := &out.Known
			if kind == record.Output {
				list = &out.Outputs
			}
			*list = append(*list, *v.Tensor)
		case record.Storage:
			r.next() // storages come in the order of their numbers
			s := Storage{Bytes: r.next(), External: r.next() != 0}
			if copied, at := r.next() != 0, r.next(); copied {
				s.Data, s.at = bytes[at:at+s.Bytes], at
			}
			out.Storages = append(out.Storages, s)
		default:
			return nil, fmt.Errorf("word %d of a recording is not understood", r.at-1)
		}
	}
	return out, nil
}
