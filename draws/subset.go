package draws

import (
	"slices"
)

// Thin is a copy with every k-th draw of each chain: draws 0, k, 2k, ... An [ErrRange] says that k is less than 1.
func (d *Draws) Thin(k int) (*Draws, error) {
	if k < 1 {
		return nil, failf(ErrRange, "thin by %d, want at least 1", k)
	}
	w := d.width()
	out := d.like(len(d.chains))
	for c, from := range d.chains {
		n := 0
		if from.n > 0 {
			n = (from.n-1)/k + 1
		}
		rows := make([]float64, 0, n*w)
		for i := range n {
			rows = append(rows, from.rows[i*k*w:(i*k+1)*w]...)
		}
		out.chains[c] = chain{n, rows}
	}
	return out, nil
}

// Slice is a copy with the draws from to to-1 of each chain: d.Slice(1000, d.MaxLen()) drops a burn-in of 1000, and
// d.Slice(0, d.MinLen()) makes all chains equally long. It needs 0 <= from <= to <= MaxLen, else it gives an
// [ErrRange]; of a chain that is shorter than to, it takes what there is.
func (d *Draws) Slice(from, to int) (*Draws, error) {
	if from < 0 || to < from || to > d.MaxLen() {
		return nil, failf(ErrRange, "slice from %d to %d, want 0 <= from <= to <= %d, the longest chain", from, to,
			d.MaxLen())
	}
	w := d.width()
	out := d.like(len(d.chains))
	for c, all := range d.chains {
		first, last := min(from, all.n), min(to, all.n)
		out.chains[c] = chain{last - first, slices.Clone(all.rows[first*w : last*w])}
	}
	return out, nil
}

// Select is a copy with only the named sites, in the order given, and all statistics. Offsets are new. An
// [ErrUnknownName] lists the sites there are; a name given twice, or none at all, is an [ErrLayout].
func (d *Draws) Select(names ...string) (*Draws, error) {
	if len(names) == 0 {
		return nil, failf(ErrLayout, "select: no site named")
	}
	old := make([]Site, len(names))
	sites := make([]Site, len(names))
	dim := 0
	for i, name := range names {
		s, err := d.Site(name)
		if err != nil {
			return nil, err
		}
		if slices.Contains(names[:i], name) {
			return nil, failf(ErrLayout, "select: site %q is named twice", name)
		}
		old[i], sites[i] = s, s
		sites[i].Offset = dim
		dim += s.Size
	}
	out, err := New(sites, d.stats, len(d.chains))
	if err != nil {
		return nil, err
	}
	w := d.width()
	for c, from := range d.chains {
		rows := make([]float64, 0, from.n*out.width())
		for i := range from.n {
			row := from.rows[i*w : (i+1)*w]
			for _, s := range old {
				rows = append(rows, row[s.Offset:s.Offset+s.Size]...)
			}
			rows = append(rows, row[d.dim:]...)
		}
		out.chains[c] = chain{from.n, rows}
	}
	return out.describe(d), nil
}

// Merge is a copy with the chains of d and then those of the others, in order. All must have the same sites and the
// same statistics, in the same order; an [ErrLayout] says where they differ, and that some are named values and some on
// unconstrained space. Notes of all are kept, and attributes that do not contradict each other.
func (d *Draws) Merge(others ...*Draws) (*Draws, error) {
	n := len(d.chains)
	for i, o := range others {
		if o == nil {
			return nil, failf(ErrLayout, "merge: container %d is nil", i)
		}
		if diff := layoutDifference(o.sites, d.sites, o.stats, d.stats); diff != "" {
			return nil, failf(ErrLayout, "merge: container %d: %s", i, diff)
		}
		if a, b := d.Space(), o.Space(); a != b && a != "" && b != "" {
			return nil, failf(ErrLayout, "merge: container %d is %s, and the first %s: merge Draws of an infer.Result with "+
				"Draws, or Unconstrained with Unconstrained", i, inWords[b], inWords[a])
		}
		n += len(o.chains)
	}
	out := d.like(0).describe(append([]*Draws{d}, others...)...)
	out.chains = make([]chain, 0, n)
	for _, o := range append([]*Draws{d}, others...) {
		for _, c := range o.chains {
			out.chains = append(out.chains, chain{c.n, slices.Clone(c.rows)})
		}
	}
	return out, nil
}

// inWords says what draws are.
var inWords = map[string]string{Named: "of named values", Unconstrained: "on unconstrained space"}

// Chain is a copy with one chain alone; an [ErrRange] says that there is none of that number.
func (d *Draws) Chain(c int) (*Draws, error) {
	if c < 0 || c >= len(d.chains) {
		return nil, failf(ErrRange, "chain %d of %d", c, len(d.chains))
	}
	out := d.like(1)
	out.chains[0] = chain{d.chains[c].n, slices.Clone(d.chains[c].rows)}
	return out, nil
}
