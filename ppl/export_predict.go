package ppl

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/native/portable"
	"github.com/kelvin-ppl/kelvin/internal/rows"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// recordedDraws is how many draws a prediction is recorded and compared at.
const recordedDraws = 4

// rowsAtFirst is the first of the three numbers of rows that a prediction is recorded for: as many that no dimension of
// the model is likely to have their size, and that small products are loops, as they are for most others.
const rowsAtFirst = 37

// portablePrediction is what the program predicts at draws of it, for its own data and, where it can be, for any number
// of rows.
func (p *Program) portablePrediction(posterior *draws.Draws) (*portable.Prediction, error) {
	posterior, err := firstDraws(posterior)
	if err != nil {
		return nil, err
	}
	names, n := p.freeRows()
	own, err := recordPrediction(p.model, posterior, p.batch, max(n, 1), anew)
	if err != nil {
		return nil, err
	}
	var why error
	if n > 0 {
		var out *portable.Prediction
		if out, why = p.predictionForRows(own, posterior, names); why == nil {
			return out, nil
		}
	}
	out := own.Prediction
	if err := out.Complete(names, nil); err != nil {
		return nil, err
	}
	if why != nil {
		out.Why = why.Error()
	}
	return &out, own.compare(&out, nil)
}

// predictionForRows is the prediction for any number of rows.
func (p *Program) predictionForRows(own recordedPrediction, posterior *draws.Draws,
	names []string) (*portable.Prediction, error) {
	var three []*portable.Prediction
	for k := range 3 {
		r, err := p.recordRows(posterior, names, rowsAtFirst+k, anew)
		if err != nil {
			return nil, err
		}
		three = append(three, &r.Prediction)
	}
	out := own.Prediction
	err := out.Complete(names, three)
	if err == nil {
		err = own.compare(&out, names)
	}
	if err == nil {
		err = p.comparePrediction(&out, posterior, names, anew)
	}
	return &out, err
}

// firstDraws are a few draws of the first chain.
func firstDraws(d *draws.Draws) (*draws.Draws, error) {
	d, err := d.Chain(0)
	if err == nil {
		d, err = d.Slice(0, min(d.MinLen(), recordedDraws))
	}
	return d, err
}

// freeRows are the data that have rows which a prediction may have any number of: those of the plate of observed
// variables. There are none where no data tell the size of such a plate.
func (p *Program) freeRows() (names []string, n int) {
	sizes := map[int]bool{}
	_ = torch.Do(func(*torch.Scope) error {
		point, err := infer.Zeros(p.layout)
		if err != nil {
			return err
		}
		e := &evaluator{program: p, point: point, collect: func(s *Site) {
			if !s.Observed || s.Kind != KindSample {
				return
			}
			for _, q := range s.Plates {
				sizes[q.Size] = true
			}
			if shape := s.valueShape(); len(s.Plates) == 0 && len(shape) > 0 {
				sizes[shape[0]] = true
			}
		}}
		execute(p.model, p.batch, nil, e)
		e.complete()
		return nil
	})
	for _, r := range rows.Of(p.batch) {
		if sizes[r.Size] {
			names, n = r.Names, r.Size
		}
	}
	return names, n
}

// recordRows records what is asked for so many rows.
func (p *Program) recordRows(posterior *draws.Draws, names []string, n int, ask asked) (r recordedPrediction,
	err error) {
	err = torch.Do(func(*torch.Scope) error {
		r, err = recordPrediction(p.open, posterior, p.cycled(names, n), n, ask)
		return err
	})
	return r, err
}

// cycled is the program's data with so many rows: its own, again and again.
func (p *Program) cycled(names []string, n int) infer.Batch {
	batch := maps.Clone(p.batch)
	for _, name := range names {
		index := make([]int, n)
		for i := range index {
			index[i] = i % batch[name].Shape()[0]
		}
		batch[name] = batch[name].IndexSelect(0, torch.New(index))
	}
	return batch
}

