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

// ModelError is a mistake inside a log posterior: an unknown site or batch key. A model panics with it, and the function
// that called the model returns it.
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
