package ppl

import (
	"errors"
	"fmt"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native/portable"
	"github.com/kelvin-ppl/kelvin/torch"
)

// portableUpdates is what serve.Online needs beside the draws: these on unconstrained space, and the log likelihood of
// any number of new rows at a draw.
func (p *Program) portableUpdates(posterior *draws.Draws) (likelihood *portable.Prediction, points *draws.Draws,
	err error) {
	if points, err = p.UnconstrainDraws(posterior, p.batch); err == nil {
		likelihood, err = p.portableLikelihood(posterior, points)
	}
	return likelihood, points, err
}

// portableLikelihood is the log density of each observed value of any number of rows, at a draw.
func (p *Program) portableLikelihood(posterior, points *draws.Draws) (*portable.Prediction, error) {
	names, n := p.freeRows()
	if n == 0 {
		return nil, errors.New("the model observes no rows of its data")
	}
	posterior, err := firstDraws(posterior)
	if err != nil {
		return nil, err
	}
	var all []recordedPrediction
	var three []*portable.Prediction
	for k := range 4 {
		r, err := p.recordRows(posterior, names, rowsAtFirst-1+k, scores)
		if err != nil {
			return nil, err
		}
		if len(r.takes) > 0 {
			return nil, errors.New("a likelihood takes random numbers: it depends on variables that no draw has")
		}
		if all = append(all, r); k > 0 {
			three = append(three, &all[k].Prediction)
		}
	}
	out := all[0].Prediction
	if err := out.Complete(names, three); err != nil {
		return nil, err
	}
	if err := p.comparePrediction(&out, posterior, names, scores); err != nil {
		return nil, err
	}
	return &out, p.wholeLikelihood(all[0], all[1], names, points)
}

// wholeLikelihood makes sure that what a row adds to the log density is what its observed values have: no factor of the
// rows, weight or scale besides.
func (p *Program) wholeLikelihood(fewer, more recordedPrediction, names []string, points *draws.Draws) error {
	for k := range fewer.drawn {
		x := points.Row(0, k)
		var densities, sums [2]float64
		for i, r := range []recordedPrediction{fewer, more} {
			for _, values := range r.drawn[k] {
				for _, v := range values {
					sums[i] += v
				}
			}
			err := torch.Do(func(*torch.Scope) error {
				q, err := Compile(p.open, p.cycled(names, r.Rows))
				if err != nil {
					return err
				}
				point := infer.Params{Layout: q.layout, Flat: torch.New(x)}
				t, _ := q.parts(point, q.batch, infer.Weights{Prior: 1, Likelihood: 1})
				densities[i], err = torch.Item(t)
				return err
			})
			if err != nil {
				return err
			}
		}
		if got, want := sums[1]-sums[0], densities[1]-densities[0]; !near([]float64{got, sums[0]}, []float64{want, sums[0]}) {
			return fmt.Errorf("a row adds %v to the log density, and its observed values have %v: a Factor, a Density or a "+
				"scale has the rest", want, got)
		}
	}
	return nil
}
