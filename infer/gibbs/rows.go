package gibbs

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Elements z₁, …, z_n of a site in a plate of n rows are independent given the rest where the log density is
//
//	log p = Σ_i f_i(z_i, rest) + g(rest)
//
// Then one evaluation with all elements at v gives f_i(v, rest) for all i at once. A model in a plate mostly has this
// form, but its code may mix the rows: so the terms are looked at, at a few points, before it is used.

// onePlate is the plate of a site whose only dimension is that plate's; "" for another.
func onePlate(s infer.Site, dims []string) string {
	if len(s.Shape) != 1 || s.Size < 2 || len(dims) != 1 {
		return ""
	}
	return dims[0]
}

// rowTerms is a target whose aux "rows" are the f_i: the terms that depend on the site, row by row, on the scale of the
// sum over data.
func (s *site) rowTerms(program space) infer.LogPosterior {
	return func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		sum := torch.Of(p.Flat).Slice(-1, s.Offset, s.Offset+s.Size).Mul(0)
		program.Terms(p, b, func(t *ppl.Site, logp *ts.Tensor, scale float64) {
			if s.met[t.Name] {
				sum = sum.Add(s.byRow(t, logp).Mul(scale))
			}
		})
		return zero(p), infer.Aux{"rows": torch.Must(sum.T().Detach(false))}
	}
}

// byRow is a term with one number for each row of the plate; its T is nil where it has no such dimension.
func (s *site) byRow(t *ppl.Site, logp *ts.Tensor) (rows torch.Tensor) {
	i := slices.IndexFunc(t.Plates, func(p ppl.Plate) bool { return p.Name == s.plate })
	if i < 0 {
		return rows
	}
	shape := torch.Of(logp).Shape()
	at := len(shape) + t.Plates[i].Dim
	if at < 0 || shape[at] != int64(s.Size) {
		return rows
	}
	var others []int
	for j := range shape {
		if j != at {
			others = append(others, j)
		}
	}
	if rows = torch.Of(logp); len(others) > 0 {
		rows = rows.Sum(others...)
	}
	return rows
}

// look finds out, once, which sites have independent elements. It depends on the model and the data alone, so that a
// run that is resumed finds the same.
func (t *discrete) look(b infer.Batch) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.looked {
		return nil
	}
	for _, s := range t.sites {
		if s.plate == "" {
			continue
		}
		s.apart, s.met = true, map[string]bool{}
		for trial := range 3 {
			if err := t.separate(s, b, trial); err != nil {
				return err
			}
		}
		s.apart = s.apart && len(s.met) > 0
	}
	t.looked = true
	return nil
}

// separate compares the terms at a point with those where the elements of a part of the rows have other values: the
// terms of the other rows must stay. Any two rows are in different parts once.
func (t *discrete) separate(s *site, b infer.Batch, trial int) error {
	from, b := probe(t.program, b, trial)
	before, err := t.terms(s, b, from)
	if err != nil {
		return err
	}
	for bit := range bits.Len(uint(s.Size - 1)) {
		for side := range 2 {
			moved := func(i int) bool { return i>>bit&1 == side }
			x := slices.Clone(from)
			for i := range s.Size {
				if moved(i) {
					x[s.Offset+i] = s.next(x[s.Offset+i])
				}
			}
			after, err := t.terms(s, b, x)
			if err != nil {
				return err
			}
			s.compare(before, after, moved)
		}
	}
	return nil
}

// compare notes the terms that differ, and whether they do so in other rows than those that were moved.
func (s *site) compare(before, after map[string][]float64, moved func(i int) bool) {
	for n, old := range before {
		now := after[n]
		if len(now) != len(old) {
			s.apart = false
			continue
		}
		rows := n[0] == 'r'
		for i := range old {
			same := math.Abs(old[i]-now[i]) <= 1e-12*(1+math.Abs(old[i]))
			if !same {
				s.met[n[1:]] = true
				s.apart = s.apart && rows && moved(i)
			}
		}
	}
}

