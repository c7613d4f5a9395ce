package hmc

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
)

// guard makes a panic of the user's code an error, as the kernel does for the density: a run does not lose its draws to it.
func guard(in string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &kernel.PanicError{In: in, Value: v, Stack: string(debug.Stack())}
		}
	}()
	return f()
}

// failed is an error of the package: what the kernel calls wrong is an error of package infer too.
func failed(err error) error {
	for of, as := range map[error]error{kernel.ErrConfig: infer.ErrConfig, kernel.ErrNonFinite: infer.ErrNonFinite, kernel.ErrSnapshot: infer.ErrCheckpoint} {
		if errors.Is(err, of) && !errors.Is(err, as) {
			err = also{error: err, as: as}
		}
	}
	return fmt.Errorf("hmc.Sample: %w", err)
}

// also is an error that is another one as well.
type also struct {
	error
	as error
}

func (a also) Unwrap() []error { return []error{a.error, a.as} }
