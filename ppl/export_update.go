package ppl

import (
	"errors"
	"fmt"
	"slices"

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
	return &out, p.wholeLikelihood(&out, all[0], names, points)
}

// mostChecked is how many rows of the program's data the whole likelihood is compared on.
const mostChecked = 1000

// wholeLikelihood makes sure that what rows add to the log density is what their observed values have, no factor of the
// rows, weight or scale besides, and that each row adds by itself.
func (p *Program) wholeLikelihood(out *portable.Prediction, few recordedPrediction, names []string,
	points *draws.Draws) error {
	rows := p.batch[names[0]].Shape()[0]
	many := few.Rows + min(rows, mostChecked)
	var sums [2][]float64
	var densities [2][]float64
	for i, n := range []int{few.Rows, many} {
		err := torch.Do(func(*torch.Scope) error {
			batch := p.cycled(names, n)
			q, err := Compile(p.open, batch)
			if err != nil {
				return err
			}
			for k := range few.values {
				point := infer.Params{Layout: q.layout, Flat: torch.New(points.Row(0, k))}
				t, _ := q.parts(point, q.batch, infer.Weights{Prior: 1, Likelihood: 1})
				v, err := torch.Item(t)
				if err != nil {
					return err
				}
				densities[i] = append(densities[i], v)
			}
			data, err := numbersOf(batch)
			if err == nil {
				sums[i], err = few.sums(out, n, data)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	alone, err := few.alone(out, names)
	if err != nil {
		return err
	}
	for k := range few.values {
		want := densities[1][k] - densities[0][k]
		got, scale := sums[1][k]-sums[0][k], sums[1][k]
		if !near([]float64{got, scale}, []float64{want, scale}) {
			return fmt.Errorf("rows add %v to the log density, and their observed values have %v: a Factor, a Density or a "+
				"scale has the rest", want, got)
		}
		if !near([]float64{alone[k], scale}, []float64{sums[0][k], scale}) {
			return errors.New("rows depend on each other")
		}
	}
	return nil
}

// sums are the sums of the likelihood of n rows, at the draws that were recorded.
func (r *recordedPrediction) sums(out *portable.Prediction, n int, data map[string][]float64) ([]float64, error) {
	q, err := out.At(n, recordedDraws)
	if err != nil {
		return nil, err
	}
	sums := make([]float64, len(r.values))
	err = q.Draw(len(sums), func(k int, to []float64) { copy(to, r.values[k]) }, 0, 0, data,
		func(from, some int, all [][]float64) error {
			for _, values := range all {
				size := len(values) / some
				for k := range some {
					for _, v := range values[k*size : (k+1)*size] {
						sums[from+k] += v
					}
				}
			}
			return nil
		})
	return sums, err
}

// alone are the sums of the likelihoods of single rows, of those that were recorded.
func (r *recordedPrediction) alone(out *portable.Prediction, names []string) ([]float64, error) {
	total := make([]float64, len(r.values))
	for row := range r.Rows {
		data := map[string][]float64{}
		for name, v := range r.data {
			if data[name] = v; slices.Contains(names, name) {
				size := len(v) / r.Rows
				data[name] = v[row*size : (row+1)*size]
			}
		}
		some, err := r.sums(out, 1, data)
		if err != nil {
			return nil, err
		}
		for k, v := range some {
			total[k] += v
		}
	}
	return total, nil
}
