package ode_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kelvin-ppl/kelvin/ode"
	"github.com/kelvin-ppl/kelvin/torch"
)

// A right-hand side that panics, here for a parameter that it was not given, is an error, not the end of the process.
func TestPanics(t *testing.T) {
	broken := ode.New(func(_, y torch.Tensor, params []torch.Tensor) torch.Tensor { return y.Mul(params[3]) },
		ode.Options{})
	for range 2 {
		err := torch.Do(func(*torch.Scope) error {
			ode.Solve(broken, []float64{1}, 0, []float64{1}, 0.5)
			return nil
		})
		var own *ode.Error
		assert.True(t, errors.As(err, &own))
		assert.ErrorContains(t, err, "the right-hand side panicked: runtime error: index out of range [3] with length 1")
	}
}
