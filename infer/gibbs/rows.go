package gibbs

import (
	"math"
	"math/bits"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Elements z₁, …, z_n of a site in a plate of n rows are independent given the rest where the log density is
//
//	log p = Σ_i f_i(z_i, rest) + g(rest)
//
// Then one evaluation with all elements at v gives f_i(v, rest) for all i at once.

// rowTerms is a target whose aux "rows" are the f_i: the terms in the site's plate.
func (s *site) rowTerms(program space, plate string) infer.LogPosterior {
	return func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		rows := p.Flat.Slice(-1, s.Offset, s.Offset+s.Size).Mul(0).Add(program.Rows(p, b, plate, s.Size))
		return zero(p), infer.Aux{"rows": torch.Of(torch.Must(rows.T().Detach(false)))}
	}
}

// look finds out, once, which sites have independent elements: a model in a plate mostly has this form, but its code
// may mix the rows, or use the site elsewhere. It depends on the model and the data alone, so that a run that is
// resumed finds the same.
func (t *discrete) look(m *method.Move) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.sites {
		if s.rows == nil || t.looked {
			continue
		}
		passed := 0
		for trial := 0; trial < 6 && passed >= 0; trial++ {
			if apart, finite := t.separate(s, m, trial); finite && apart {
				passed++
			} else if finite {
				passed = -1
			}
		}
		s.apart = passed > 0
	}
	t.looked = true
}

// separate compares, at a point x and at y where all elements have other values, the log density F with the rows f: for
// any set A of elements that are as in y, the others being as in x,
//
//	F(A) − F(∅) = Σ_{i ∈ A} f_i(y_i) − f_i(x_i)
//
// if the elements are independent. Any two elements are apart in some of the sets that are compared. A point where a
// density is not finite says nothing: counts that are less than what was seen of them, for one.
func (t *discrete) separate(s *site, m *method.Move, trial int) (apart, finite bool) {
	x, batch := t.probe(m.Batch, t.program, trial)
	v := &visit{discrete: t, move: m, params: infer.Params{Layout: t.program.Layout(), Flat: m.Grad}, d: len(x), x: x,
		now: []float64{0}}
	moved := func(i, set int) bool { // set 0 is none of the elements, 1 is all
		return set == 1 || set > 1 && (i>>((set-2)/2))&1 == set%2
	}
	sets := 2 + 2*bits.Len(uint(s.Size-1))
	points := func(x []float64, _, set int) {
		for i := range s.Size {
			at := &x[s.Offset+i]
			if *at = s.whole(*at); moved(i, set) {
				if *at++; *at > s.high {
					*at -= 2
				}
			}
		}
	}
	density := torch.Must(infer.NewGradient(t.target))
	on := func(g infer.Gradient) func(infer.Params) infer.Evaluation {
		return func(p infer.Params) infer.Evaluation { return torch.Must(g.ValueAndGrad(p, batch, m.Tau)) }
	}
	f := torch.Must(torch.ToSlice[float64](v.evaluate(on(s.rows), 2, points).Aux["rows"]))
	all := v.evaluate(on(density), sets, points).Values
	for set := 1; set < sets; set++ {
		want, size := 0.0, t.n*math.Abs(all[0])
		for i := range s.Size {
			if moved(i, set) {
				want += f[s.Size+i] - f[i]
			}
			size += math.Abs(f[i]) + math.Abs(f[s.Size+i])
		}
		off := math.Abs(t.n*(all[set]-all[0]) - want)
		if math.IsNaN(off+size) || math.IsInf(off+size, 0) {
			return false, false
		}
		if off > 1e-10*(1+size) {
			return false, true
		}
	}
	return true, true
}

// probe is a point to look at, and the batch of a view with a point of the sites around. Counts without an end are
// larger in every second trial.
func (t *discrete) probe(b infer.Batch, program space, trial int) ([]float64, infer.Batch) {
	if v, ok := program.(*view); ok {
		whole, b := t.probe(b, v.space, trial)
		return v.cut(whole), v.with(b, torch.New(whole))
	}
	x := make([]float64, program.Layout().Dim())
	for _, s := range program.Layout().Sites {
		_, high, discrete := program.Ends(s.Name)
		for i := s.Offset; i < s.Offset+s.Size; i++ {
			if x[i] = 1.5 * math.Cos(2.4*float64(i)+float64(trial)); discrete && math.IsInf(high, 1) {
				x[i] = (2 + x[i]) * math.Pow(30, float64(trial/2))
			}
		}
	}
	return x, b
}
