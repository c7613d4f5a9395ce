package draws

import "slices"

// Row is one draw of one chain: its flat vector, Dim numbers. It is a view of the container and must not be changed; it
// stays as it is when more draws are appended. It is nil if there is no such chain or draw.
func (d *Draws) Row(chain, draw int) []float64 {
	if draw < 0 || draw >= d.Len(chain) {
		return nil
	}
	start := draw * d.width()
	end := start + d.dim
	return d.chains[chain].rows[start:end:end]
}

// StatRow are the statistics of one draw of one chain, in the order of Stats. It is a view, as that of [Draws.Row].
func (d *Draws) StatRow(chain, draw int) []float64 {
	if draw < 0 || draw >= d.Len(chain) {
		return nil
	}
	end := (draw + 1) * d.width()
	return d.chains[chain].rows[end-len(d.stats) : end : end]
}

// Rows are the draws of all chains, one chain after the other: Total rows of Dim numbers. They are views, as of
// [Draws.Row].
func (d *Draws) Rows() [][]float64 {
	rows := make([][]float64, 0, d.Total())
	for c := range d.chains {
		for i := range d.chains[c].n {
			rows = append(rows, d.Row(c, i))
		}
	}
	return rows
}

// Element is the trace of one element of the flat vector in one chain: a copy with Len(chain) numbers. It is nil if
// there is no such chain or element.
func (d *Draws) Element(chain, element int) []float64 {
	if chain < 0 || chain >= len(d.chains) || element < 0 || element >= d.dim {
		return nil
	}
	return d.column(make([]float64, 0, d.chains[chain].n), chain, element)
}

// Pooled is the trace of one element in all chains, one chain after the other: a copy with Total numbers. It is nil if
// there is no such element.
func (d *Draws) Pooled(element int) []float64 {
	if element < 0 || element >= d.dim {
		return nil
	}
	trace := make([]float64, 0, d.Total())
	for c := range d.chains {
		trace = d.column(trace, c, element)
	}
	return trace
}

// column appends one column of the stored rows of a chain to trace.
func (d *Draws) column(trace []float64, chain, col int) []float64 {
	c, w := &d.chains[chain], d.width()
	for i := range c.n {
		trace = append(trace, c.rows[i*w+col])
	}
	return trace
}

// Values is a copy of all draws of a site, [Chains][Len(chain)][Size]. An [ErrUnknownName] lists the sites there are.
func (d *Draws) Values(name string) ([][][]float64, error) {
	s, err := d.Site(name)
	if err != nil {
		return nil, err
	}
	values := make([][][]float64, len(d.chains))
	for c := range d.chains {
		n := d.chains[c].n
		all := make([]float64, n*s.Size)
		values[c] = make([][]float64, n)
		for i := range n {
			v := all[i*s.Size : (i+1)*s.Size : (i+1)*s.Size]
			copy(v, d.Row(c, i)[s.Offset:])
			values[c][i] = v
		}
	}
	return values, nil
}

// Stat is the trace of a statistic in one chain: a copy with Len(chain) numbers. An [ErrUnknownName] lists the
// statistics there are; an [ErrRange] says that there is no such chain.
func (d *Draws) Stat(name string, chain int) ([]float64, error) {
	k := slices.Index(d.stats, name)
	if k < 0 {
		return nil, failf(ErrUnknownName, "no statistic %q; the statistics are %s", name, listed(d.stats))
	}
	if err := d.checkChain("statistic "+name, chain); err != nil {
		return nil, err
	}
	return d.column(make([]float64, 0, d.chains[chain].n), chain, d.dim+k), nil
}

// eachElement calls f with the pooled trace of each element from first to last-1. f may change the trace until it
// returns. Elements are gathered eight at a time, a cache line of every row, since a row may be long.
func (d *Draws) eachElement(first, last int, f func(element int, trace []float64)) {
	const block = 8
	n, w := d.Total(), d.width()
	buffer := make([]float64, n*min(block, last-first))
	for ; first < last; first += block {
		m := min(block, last-first)
		i := 0
		for _, c := range d.chains {
			for k := range c.n {
				start := k*w + first
				for j, v := range c.rows[start : start+m] {
					buffer[j*n+i] = v
				}
				i++
			}
		}
		for j := range m {
			f(first+j, buffer[j*n:(j+1)*n])
		}
	}
}
