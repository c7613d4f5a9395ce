package infer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Result is what a run leaves when it ends, or when it was stopped.
type Result struct {
	Draws         *draws.Draws // named values; nil while there are none
	Unconstrained *draws.Draws // the same draws on unconstrained space
	Transform     Transform    // what the method built
	// the last state, the caller's; nil for methods that drive themselves, and with several groups
	State     State
	Last      Params   // the last point of each chain, of shape [Chains, d]
	Average   *Average // with Options.Average, if there were updates after the warm-up
	Updates   int      // of each chain, or transitions of all chains of a method that drives itself
	Held      int      // updates of single chains that were held, because something was not finite
	Gradients int      // evaluated by this process, one for each chain; values, of a method without gradients
	Detail    any      // what a method that drives itself tells besides, such as *hmc.Detail

	changed []draws.Note // that the model was not what was compiled
}

// finish makes the result.
func (s *session) finish(r *Result) error {
	r.Transform, r.Updates, r.Held, r.Gradients = s.transform, s.updates, s.held, s.gradients
	r.State = s.state
	r.changed = append(s.changed, s.compilation.spots.note()...)
	if len(s.details) == 1 {
		r.Detail = s.details[0]
	} else if len(s.details) > 1 {
		r.Detail = s.details
	}
	d := s.layout.Dim()
	var err error
	if len(s.last) > 0 {
		r.Last.Layout = s.layout
		if r.Last.Flat, err = stacked(s.last, d); err != nil {
			return err
		}
	}
	if len(s.averages) > 0 {
		if r.Average, err = averaged(s.averages, s.layout); err != nil {
			return err
		}
	}
	if r.Unconstrained, err = s.rows.container(); err != nil {
		return err
	}
	if r.Unconstrained == nil || r.Unconstrained.Total() == 0 {
		return s.rows.save()
	}
	if r.Last.Flat == (torch.Tensor{}) { // a method that drives itself ends at its last draws
		if r.Last, err = lastRows(r.Unconstrained, s.layout); err != nil {
			return err
		}
	}
	s.describe(r)
	if err := s.rows.save(); err != nil {
		return err
	}
	data, err := s.whole()
	if err != nil {
		return err
	}
	if r.Draws, err = s.named(r.Unconstrained, data); err != nil {
		return err
	}
	return s.rows.end(r.Draws)
}

// named maps draws to named values, which keep what is told of the draws.
func (s *session) named(d *draws.Draws, data Batch) (*draws.Draws, error) {
	named, err := s.program.Draws(d, data)
	if err != nil {
		return nil, err
	}
	d.NamedAs(named)
	return named, nil
}

// lastRows are the last draws of all chains; the zero value while one has none.
func lastRows(d *draws.Draws, l *Layout) (Params, error) {
	var flat []float64
	for c := range d.Chains() {
		if d.Len(c) == 0 {
			return Params{}, nil
		}
		flat = append(flat, d.Row(c, d.Len(c)-1)...)
	}
	t, err := torch.FromSlice(flat, d.Chains(), l.Dim())
	return Params{Layout: l, Flat: t}, err
}

// describe says in the draws how they came about, and what the method has to say about its run.
func (s *session) describe(r *Result) {
	d := r.Unconstrained
	s.attributes(d)
	if t, ok := s.transform.(interface{ Cold(from, to int) bool }); ok && t.Cold(s.o.Warmup, s.updates) {
		d.SetAttr(draws.AttrTemperature, "0")
	}
	if p, ok := s.program.(interface{ ScaledNormals() ([]string, error) }); ok && happened(d, draws.StatDivergent) {
		if names, err := p.ScaledNormals(); err == nil && len(names) > 0 { // without them the advice names no variable
			d.SetAttr("scaled_normals", strings.Join(names, ", "))
		}
	}
	if noter, ok := s.transform.(Noter); ok {
		summary := RunSummary{Updates: s.updates, Held: s.held, Undefined: s.compilation.undefined.count,
			Info: s.rows.info, Layout: s.layout, Batch: s.all,
			Part: s.partial(), Draws: d, Details: s.details}
		if _, whole := s.batches.(*full); !whole {
			summary.Batches = s.batches
		}
		for _, n := range noter.Notes(s.state, summary) {
			d.AddNote(n)
		}
	}
	for _, n := range slices.Concat(s.tally.Notes(), s.undefinedNote(d), r.changed) {
		d.AddNote(n)
	}
	_, updates := s.transform.(interface{ Cold(from, to int) bool })
	_, fits := s.transform.(Sampler)
	if updates && s.rows.info.Temperature == 0 || fits || troubled(d) {
		notes := s.endless(r.Last, "ended", troubled(d))
		if len(notes) == 0 && fits { // which may end so far away that no digit is left
			notes = s.endless(s.origin, "began", false)
		}
		for _, n := range notes {
			d.AddNote(n)
		}
	}
}

// attributes says in the draws what is known of them from the first one on.
func (s *session) attributes(d *draws.Draws) {
	d.SetAttr(draws.AttrMethod, s.name)
	d.SetAttr("gradient", s.compilation.String())
	if s.tuned != "" {
		d.SetAttr("tuned", s.tuned)
	}
	if t, ok := s.transform.(interface{ Attrs() map[string]string }); ok {
		for key, value := range t.Attrs() {
			d.SetAttr(key, value)
		}
	}
	d.SetAttr("seed", strconv.FormatUint(s.o.Seed, 10))
	d.SetAttr("warmup", strconv.Itoa(s.o.Warmup))
	d.SetAttr("thin", strconv.Itoa(s.o.Thin))
	d.SetAttr("data", strconv.FormatFloat(s.data, 'g', -1, 64))
}

// averaged puts the averages of groups below each other.
func averaged(groups []*Average, l *Layout) (*Average, error) {
	if len(groups) == 1 {
		return groups[0], nil
	}
	a := &Average{Mean: Params{Layout: l}, Variance: Params{Layout: l}, Weight: groups[0].Weight}
	var means, variances []torch.Tensor
	for _, g := range groups {
		means, variances = append(means, g.Mean.Flat), append(variances, g.Variance.Flat)
	}
	var err error
	if a.Mean.Flat, err = stacked(means, l.Dim()); err != nil {
		return nil, err
	}
	a.Variance.Flat, err = stacked(variances, l.Dim())
	return a, err
}

// stacked puts points of shape [d] or [K, d] below each other.
func stacked(points []torch.Tensor, d int) (out torch.Tensor, err error) {
	err = torch.Do(func(s *torch.Scope) error {
		rows := make([]torch.Tensor, len(points))
		for i, p := range points {
			if rows[i], err = raw.Of(p.T().Reshape([]int64{-1, int64(d)}, false)); err != nil {
				return err
			}
		}
		out, err = raw.Of(ts.Cat(raw.Pointers(rows), 0))
		s.Keep(out)
		return err
	})
	return out, err
}

// nameOf is the stable name of a transform.
func nameOf(t Transform) string {
	if named, ok := t.(Named); ok {
		return named.Name()
	}
	return fmt.Sprintf("%T", t)
}
