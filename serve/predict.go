package serve

import (
	"fmt"
	"slices"
	"sync"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer/native/portable"
)

// predictors are predictions by number of rows. It is safe for concurrent use.
type predictors struct {
	all sync.Map // by number of rows
}

// mostRowsReady bounds the numbers of rows whose predictors are kept.
const mostRowsReady = 64

// manyDraws is how many draws are evaluated at once at most.
const manyDraws = 256

// Posterior are the draws that were exported with the model, nil for none.
func (m *Model) Posterior() *draws.Draws { return m.file.Draws }

// Design is what makes the data of a prediction from rows, nil where the rows are the data and for regressions; see
// [Model.RowsOf].
func (m *Model) Design() *data.Design { return m.design }

// predictor is the prediction for so many rows.
func (m *Model) predictor(rows int) (*portable.Predictor, error) {
	if m.file.Predictive == nil {
		return nil, fmt.Errorf("the model was exported without predictions: %s", m.file.NoPrediction)
	}
	if q, ok := m.ready.all.Load(rows); ok {
		return q.(*portable.Predictor), nil
	}
	q, err := m.file.Predictive.At(rows, manyDraws)
	if err == nil && rows <= mostRowsReady {
		m.ready.all.Store(rows, q)
	}
	return q, err
}

// Predict is what the model predicts for so many rows, at each draw: of the sites that are named, all where none is.
// The data of the rows are those that [Model.PredictInputs] names, in row-major order. The numbers are those of
// ppl.Predictive with the seed, to rounding. A nil posterior is [Model.Posterior].
func (m *Model) Predict(posterior *draws.Draws, rows int, data map[string][]float64, seed uint64,
	sites ...string) (out *draws.Draws, err error) {
	defer wrap("Predict", &err)
	if posterior == nil {
		posterior = m.file.Draws
	}
	if posterior == nil || posterior.Total() == 0 {
		return nil, draws.ErrNoDraws
	}
	q, err := m.predictor(rows)
	if err != nil {
		return nil, err
	}
	wanted, places, err := selected(q.Outputs(), sites)
	if err != nil {
		return nil, err
	}
	given, err := m.givenBy(posterior)
	if err != nil {
		return nil, err
	}
	if out, err = draws.New(wanted, nil, posterior.Chains()); err != nil {
		return nil, err
	}
	chain, first := 0, 0
	row := make([]float64, 0, out.Dim())
	err = q.Draw(posterior.Total(), given, seed, 0, data, func(from, some int, all [][]float64) error {
		for k := range some {
			for from+k-first >= posterior.Len(chain) {
				first += posterior.Len(chain)
				chain++
			}
			row = row[:0]
			for j, i := range places {
				row = append(row, all[i][k*wanted[j].Size:(k+1)*wanted[j].Size]...)
			}
			if err := out.AppendChain(chain, row, nil); err != nil {
				return err
			}
		}
		return nil
	})
	out.SetSpace(draws.Named)
	return out, err
}

// selected are the sites of some names, one after the other, and their places among all.
func selected(all []draws.Site, names []string) (sites []draws.Site, places []int, err error) {
	if len(names) == 0 {
		for _, s := range all {
			names = append(names, s.Name)
		}
	}
	offset := 0
	for _, name := range names {
		i := slices.IndexFunc(all, func(s draws.Site) bool { return s.Name == name })
		if i < 0 {
			var have []string
			for _, s := range all {
				have = append(have, s.Name)
			}
			return nil, nil, fmt.Errorf("the model predicts no %q; it has %q", name, have)
		}
		s := all[i]
		s.Offset = offset
		offset += s.Size
		sites, places = append(sites, s), append(places, i)
	}
	return sites, places, nil
}

// givenBy copies what a prediction reads of draw k, all chains one after the other.
func (m *Model) givenBy(posterior *draws.Draws) (func(k int, to []float64), error) {
	if posterior.Space() == draws.Unconstrained {
		return nil, fmt.Errorf("the draws are on unconstrained space: give the named ones: %w", draws.ErrLayout)
	}
	var from []draws.Site
	for _, s := range m.file.Predictive.Given {
		have, err := posterior.Site(s.Name)
		if err == nil && !slices.Equal(have.Shape, s.Shape) {
			err = fmt.Errorf("the draws have %q of shape %v, and the model has shape %v: %w", s.Name, have.Shape, s.Shape,
				draws.ErrLayout)
		}
		if err != nil {
			return nil, err
		}
		from = append(from, have)
	}
	return func(k int, to []float64) {
		chain := 0
		for ; k >= posterior.Len(chain); chain++ {
			k -= posterior.Len(chain)
		}
		row := posterior.Row(chain, k)
		for _, s := range from {
			copy(to, row[s.Offset:s.Offset+s.Size])
			to = to[s.Size:]
		}
	}, nil
}

// PredictInputs are the data that a prediction for so many rows reads. Those that are not known have to be given;
// others are those of the file where they are not.
func (m *Model) PredictInputs(rows int) (sites []draws.Site, known []bool, err error) {
	defer wrap("PredictInputs", &err)
	q, err := m.predictor(rows)
	if err != nil {
		return nil, nil, err
	}
	sites, known = q.Inputs()
	return sites, known, nil
}

// Rows is the number of rows of the data of the model, 1 where it has none.
func (m *Model) Rows() int {
	if m.file.Predictive == nil {
		return 1
	}
	return m.file.Predictive.Rows
}

// FreeRows says whether a prediction may have any number of rows.
func (m *Model) FreeRows() bool { return m.file.Predictive != nil && m.file.Predictive.Free }
