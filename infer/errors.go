package infer

import (
	"errors"
	"fmt"
)

// Errors that can be asked for with errors.Is.
var (
	ErrConfig     = errors.New("invalid configuration")
	ErrLayout     = errors.New("layout does not fit")
	ErrNonFinite  = errors.New("not finite")
	ErrCheckpoint = errors.New("checkpoint cannot be used")
)

// ModelError is a mistake inside a log posterior: an unknown site or batch key. A model panics with it, and the
// function that called the model returns it.
type ModelError struct {
	Name string   // what was asked for
	What string   // "site" or "batch tensor"
	Have []string // what there is
}

// Error names what was asked for and what there is.
func (e *ModelError) Error() string {
	return fmt.Sprintf("the model asked for %s %q, which does not exist; there are: %q", e.What, e.Name, e.Have)
}

// RecoverAsError makes the panic of a model an error of the function that called it.
func (e *ModelError) RecoverAsError() {}

// FieldError is a field of a configuration with a value that is not allowed.
type FieldError struct {
	Type    string // of the configuration, for example "sgmcmc.SGLD"
	Field   string
	Value   any
	Allowed string // what would be right
}

// Error names the field, its value and what is allowed.
func (e *FieldError) Error() string {
	return fmt.Sprintf("%s: %s is %v: %s", e.Type, e.Field, e.Value, e.Allowed)
}

// Unwrap makes the error an ErrConfig.
func (e *FieldError) Unwrap() error { return ErrConfig }

// MemoryError is a request that does not fit into the memory that a configuration allows. It is made before anything of
// that size is allocated.
type MemoryError struct {
	What    string // what was asked for, with its shape
	Bytes   int    // what it takes
	Allowed int    // what is allowed
	Field   string // the field that allows it, for example "curvature.Options.Memory"; "" for a limit that is fixed
	Instead string // what to use instead
}

// Error says how much is needed, how much is allowed, and what to do.
func (e *MemoryError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("%s takes %s, more than %s: %s", e.What, bytesText(e.Bytes), bytesText(e.Allowed), e.Instead)
	}
	return fmt.Sprintf("%s takes %s, and %s allows %s: %s, or raise it",
		e.What, bytesText(e.Bytes), e.Field, bytesText(e.Allowed), e.Instead)
}

// Unwrap makes the error an ErrConfig.
func (e *MemoryError) Unwrap() error { return ErrConfig }

// bytesText writes a number of bytes in decimal units.
func bytesText(bytes int) string {
	v, unit := float64(bytes), "bytes"
	for _, u := range []string{"kB", "MB", "GB", "TB", "PB"} {
		if v < 1000 {
			break
		}
		v, unit = v/1000, u
	}
	if unit == "bytes" {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%.3g %s", v, unit)
}
