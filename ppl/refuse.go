package ppl

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// What Compile finds out by running a model again: mistakes that one run does not show.

// checkSigns runs the model where all unconstrained values are positive and where all are negative, and refuses a
// parameter that has to be positive and is not at one of them: a scale of Normal(0, 1), say. Such a model runs at half
// of the points. Variables on the real line are then moved far away, in four directions: a scale that is 3 more than
// such a variable is negative there. Far away a scale that is legal may round to 0 or overflow, so that only a negative
// number counts.
func (p *Program) checkSigns(m Model, batch infer.Batch) error {
	try := func(c *compiler) error {
		wrong, err := tryParameters(c, m, batch)
		if wrong == nil || !ofSign(wrong) || c.far && !negative(wrong) {
			return nil
		}
		return err
	}
	const remedy = "it is computed from latent variables whose sign is free: give them a positive support " +
		"(dist.HalfNormal, dist.Exponential, dist.LogNormal), or take Exp of them"
	far := false
	for _, sign := range []float64{1, -1} {
		c := &compiler{sign: sign, program: p}
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
		c.far, c.program = true, p
		if err := try(c); err != nil {
			return fmt.Errorf("%w (where latent variables on the real line are about 1000 away from 0); %s", err, remedy)
		}
	}
	return nil
}

// tryParameters runs the model where a compiler has its latent variables. wrong is the parameter that is not allowed
// there, nil where all are. The compiler does not keep the run, which is large where a chain is long.
func tryParameters(c *compiler, m Model, batch infer.Batch) (wrong *dist.Error, err error) {
	keeps := c.program.keeps
	c.program = newProgram(m, batch)
	c.program.keeps = keeps
	c.recorder = newRecorder()
	defer func() { c.program, c.recorder = nil, recorder{} }()
	err = torch.Do(func(*torch.Scope) error {
		run(m, &execution{batch: batch}, []Handler{c})
		return nil
	})
	var site *SiteError
	if errors.As(err, &site) && errors.As(site.Cause, &wrong) || errors.As(err, &wrong) {
		return wrong, err
	}
	return nil, err
}

// checkGeneric refuses a parameter that is allowed at 0 of unconstrained space and at none of several other points: the
// Cholesky factor of a correlation in the place of a covariance, which is the identity at 0, is one. A parameter that
// is out of its domain at some points alone may be meant.
func (p *Program) checkGeneric(m Model, batch infer.Batch) error {
	var last error
	for attempt := 1; attempt <= 3; attempt++ {
		wrong, err := tryParameters(&compiler{attempt: attempt, program: p}, m, batch)
		if wrong == nil {
			return nil
		}
		last = err
	}
	return fmt.Errorf("%w (it is so wherever the latent variables are, but at 0 of unconstrained space)", last)
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
	flat, err := torch.FromSlice(make([]float64, 2*p.layout.Dim()), 2, p.layout.Dim())
	if err != nil {
		return err
	}
	defer torch.Free(flat)
	_, err = torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
		logp, _ := p.density()(infer.Params{Layout: p.layout, Flat: in[0]}, p.batch)
		return []torch.Tensor{logp}, nil
	}, []torch.Tensor{flat}, nil)
	var e *torch.Error
	if errors.As(err, &e) && strings.Contains(e.Message, "cannot be read inside a vmapped function") {
		return fmt.Errorf("the model reads the value of a tensor that depends on a latent variable (Item, Values, "+
			"torch.ToSlice), as a branch on it would: use torch.Where and other tensor operations, "+
			"or ppl's Density for Go code: %w", err)
	}
	return nil // what else fails there is found by the method that needs it
}

// checkRepeats evaluates the model at a point, twice, and refuses one whose log density differs: it draws random
// numbers of its own, or keeps state, and what samplers see of it would be frozen, or no density. The result is the
// log posterior there; not ok where it is not finite.
func (p *Program) checkRepeats(point infer.Params) (value float64, ok bool, err error) {
	value, ok = p.valueOf(point, p.batch)
	if again, okAgain := p.valueOf(point, p.batch); ok && okAgain && agree(value, again, 0) {
		return value, ok, nil
	}
	first := map[string][]siteTerm{} // a model may declare its variables in the order of a map
	if p.termsAt(point, func(_ *Site, t siteTerm) { first[t.name] = append(first[t.name], t) }) != nil {
		return value, ok, nil // what does not run there is found by who needs it
	}
	found := false
	fail := func(s *Site, format string, args ...any) {
		found = true
		s.fail(format+" at the same values of the latent variables: %s", append(args, ownRandomness)...)
	}
	err = p.termsAt(point, func(s *Site, t siteTerm) {
		if len(first[t.name]) == 0 {
			fail(s, "it is not there in one run of the model, and is in the next")
		}
		before := first[t.name][0]
		if first[t.name] = first[t.name][1:]; len(first[t.name]) == 0 {
			delete(first, t.name)
		}
		switch {
		case !slices.Equal(before.shape, t.shape):
			fail(s, "its log density has shape %v in one run of the model and %v in the next", before.shape, t.shape)
		case !agree(before.sum, t.sum, t.size):
			fail(s, "its log density is %v in one run of the model and %v in the next", before.sum, t.sum)
		}
	})
	switch {
	case found:
		return value, ok, err
	case err != nil:
		return value, ok, fmt.Errorf("the model runs, and does not run again at the same values of the latent variables: "+
			"%s: %w", ownRandomness, err)
	case len(first) > 0:
		return value, ok, &SiteError{Site: slices.Min(slices.Collect(maps.Keys(first))), Message: "it is there in one run " +
			"of the model, and is not in the next at the same values of the latent variables: " + ownRandomness}
	}
	return value, ok, nil
}

// ownRandomness is what is wrong with a model that differs between runs, and what to do.
const ownRandomness = "a model must not draw random numbers of its own (math/rand, libtorch's) or keep state from " +
	"run to run: draw with c.Sample, or make the numbers once, outside of the model, and give them in the batch"

// agree says whether two log densities, of terms whose absolute values add up to size, are equal to the rounding of
// sums that are taken in another order.
func agree(a, b, size float64) bool {
	return a == b || math.IsNaN(a) && math.IsNaN(b) ||
		!math.IsInf(a-b, 0) && math.Abs(a-b) <= 1e-9*(1+max(math.Abs(a), size))
}

// siteTerm is the log density of a site: its sum, and the sum of absolute values.
type siteTerm struct {
	name      string
	shape     []int
	sum, size float64
}

// termsAt evaluates the model at a point and shows the terms of its log density in their order.
func (p *Program) termsAt(point infer.Params, visit func(s *Site, t siteTerm)) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	short := false // what is calculated in float32 may differ in its roundings, in the order of a map for one
	for _, t := range p.batch {
		short = short || slices.Contains([]gotch.DType{gotch.Float, gotch.Half, gotch.BFloat16}, t.T().DType())
	}
	return torch.Do(func(*torch.Scope) error {
		execute(p.model, p.batch, nil, &evaluator{program: p, point: point, collect: func(s *Site) {
			if !s.counts() {
				return
			}
			logp := s.elementwise()
			t := siteTerm{name: s.Name, shape: shapeOf(logp)}
			t.sum = torch.Of(logp.T().MustSum(gotch.Double, false)).Item()
			t.size = torch.Of(logp.Abs().T().MustSum(gotch.Double, false)).Item()
			t.size *= 100 // tensors from elsewhere than the batch may be of float32 too
			if short || logp.T().DType() != gotch.Double {
				t.size = 1e3*t.size + 1e4 // of terms that cancel
			}
			visit(s, t)
		}})
		return nil
	})
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
