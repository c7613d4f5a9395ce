package method

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
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
func CheckMemory(what string, bytes float64, allowed int64, field, instead string) error {
	if allowed == 0 {
		allowed = DefaultMemory
	}
	if bytes <= float64(allowed) {
		return nil
	}
	return &infer.MemoryError{What: what, Bytes: int64(min(bytes, 9e18)), Allowed: allowed, Field: field, Instead: instead}
}

// checkStreams makes sure that the point is sound and that there is a stream for each chain.
func checkStreams(name string, p infer.Params, chains int) error {
	if err := p.Check(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if chains != p.Chains() {
		return fmt.Errorf("%s: %d random streams for %d chains: there must be one for each: %w",
			name, chains, p.Chains(), infer.ErrConfig)
	}
	return nil
}