// comparePrediction compares what is written with the program for one row and for a few.
func (p *Program) comparePrediction(out *portable.Prediction, posterior *draws.Draws, names []string, ask asked) error {
	for _, n := range []int{1, 2, 3 * rowsAtFirst} {
		r, err := p.recordRows(posterior, names, n, ask)
		if err != nil && n < 3 {
			out.Least = n + 1
			continue
		}
		if err == nil {
			err = r.compare(out, names)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// recordedPrediction is a prediction for some data, with what was drawn at the first draws.
type recordedPrediction struct {
	portable.Prediction
	takes  []drawnNumbers
	used   map[string]bool      // the sites that a draw gives
	values [][]float64          // by draw: what is given
	data   map[string][]float64 // of the batch
	drawn  []map[string][]float64
}

// drawnNumbers are random numbers that a model takes at once.
type drawnNumbers struct {
	kind string
	size int
}

// tape follows what a run of a model draws.
type tape struct {
	source *torch.Source
	takes  []drawnNumbers
	values []float64
}

// ask draws from the stream, and keeps what it draws.
func (r *tape) ask(kind string, shape []int, dtype gotch.DType, params ...torch.Tensor) (t torch.Tensor, err error) {
	switch kind {
	case "normal":
		t, err = r.source.Normal(shape, dtype, torch.CPU)
	case "uniform":
		t, err = r.source.Uniform(shape, dtype, torch.CPU)
	case "log gamma":
		t, err = r.source.LogGamma(params[0])
	case "poisson":
		t, err = r.source.Poisson(params[0])
	case "binomial":
		t, err = r.source.Binomial(params[0], params[1])
	case "multinomial":
		t, err = r.source.Multinomial(params[0], params[1])
	case "von mises":
		t, err = r.source.VonMises(params[0])
	}
	if err != nil {
		return t, err
	}
	if is, err := torch.DTypeOfTensor(t); err != nil || is != gotch.Double {
		return t, errors.Join(err, fmt.Errorf("it draws %s numbers of type %v: a prediction in float64 is exported", kind,
			is))
	}
	values, err := torch.ToSlice[float64](t)
	r.takes = append(r.takes, drawnNumbers{kind, len(values)})
	r.values = append(r.values, values...)
	return t, err
}

// asked is what a run of a model at a draw is to make.
type asked int

const (
	anew   asked = iota // all sites, the observed ones drawn anew
	scores              // the log density of each observed value
)

// recordPrediction records what a model makes of data, of so many rows, at draws of its variables.
func recordPrediction(m Model, posterior *draws.Draws, batch infer.Batch, n int, ask asked) (r recordedPrediction,
	err error) {
	q := Predictive{Model: m, Batch: batch}
	names, in, total, stored, err := q.given(posterior)
	if err != nil {
		return r, err
	}
	defer torch.Free(in...)
	run := func(batch infer.Batch, source *torch.Source, given Values) Values {
		out := Values{}
		var order []string
		r.used, r.Data = map[string]bool{}, nil
		keep := finish(func(s *Site) {
			take := s.Value
			if ask == scores {
				take = pointwise(s)
			}
			if (s.Kind == KindSample || s.Kind == KindDeterministic) && take != (torch.Tensor{}) {
				order = append(order, s.Name)
				out[s.Name] = doubles(take)
			}
			_, known := given[s.Name]
			r.used[s.Name] = known && !s.redrawn && (s.Kind != KindDeterministic || stored[s.Name])
			if s.redrawn {
				r.Data = append(r.Data, s.Name)
			}
		})
		if ask == scores {
			execute(q.Model, batch, source, keep, fill(given, stored))
		} else {
			predict(q.Model, batch, source, keep, fill(given, stored), redraw)
		}
		r.Sites = order
		return out
	}
	var points [][]float64
	for k := range total {
		err := torch.Do(func(*torch.Scope) error {
			given := Values{}
			for i, name := range names {
				given[name] = in[i].At(k)
			}
			tape := tape{source: torch.NewSource(0, uint64(k))}
			source := torch.NewSource(0, 0)
			source.Ask(tape.ask)
			values := run(batch, source, given)
			return r.keep(posterior, k, &tape, values, &points)
		})
		if err != nil {
			return r, err
		}
	}
	r.Rows = n
	if len(points) < 2 || len(points[0]) == 0 {
		return r, errors.New("it needs two draws, and something that differs between them")
	}
	return r, r.compile(batch, points, run)
}

// doubles is a tensor as contiguous numbers of float64.
func doubles(t torch.Tensor) torch.Tensor {
	return torch.Of(torch.Must(t.T().Totype(gotch.Double, false)).MustContiguous(false))
}

// keep notes one draw.
func (r *recordedPrediction) keep(posterior *draws.Draws, k int, t *tape, values Values, points *[][]float64) error {
	if k > 0 && !slices.Equal(r.takes, t.takes) {
		return errors.New("it draws other numbers at one draw of the posterior than at another")
	}
	r.Given, r.takes = nil, t.takes
	var row []float64
	for _, s := range posterior.Sites() {
		if r.used[s.Name] {
			place := draws.Site{Name: s.Name, Shape: s.Shape, Offset: len(row), Size: s.Size}
			r.Given, row = append(r.Given, place), append(row, posterior.Row(0, k)[s.Offset:s.Offset+s.Size]...)
		}
	}
	r.values = append(r.values, row)
	*points = append(*points, slices.Concat(row, t.values))
	drawn := map[string][]float64{}
	for name, v := range values {
		var err error
		if drawn[name], err = torch.ToSlice[float64](v); err != nil {
			return err
		}
	}
	r.drawn = append(r.drawn, drawn)
	return nil
}

// compile makes the plan: x is what is given, and then what is drawn.
func (r *recordedPrediction) compile(batch infer.Batch, points [][]float64,
	run func(infer.Batch, *torch.Source, Values) Values) error {
	d := len(points[0])
	source := native.Source{Dim: d, Batch: batch}
	source.Evaluate = func(x torch.Tensor, batch map[string]torch.Tensor) (values, grads []torch.Tensor,
		aux map[string]torch.Tensor, err error) {
		err = torch.NoGrad(func() error {
			given := Values{}
			at := 0
			next := func(shape []int) torch.Tensor {
				from := at
				at += count(shape)
				return torch.Of(x.T().MustNarrow(0, int64(from), int64(at-from), false)).Reshape(shape...)
			}
			for _, s := range r.Given {
				given[s.Name] = next(s.Shape)
			}
			aux = map[string]torch.Tensor{}
			asked := 0
			source := torch.NewSource(0, 0)
			source.Ask(func(kind string, shape []int, _ gotch.DType, params ...torch.Tensor) (torch.Tensor, error) {
				shape = shapeOfDraw(kind, shape, params)
				for i, t := range params {
					if kind != "multinomial" {
						t = t.Expand(shape...)
					} else if i == 1 {
						t = t.Expand(shape...)
					} else {
						t = t.Expand(shape[:len(shape)-1]...)
					}
					t = doubles(t)
					torch.Detach(t) // a distribution may have a scope of its own
					aux[r.Parameter(asked, i)] = t
				}
				asked++
				return next(shape), nil
			})
			maps.Copy(aux, run(batch, source, given))
			values, grads = []torch.Tensor{zeros(nil)}, []torch.Tensor{zeros([]int{d})}
			return nil
		})
		return values, grads, aux, err
	}
	code, _, err := native.Compile(source, points, native.Options{Tier: native.VM, ValueFree: true, GradientFree: true})
	if err != nil {
		return err
	}
	if r.Plan, err = code.Portable(); err == nil {
		r.data, err = numbersOf(batch)
	}
	for _, t := range r.takes {
		r.Take(t.kind, t.size)
	}
	return err
}

// shapeOfDraw is the shape of what is drawn.
func shapeOfDraw(kind string, shape []int, params []torch.Tensor) []int {
	if len(params) == 0 {
		return shape
	}
	shape = params[0].Shape()
	if kind == "multinomial" {
		b := params[1].Shape()
		last := b[len(b)-1]
		return append(broadcast(shape, b[:len(b)-1]), last)
	}
	for _, t := range params[1:] {
		shape = broadcast(shape, t.Shape())
	}
	return shape
}

// numbersOf are the numbers of a batch.
func numbersOf(batch infer.Batch) (map[string][]float64, error) {
	out := map[string][]float64{}
	err := torch.Do(func(*torch.Scope) (err error) {
		for name, t := range batch {
			if out[name], err = torch.ToSlice[float64](doubles(t)); err != nil {
				return fmt.Errorf("batch tensor %q: %w", name, err)
			}
		}
		return nil
	})
	return out, err
}

// compare compares the numbers of what is written with those of the model, from the same streams.
func (r *recordedPrediction) compare(out *portable.Prediction, names []string) error {
	q, err := out.At(r.Rows, 3)
	if err != nil {
		return err
	}
	data := map[string][]float64{}
	inputs, _ := q.Inputs()
	for _, s := range inputs {
		if slices.Contains(names, s.Name) {
			data[s.Name] = r.data[s.Name]
		}
	}
	sites := q.Outputs()
	return q.Draw(len(r.values), func(k int, to []float64) { copy(to, r.values[k]) }, 0, 0, data,
		func(from, some int, got [][]float64) error {
			for k := range some {
				for i, s := range sites {
					if want := r.drawn[from+k][s.Name]; !near(got[i][k*s.Size:(k+1)*s.Size], want) {
						return fmt.Errorf("site %q of %d rows: %w", s.Name, r.Rows, errDiffers)
					}
				}
			}
			return nil
		})
}
