package infer

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// RowTerm is the log density of a site on a batch, as a program tells it to a run that looks whether rows of a batch
// depend on each other.
type RowTerm struct {
	Sum      float64 // without the weight of a plate of which the batch has a part
	Size     float64 // the sum of the absolute values of what Sum adds up: its roundings are relative to that
	AddsUp   bool    // it is in a plate of which the batch has a part: rows add up, whatever their number
	Averages bool    // it is in no plate: where rows count in it, it is N times a mean over rows
	AllInOne bool    // it is in a plate of as many data as there are rows, and has all of them at once
}

// rowTermer is a program that tells its terms apart, as a compiled model does.
type rowTermer interface {
	RowTerms(Params, Batch) (map[string]RowTerm, error)
}

// additive looks whether a log density is a sum over the rows of a batch, each a function of that row alone. Only then
// do minibatches of the data have the posterior of all.
type additive struct {
	terms func(Batch) (map[string]RowTerm, error)
	pool  Batch    // rows to take batches from
	names []string // of the tensors that have these rows
	rows  int      // in the pool
	n     int      // in a batch
	share float64  // the rounding of a sum, relative to Size
}

// checkAdditive refuses minibatches of a density that is no sum over rows: one that takes the mean, the softmax or a
// cumulative sum over the batch, or counts its rows. What cannot be evaluated here is left to the run.
func (s *session) checkAdditive(start Params) (err error) {
	_, whole := s.batches.(*full)
	_, climbs := s.program.(climbing) // for a run that has been checked
	if whole || climbs || s.o.DependentRows {
		return nil
	}
	if m, ok := s.batches.(*minibatches); ok && m.o.Size == m.n {
		return nil
	}
	position := s.batches.Position()
	wrong := ""
	s.tally.Aside(func() {
		_ = guard("model", func() error {
			return torch.Do(func(*torch.Scope) (err error) {
				wrong, err = s.dependence(start)
				return err
			})
		})
	})
	if err := s.batches.Seek(position); err != nil || wrong == "" {
		return err
	}
	given := "given"
	if s.o.Batches == nil {
		given = fmt.Sprintf("nil, for which %s takes the data in parts", s.name)
	}
	return &FieldError{Type: optionsName, Field: "Batches", Value: given, Allowed: wrong + ". A batch of some of the " +
		"data has another density then, and the run another posterior. Compute what needs all rows once, before the run, " +
		"and give it as a tensor of the batch with a row for each datum, or as a constant; or give infer.Full of all data. " +
		"Where it is meant, as in batch normalisation, set DependentRows in infer.Options"}
}

// dependence says how rows depend on each other; it is empty where they do not, and where nothing can be told.
func (s *session) dependence(start Params) (string, error) {
	a, err := s.additive()
	if a == nil || err != nil {
		return "", err
	}
	target := s.program.Target()
	apart, named := s.program.(rowTermer)
	for _, by := range []float64{0.3, 0.03, 0} { // at 0 a coefficient would hide what it multiplies
		point, err := near(start, by)
		if err != nil {
			return "", err
		}
		single := point.Flat.T().DType() != gotch.Double
		for _, name := range a.names {
			single = single || slices.Contains([]gotch.DType{gotch.Float, gotch.Half, gotch.BFloat16}, a.pool[name].T().DType())
		}
		if a.share = 1e-6; single {
			a.share = 1e-4
		}
		a.terms = func(b Batch) (map[string]RowTerm, error) {
			if named {
				return apart.RowTerms(point, b)
			}
			gradient, err := NewGradient(target) // knows functions outside of libtorch
			if err != nil {
				return nil, err
			}
			e, err := gradient.ValueAndGrad(point, b, 0)
			if err != nil {
				return nil, err
			}
			return map[string]RowTerm{"": {Sum: e.Values[0], Size: math.Abs(e.Values[0])}}, nil
		}
		if known, wrong := a.look(); wrong != "" || known {
			return wrong, nil
		}
	}
	return "", nil
}

