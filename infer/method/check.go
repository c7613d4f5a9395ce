package method

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// CheckSchedule returns the schedule, or the default when it is nil, after a look at its value at the first update: it
// must be finite and not below least; strict excludes least itself. A nil schedule without a default is an error.
func CheckSchedule(method, field string, s, def infer.Schedule, least float64, strict bool) (infer.Schedule, error) {
	if s == nil {
		s = def
	}
	if s == nil {
		return nil, &infer.FieldError{Type: method, Field: field, Value: "missing",
			Allowed: "a schedule is required, for example infer.Constant(0.01)"}
	}
	return s, s.Check(method, field, 0, least, strict)
}

// CheckValue is the check of one value of a schedule or field.
func CheckValue(method, field string, v, least float64, strict bool) error {
	return infer.Constant(v).Check(method, field, 0, least, strict)
}

// DefaultMemory is what a Memory field of 0 allows, in bytes.
const DefaultMemory = 1 << 30

// CheckMemory refuses a number of bytes, a float64 because it may exceed an int64, above what is allowed; 0 allows
// DefaultMemory. what names what takes them, field the field that allows more, instead what to use instead.
func CheckMemory(what string, bytes float64, allowed int, field, instead string) error {
	if allowed == 0 {
		allowed = DefaultMemory
	}
	if bytes <= float64(allowed) {
		return nil
	}
	return &infer.MemoryError{What: what, Bytes: int(min(bytes, 9e18)), Allowed: allowed, Field: field,
		Instead: instead}
}

// Epsilon is the distance from 1 to the next number of a tensor's type, float64 or float32.
func Epsilon(x torch.Tensor) float64 {
	if x.T().DType() == gotch.Float {
		return 0x1p-23
	}
	return 0x1p-52
}

// CheckStreams checks what a transform of the given name starts with: a sound point, and a stream for each chain.
func CheckStreams(name string, p infer.Params, streams torch.Streams) error {
	chains := len(streams.Chains)
	if err := p.Check(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if chains != p.Chains() {
		return fmt.Errorf("%s: %d random streams for %d chains: there must be one for each: %w",
			name, chains, p.Chains(), infer.ErrConfig)
	}
	return nil
}

// Checks looks at the fields of a configuration, fills in defaults and keeps the first error, which [Build] returns.
type Checks struct {
	Name string // of the method, for example "sgmcmc.SGHMC"

	err error
}

// LR checks a step size, which must be above 0. advice says how to choose one that is missing.
func (c *Checks) LR(lr infer.Schedule, advice string) {
	if lr == nil {
		c.Require(false, "LR", "missing", "a schedule is required, for example infer.Constant(0.01): "+advice)
		return
	}
	c.fail(lr.Check(c.Name, "LR", 0, 0, true))
}

// Schedule puts a constant in the place of a schedule that is nil, and looks at the first value: it must be at least 0;
// strict excludes 0.
func (c *Checks) Schedule(field string, s *infer.Schedule, def float64, strict bool) {
	if *s == nil {
		*s = infer.Constant(def)
	}
	c.fail(s.Check(c.Name, field, 0, 0, strict))
}

// Value puts a default in the place of a number that is 0. It must be finite and at least 0; strict excludes 0.
func (c *Checks) Value(field string, v *float64, def float64, strict bool) {
	if *v == 0 {
		*v = def
	}
	c.fail(CheckValue(c.Name, field, *v, 0, strict))
}

// Fraction checks a number that must be at least 0 and below 1; 0 stands for the default.
func (c *Checks) Fraction(field string, v *float64, def float64) {
	if *v == 0 {
		*v = def
	}
	c.Require(*v >= 0 && *v < 1, field, *v, "it must be at least 0 and less than 1")
}

// Require makes the error of a field unless ok.
func (c *Checks) Require(ok bool, field string, value any, allowed string) {
	if !ok {
		c.fail(&infer.FieldError{Type: c.Name, Field: field, Value: value, Allowed: allowed})
	}
}

// Err is the first error.
func (c *Checks) Err() error { return c.err }

func (c *Checks) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// CheckDraws checks what a [infer.Sampler] is asked for.
func CheckDraws(method string, n int, streams *torch.Streams) error {
	if n < 1 {
		return fmt.Errorf("%s: Sample of %d draws: there must be at least 1: %w", method, n, infer.ErrConfig)
	}
	if streams == nil || len(streams.Chains) == 0 {
		return fmt.Errorf("%s: Sample without random streams: torch.NewStreams(seed, 1) makes them: %w", method,
			infer.ErrConfig)
	}
	return nil
}
