package ppl

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// findIndices finds the data of float64 and float32 that the model uses as indices: with a fraction added to them it
// refuses them. Runs check those of their own batches, since evaluations do not.
func (p *Program) findIndices(point infer.Params) error {
	// What may be an index, with a fraction added: each its own, since equal ones cancel in a difference.
	all := maps.Clone(p.batch)
	moved := map[string]torch.Tensor{}
	defer func() {
		for _, t := range moved {
			torch.Free(t)
		}
	}()
	for i, name := range slices.Sorted(maps.Keys(p.batch)) {
		t := p.batch[name]
		dtype, err := torch.DTypeOfTensor(t)
		if err != nil || dtype != gotch.Double && dtype != gotch.Float {
			continue
		}
		if n, err := torch.Numel(t); err != nil || n > largestLook {
			continue
		}
		values, err := torch.ToSlice[float64](t)
		if err != nil || slices.ContainsFunc(values, func(v float64) bool { // NaN may be missing, and replaced
			return v < 0 || v != math.Trunc(v) && !math.IsNaN(v)
		}) {
			continue
		}
		_, fraction := math.Modf(0.6180339887 * float64(i+1))
		to, err := t.T().AddScalar(ts.FloatScalar(0.1+0.8*fraction), false)
		if err != nil {
			return err
		}
		moved[name], all[name] = torch.Of(to), torch.Of(to)
	}
	// Mostly there is no index, which one run tells. A model that refuses its own data computes an index, and refuses
	// it whatever is added to the data.
	if len(moved) == 0 || p.runChecked(point, all) == nil || notWhole(p.runChecked(point, p.batch)) {
		return nil
	}
	for name, to := range moved {
		trial := maps.Clone(p.batch)
		trial[name] = to
		if notWhole(p.runChecked(point, trial)) {
			if p.indices == nil {
				p.indices = map[string]bool{}
			}
			p.indices[name] = true
		}
	}
	return nil
}

// runChecked runs the model at a point as no evaluation does: its indices are checked.
func (p *Program) runChecked(point infer.Params, batch infer.Batch) (err error) {
	defer func() {
		if r := recover(); r != nil { // of a function of the user's that looked at the values
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return torch.Do(func(*torch.Scope) error {
		e := &evaluator{program: p, point: point, collect: func(*Site) {}}
		execute(p.model, batch, nil, struct{ Handler }{e}) // in an evaluation nothing is checked
		return nil
	})
}

// notWhole says whether an error is that of an index which is not a whole number.
func notWhole(err error) bool {
	var wrong *torch.Error
	return errors.As(err, &wrong) && strings.Contains(wrong.Message, "is not a whole number")
}

// checkIndices makes sure that data that are used as an index are whole numbers, where reading them is cheap. Where
// they are not, the model may still replace them, or calculate a whole number: it runs once to tell.
func (p *Program) checkIndices(b infer.Batch) error {
	wrong := map[string]error{}
	mended := maps.Clone(b) // with whole numbers in their place
	defer func() {
		for name := range wrong {
			torch.Free(mended[name])
		}
	}()
	for _, name := range slices.Sorted(maps.Keys(p.indices)) {
		t := b[name]
		device, err := torch.DeviceOf(t)
		if err != nil {
			return fmt.Errorf("batch tensor %q: %w", name, err)
		}
		if device != torch.CPU {
			continue
		}
		values, err := torch.ToSlice[float64](t)
		if err != nil {
			return fmt.Errorf("batch tensor %q: %w", name, err)
		}
		i := slices.IndexFunc(values, isFraction)
		if i < 0 {
			continue
		}
		shape := shapeOf(t)
		fault := fmt.Errorf("batch tensor %q has %v at element %v of shape %v, and the model uses it as an index, which "+
			"must be a whole number: %w", name, values[i], indexOf(i, shape), shape, infer.ErrConfig)
		for j, v := range values {
			if isFraction(v) {
				values[j] = 0
			}
		}
		to, err := torch.FromSlice(values, append([]int{}, shape...)...)
		if err != nil {
			return err
		}
		wrong[name], mended[name] = fault, to
	}
	if len(wrong) == 0 {
		return nil
	}
	point, err := p.scattered(0.3)
	if err != nil {
		return err
	}
	defer torch.Free(point.Flat)
	if !notWhole(p.runChecked(point, b)) {
		return nil
	}
	names := slices.Sorted(maps.Keys(wrong))
	for _, name := range names { // it may refuse one of several
		trial := maps.Clone(mended)
		trial[name] = b[name]
		if len(names) == 1 || notWhole(p.runChecked(point, trial)) {
			return wrong[name]
		}
	}
	return wrong[names[0]]
}

// isFraction says whether a number is none of the whole numbers.
func isFraction(v float64) bool { return v != math.Trunc(v) || math.IsInf(v, 0) }
