package draws

// The spaces that draws may be in. The names and sizes of their sites do not tell: they are often the same.
const (
	Named         = "named"         // values of the model's variables, as infer.Program.Draws gives them
	Unconstrained = "unconstrained" // points of unconstrained space, as infer.Program.Draws takes them
)

// spaceKey is the attribute that says it. Draws without it, as other programs make them, may be either.
const spaceKey = "space"

// Space is [Named] or [Unconstrained], or empty where it is not known.
func (d *Draws) Space() string { return d.attrs[spaceKey] }

// SetSpace says what the draws are: [Named], [Unconstrained], or empty for not known.
func (d *Draws) SetSpace(space string) { d.SetAttr(spaceKey, space) }

// NamedAs says that these draws are unconstrained and others are the named values that were made of them, which get
// their attributes and notes. Where a program makes nothing of its draws the two are one: then neither is known.
func (d *Draws) NamedAs(named *Draws) {
	switch named {
	case nil:
		return
	case d:
		d.SetSpace("")
	default:
		d.SetSpace(Unconstrained)
		for key, value := range d.attrs {
			named.SetAttr(key, value)
		}
		named.SetSpace(Named)
	}
	for _, n := range d.Notes() {
		named.AddNote(n)
	}
}

// AtEnd has f called when the run of these draws ends, with draws that have the run's attributes and notes: often its
// last block is out by then. A sink calls it on the block that it is given; on other draws nobody calls f.
func (d *Draws) AtEnd(f func(run *Draws) error) {
	if f != nil {
		d.atEnd = append(d.atEnd, f)
	}
}

// End calls what AtEnd was given, up to the first error.
func (d *Draws) End(run *Draws) error {
	for _, f := range d.atEnd {
		if err := f(run); err != nil {
			return err
		}
	}
	return nil
}