// terms are the terms of the log density at a point: those with a number for each row of the site's plate by rows,
// with an r before their names, others as they are.
func (t *discrete) terms(s *site, b infer.Batch, x []float64) (out map[string][]float64, err error) {
	out = map[string][]float64{}
	return out, torch.Do(func(*torch.Scope) error {
		p, err := infer.NewParams(t.program.Layout(), x)
		if err != nil {
			return err
		}
		t.program.Terms(p, b, func(term *ppl.Site, logp *ts.Tensor, scale float64) {
			kind, values := "r", s.byRow(term, logp)
			if _, ok := values.Number(); ok {
				kind, values = "t", torch.Of(logp)
			}
			out[kind+term.Name] = torch.Must(torch.ToSlice[float64](values.T()))
		})
		return nil
	})
}

// probe is a point to look at, and the batch of views with a point of the sites around.
func probe(program space, b infer.Batch, trial int) ([]float64, infer.Batch) {
	v, ok := program.(*view)
	if !ok {
		return scattered(program, program.Layout(), trial), b
	}
	outer, ok := v.of.(space)
	if !ok {
		return make([]float64, v.layout.Dim()), b
	}
	whole, b := probe(outer, b, trial)
	return v.cut(whole, 0), v.with(b, torch.Must(torch.FromSlice(whole)))
}

// scattered is a point of a program, with values of the support for discrete sites.
func scattered(program space, l *infer.Layout, trial int) []float64 {
	x := make([]float64, l.Dim())
	for _, s := range l.Sites {
		low, high, discrete := program.Ends(s.Name)
		for i := range s.Size {
			if at := s.Offset + i; discrete {
				x[at] = allowed(low, high, uint64(at+trial<<32))
			} else {
				x[at] = 0.5 * math.Cos(2.4*float64(at)+float64(trial))
			}
		}
	}
	return x
}

// allowed is one of the first values of a support.
func allowed(low, high float64, number uint64) float64 {
	if math.IsInf(low, -1) {
		low = min(high, 0) - 3
	}
	return low + float64(mix(number+1)%uint64(min(high-low+1, 4)))
}

// next is another value of the support.
func (s *site) next(x float64) float64 {
	if x+1 <= s.high {
		return x + 1
	}
	return x - 1
}

// together draws all elements of a site at once.
func (v *visit) together(s *site) error {
	d, m := v.state.Params.Layout.Dim(), int(s.high-s.low)+1
	to := make([]float64, len(v.x))
	if s.walks {
		m = 2
		for k, random := range v.random {
			for i := k*d + s.Offset; i < k*d+s.Offset+s.Size; i++ {
				to[i] = s.step(random, v.x[i], v.widths[i])
			}
		}
	}
	e, err := v.evaluate(s.rows, m, func(x []float64, k, j int) {
		for i := s.Offset; i < s.Offset+s.Size; i++ {
			switch {
			case !s.walks:
				x[i] = s.low + float64(j)
			case j == 1:
				x[i] = s.within(to[k*d+i], x[i])
			}
		}
	})
	if err != nil {
		return err
	}
	if e.Aux["rows"] == nil {
		return fmt.Errorf("the rows of site %q are not there", s.Name)
	}
	rows, err := torch.ToSlice[float64](e.Aux["rows"])
	if err != nil {
		return err
	}
	return v.take(s, m, to, rows)
}

// take draws the elements from the log densities of their rows: m for each, of all chains.
func (v *visit) take(s *site, m int, to, rows []float64) error {
	d, n := v.state.Params.Layout.Dim(), v.n
	logp := make([]float64, m)
	for k, random := range v.random {
		for i := range s.Size {
			for j := range m {
				logp[j] = rows[(k*m+j)*s.Size+i] / n
			}
			at := s.Offset + i
			if s.walks {
				v.accepts(s, k, at, to[k*d+at], logp[0], logp[1])
				continue
			}
			x := &v.x[k*d+at]
			if value := s.low + float64(choose(random, logp, v.tau)); value != *x {
				*x = value
				v.flips[k]++
			}
		}
	}
	v.stale = true
	return nil
}

// refresh evaluates the log densities of the chains where elements have moved all at once.
func (v *visit) refresh() error {
	if !v.stale {
		return nil
	}
	v.stale = false
	e, err := v.evaluate(v.gradient, 1, func([]float64, int, int) {})
	copy(v.now, e.Values)
	return err
}
