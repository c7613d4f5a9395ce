package lower

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// Who waits gets the error, or the panic, which must not end the process.
func TestBeside(t *testing.T) {
	failed := errors.New("failed")
	require.NoError(t, beside(func() error { return nil })())
	require.ErrorIs(t, beside(func() error { return failed })(), failed)
	wait := beside(func() error { panic("a defect") })
	require.PanicsWithValue(t, "a defect", func() { _ = wait() })
}