// near is the first chain of a start, scattered by so much.
func near(start Params, by float64) (Params, error) {
	values, err := torch.ToSlice[float64](start.Flat)
	if err != nil {
		return start, err
	}
	values = slices.Clone(values[:start.Layout.Dim()])
	for i := range values {
		values[i] += by * math.Cos(2.4*float64(i)+1)
	}
	p, err := NewParams(start.Layout, values)
	if err != nil {
		return p, err
	}
	device, err := torch.DeviceOf(start.Flat)
	if err != nil {
		return p, err
	}
	return p.To(device, start.Flat.T().DType())
}

// additive has the rows of the first batch, or of the first two where batches are single rows. It is nil where these
// are all of the data, and where it is not known which tensors have a row for each datum.
func (s *session) additive() (*additive, error) {
	first, err := s.batches.Next()
	if err != nil {
		return nil, err
	}
	var second Batch
	next := func() Batch {
		if second == nil {
			second = torch.Must(s.batches.Next()).Alone()
		}
		return second
	}
	first = first.Alone()
	a := &additive{pool: first}
	if a.names, a.n = s.columns(first, next); a.n == 0 {
		return nil, nil
	}
	all := float64(a.n) == s.data
	if p, ok := s.program.(fuller); ok { // where plates are in plates, N counts a row several times
		all = rowsOf(s.program.Batch()[a.names[0]]) == a.n && p.CheckFull(first) == nil
	}
	if all {
		return nil, nil
	}
	if a.rows = a.n; a.n > 1 {
		return a, nil
	}
	a.pool = maps.Clone(first)
	for _, name := range a.names {
		if a.pool[name], err = raw.Of(ts.Cat([]*ts.Tensor{first[name].T(), next()[name].T()}, 0)); err != nil {
			return nil, err
		}
	}
	a.rows = rowsOf(a.pool[a.names[0]])
	return a, nil
}

// rowsOf is how many rows a tensor has; -1 where it has none.
func rowsOf(t torch.Tensor) int {
	if t == (torch.Tensor{}) {
		return -1
	}
	if shape := t.Shape(); len(shape) > 0 {
		return shape[0]
	}
	return -1
}

// columns are the tensors with a row for each datum, and how many rows they have in the first of two batches: all of
// the tensors where they have one number, else those of another number than in the program's batch, else those that
// differ between the two. n is 0 where that is not known.
func (s *session) columns(first Batch, next func() Batch) (names []string, n int) {
	all := s.program.Batch()
	for _, is := range []func(name string) bool{
		func(string) bool { return true },
		func(name string) bool { return rowsOf(first[name]) != rowsOf(all[name]) },
		func(name string) bool {
			x, y := first[name], next()[name]
			return x != (torch.Tensor{}) && y != (torch.Tensor{}) &&
				!(x == y || slices.Equal(x.T().MustSize(), y.T().MustSize()) && x.T().MustEqual(y.T(), false))
		},
	} {
		part := Batch{}
		for name, t := range first {
			if is(name) {
				part[name] = t
			}
		}
		same := func() bool {
			size, err := part.Size()
			n = size
			return err == nil
		}
		if len(part) > 0 && !slices.Contains(slices.Collect(maps.Values(part)), torch.Tensor{}) && same() {
			return part.names(), n
		}
	}
	return nil, 0
}

// take is a batch of rows of the pool; of the tensors in fixed it is the first row each time.
func (a *additive) take(at []int, fixed func(name string) bool) Batch {
	out := maps.Clone(a.pool)
	for _, name := range a.names {
		index := at
		if fixed != nil && fixed(name) {
			index = make([]int, len(at))
		}
		device := torch.Must(torch.DeviceOf(a.pool[name]))
		moved := torch.Must(torch.To(torch.New(index), device, gotch.Int64))
		out[name] = torch.Of(a.pool[name].T().MustIndexSelect(0, moved.T(), false))
	}
	return out
}

// on are the terms on some rows; nil where the density cannot be evaluated.
func (a *additive) on(at []int, fixed func(name string) bool) (out map[string]RowTerm) {
	_ = guard("model", func() error {
		return torch.Do(func(*torch.Scope) (err error) {
			out, err = a.terms(a.take(at, fixed))
			return err
		})
	})
	return out
}

// Why an equation does not hold.
const (
	among   = " (a mean, a softmax, a cumulative sum over the batch, or how many rows it has)"
	outside = " (a tensor with a row for each datum that is no part of the batch)"
)

