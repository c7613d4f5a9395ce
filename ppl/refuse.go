package ppl

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// What Compile finds out by running a model again: mistakes that one run does not show.

// checkSigns runs the model where all unconstrained values are positive and where all are negative, and refuses a
// parameter that has to be positive and is not at one of them: a scale of Normal(0, 1), say. Such a model runs at half
// of the points. Variables on the real line are then moved far away, in four directions: a scale that is 3 more than
// such a variable is negative there. Far away a scale that is legal may round to 0 or overflow, so that only a negative
// number counts.
func (p *Program) checkSigns(m Model, batch infer.Batch) error {
	try := func(c *compiler) error {
		c.program = &Program{
			model:   m,
			batch:   batch,
			latents: map[string]*latent{},
			memos:   map[string]*memo{},
			values:  map[string]int64{},
			given:   map[string]bool{},
		}
		c.recorder = newRecorder()
		err := torch.Do(func(*torch.Scope) error {
			run(m, &execution{batch: batch}, []Handler{c})
			return nil
		})
		var site *SiteError
		var wrong *dist.Error
		found := errors.As(err, &site) && errors.As(site.Cause, &wrong) || errors.As(err, &wrong)
		if !found || !ofSign(wrong) || c.far && !negative(wrong) {
			return nil
		}
		return err
	}
	const remedy = "it is computed from latent variables whose sign is free: give them a positive support " +
		"(dist.HalfNormal, dist.Exponential, dist.LogNormal), or take Exp of them"
	far := false
	for _, sign := range []float64{1, -1} {
		c := &compiler{sign: sign}
		if err := try(c); err != nil {
			err = fmt.Errorf("%w (where all latent variables are %s on unconstrained space)", err,
				map[float64]string{1: "positive", -1: "negative"}[sign])
			switch {
			case adviceOn(err) != "": // it is in the error
				return err
			case isZero(err):
				return fmt.Errorf("%w; it rounds to 0 there, as Exp of less than -745 does, or is cut off at 0: add a small "+
					"number to it, or make the exponent smaller", err)
			}
			return fmt.Errorf("%w; %s", err, remedy)
		}
		far = far || c.onLine && c.computed
	}
	if !far {
		return nil
	}
	for _, c := range []*compiler{{sign: 1}, {sign: -1}, {sign: 1, turns: true}, {sign: -1, turns: true}} {
		c.far = true
		if err := try(c); err != nil {
			return fmt.Errorf("%w (where latent variables on the real line are about 1000 away from 0); %s", err, remedy)
		}
	}
	return nil
}

// wrongNumber is the number that an error of a parameter names.
func wrongNumber(err error) (v float64, ok bool) {
	var site *SiteError
	var wrong *dist.Error
	if !errors.As(err, &wrong) && !(errors.As(err, &site) && errors.As(site.Cause, &wrong)) {
		return 0, false
	}
	value, _, _ := strings.Cut(wrong.Value, " ")
	v, err = strconv.ParseFloat(value, 64)
	return v, err == nil
}

func isZero(err error) bool {
	v, ok := wrongNumber(err)
	return ok && v == 0
}

// adviceOn is what to do about a parameter that is not finite, with what joins it to the error; empty for other errors.
func adviceOn(err error) string {
	switch v, ok := wrongNumber(err); {
	case !ok:
		return ""
	case math.IsNaN(v):
		return "; what computes it is not defined there: Log or Sqrt of a negative number, 0/0 or Inf − Inf. Its " +
			"argument needs a positive support (dist.HalfNormal, dist.Exponential, dist.LogNormal); or take Exp of it, or " +
			"keep it in range with Max or torch.Where"
	case math.IsInf(v, 1):
		return "; it overflows there: Exp of more than 709, or a division by 0. Make the exponent smaller (covariates of " +
			"unit scale, a variable of unit scale times a small number), or take Softplus plus a small number for Exp"
	case math.IsInf(v, -1):
		return "; Log of 0, a division by 0 or an overflow makes it: its argument must stay above 0, by a positive " +
			"support or Max"
	}
	return ""
}

// farAway is how far from 0 variables on the real line are moved.
const farAway = 1000

// negative says whether an error is of a parameter that is a negative number, and not by the rounding of large ones.
func negative(e *dist.Error) bool {
	value, _, _ := strings.Cut(e.Value, " ")
	v, err := strconv.ParseFloat(value, 64)
	return err == nil && v < -1e-3 && !math.IsInf(v, 0)
}

// isComputed says whether a parameter of a distribution that may have to be positive depends on latent variables.
func isComputed(d dist.Distribution) bool {
	with, ok := d.(dist.Parameterised)
	if !ok || len(with.Params()) == 0 { // it does not tell
		return true
	}
	for name, v := range with.Params() {
		if name == "loc" || name == "logits" {
			continue
		}
		t, ok := v.(torch.Tensor)
		if !ok {
			continue
		}
		if _, number := t.Number(); !number && t.T().MustRequiresGrad() {
			return true
		}
	}
	return false
}

// ofSign says whether a parameter's sign is wrong, and not only by the error of a solver.
func ofSign(e *dist.Error) bool {
	if strings.Contains(e.Allowed, "0 but for the error") {
		return false
	}
	return strings.Contains(e.Allowed, "than 0") || strings.Contains(e.Allowed, "at least 0")
}

// checkReads runs the model once as the samplers do, for several chains at once, and refuses one that reads the value
// of a tensor, to branch on it or to go on in Go: it stands for all chains.
func (p *Program) checkReads() error {
	flat, err := torch.FromSlice(make([]float64, 2*p.layout.Dim()), 2, int64(p.layout.Dim()))
	if err != nil {
		return err
	}
	defer torch.Free(flat)
	_, err = torch.Vmap(func(in []*ts.Tensor) ([]*ts.Tensor, error) {
		logp, _ := p.density()(infer.Params{Layout: p.layout, Flat: in[0]}, p.batch)
		return []*ts.Tensor{logp.T()}, nil
	}, []*ts.Tensor{flat}, nil)
	var e *torch.Error
	if errors.As(err, &e) && strings.Contains(e.Message, "cannot be read inside a vmapped function") {
		return fmt.Errorf("the model reads the value of a tensor that depends on a latent variable (Item, Values, "+
			"torch.ToSlice), as a branch on it would: use torch.Where and other tensor operations, "+
			"or ppl's Density for Go code: %w", err)
	}
	return nil // what else fails there is found by the method that needs it
}

// withTypes adds to an error of libtorch about types which data are not float64, and what to do.
func withTypes(err error, batch infer.Batch) error {
	var e *torch.Error
	if !errors.As(err, &e) {
		var site *SiteError
		if !errors.As(err, &site) || !errors.As(site.Cause, &e) {
			return err
		}
	}
	if !strings.Contains(e.Message, "dtype") && !strings.Contains(e.Message, "scalar type") {
		return err
	}
	var odd []string
	for name, t := range batch {
		if t == nil {
			continue
		}
		if d, err := torch.DTypeOfTensor(t); err == nil && d != gotch.Double && d != gotch.Bool {
			odd = append(odd, fmt.Sprintf("%q is %v", name, d))
		}
	}
	if len(odd) == 0 {
		return err
	}
	sort.Strings(odd)
	return fmt.Errorf("%w; of the batch, %s: convert what is multiplied with parameters to float64 once, "+
		"torch.To(x, torch.CPU, gotch.Double)", err, strings.Join(odd, " and "))
}
