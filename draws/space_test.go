package draws

import (
	"errors"
	"testing"
)

// Named values get the attributes and notes of the draws that they were made of, and both are marked; where the two are
// one, neither is.
func TestNamedAs(t *testing.T) {
	made := func() *Draws { return must(New([]Site{{Name: "x", Size: 1}}, nil, 1))(t) }
	d, named := made(), made()
	d.SetAttr("seed", "3")
	d.AddNote(Note{Kind: "k"})
	d.NamedAs(named)
	if d.Space() != Unconstrained || named.Space() != Named || named.Attrs()["seed"] != "3" || len(named.Notes()) != 1 {
		t.Errorf("%q %v, %q %v %v", d.Space(), d.Attrs(), named.Space(), named.Attrs(), named.Notes())
	}
	d.NamedAs(nil)
	d.NamedAs(d)
	if d.Space() != "" {
		t.Errorf("draws that are both are %q", d.Space())
	}
}

// Each that asked is told of the end, in order, up to the first error.
func TestAtEnd(t *testing.T) {
	block, run := must(New(nil, nil, 1))(t), must(New(nil, nil, 1))(t)
	boom, told := errors.New("boom"), 0
	block.AtEnd(nil)
	block.AtEnd(func(d *Draws) error {
		if told++; d != run {
			t.Error("told of other draws")
		}
		return boom
	})
	block.AtEnd(func(*Draws) error { t.Error("called after an error"); return nil })
	if err := block.End(run); !errors.Is(err, boom) || told != 1 {
		t.Errorf("%v, told %d times", err, told)
	}
	if err := run.End(run); err != nil {
		t.Error(err)
	}
}