// identity is an equation between the terms on batches that holds where rows add up.
type identity struct {
	says        string // of a site for which it fails
	because     string
	left, right [][]int
	only        func(t RowTerm) bool // the terms that it is about; nil is all
}

// identities are the equations that are looked at: on rows in another order, on rows that two batches exchange, on
// parts of a batch, and on single rows.
func (a *additive) identities() []identity {
	const depends = "of one row depends on "
	forth, back := make([]int, a.n), make([]int, a.n)
	for i := range forth {
		forth[i], back[i] = i, a.rows-1-i
	}
	one, other, whole := []int{0}, []int{a.rows - 1}, []int{0, a.rows - 1}
	single := identity{"has all of the data of its plate at once on a batch of one row, which it depends on", outside,
		[][]int{one}, [][]int{other}, func(t RowTerm) bool { return t.AllInOne }}
	parts := identity{depends + "the number of rows in its batch", among, [][]int{whole}, [][]int{one, other},
		func(t RowTerm) bool { return t.AddsUp || t.Averages }}
	if a.n == 1 {
		return []identity{single, parts}
	}
	parts.left, parts.right = [][]int{forth}, [][]int{one, forth[1:]}
	exchanged := func(of func(i int) bool) identity {
		x, y := slices.Clone(forth), slices.Clone(back)
		for i := range x {
			if of(i) {
				x[i], y[i] = y[i], x[i]
			}
		}
		return identity{depends + "the other rows of its batch", among, [][]int{forth, back}, [][]int{x, y}, nil}
	}
	return []identity{
		{depends + "the order of the rows in its batch", among, [][]int{forth}, [][]int{back}, nil},
		exchanged(func(i int) bool { return i < a.n/2 }), exchanged(func(i int) bool { return i%3 == 1 }),
		parts, single,
	}
}

// fails are the terms for which an equation does not hold. known says whether one of them could be evaluated.
func (a *additive) fails(e identity, fixed func(name string) bool) (wrong []string, known bool) {
	sum, size := map[string]float64{}, map[string]float64{}
	parts := 0
	add := func(batches [][]int, sign float64) bool {
		for _, at := range batches {
			terms := a.on(at, fixed)
			if terms == nil {
				return false
			}
			parts++
			for name, t := range terms {
				if e.only != nil && !e.only(t) {
					continue
				}
				if _, ok := sum[name]; !ok && parts > 1 {
					continue // it is not there in each batch
				}
				weight := 1.0
				if t.Averages {
					weight = float64(len(at))
				}
				sum[name] += sign * weight * t.Sum
				size[name] += weight * t.Size
			}
			for name := range sum {
				if t, ok := terms[name]; !ok || e.only != nil && !e.only(t) {
					delete(sum, name)
				}
			}
		}
		return true
	}
	if !add(e.left, 1) || !add(e.right, -1) {
		return nil, false
	}
	for _, name := range slices.Sorted(maps.Keys(sum)) {
		known = known || !math.IsNaN(sum[name]) && !math.IsInf(sum[name], 0)
		if d := math.Abs(sum[name]); !math.IsInf(d, 0) && d > a.share*(size[name]+1e-3) {
			wrong = append(wrong, name)
		}
	}
	return wrong, known
}

// look says what is wrong, and whether anything could be told. A density that differs between two evaluations, as that
// of a network with dropout does, tells nothing.
func (a *additive) look() (known bool, wrong string) {
	all := a.identities()
	same := identity{left: all[0].left, right: all[0].left}
	if wrong, known := a.fails(same, nil); len(wrong) > 0 || !known {
		return false, ""
	}
	for _, e := range all {
		sites, ok := a.fails(e, nil)
		known = known || ok
		if len(sites) == 0 {
			continue
		}
		site := "the log density"
		if sites[0] != "" {
			site = fmt.Sprintf("the log density of site %q", sites[0])
		}
		var by []string
		for _, name := range a.names {
			if len(a.names) > 1 {
				again, _ := a.fails(e, func(other string) bool { return other != name })
				if !slices.Contains(again, sites[0]) {
					continue
				}
			}
			by = append(by, fmt.Sprintf("%q", name))
		}
		text := site + " " + e.says
		if len(by) > 0 {
			text += ", by " + strings.Join(by, " and ")
		}
		return true, text + e.because
	}
	return known, ""
}
