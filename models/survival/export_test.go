package survival_test

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/stretchr/testify/require"
)

// The model predicts without libtorch what it predicts with it.
func TestExports(t *testing.T) {
	batch, followed := remission()
	for name, model := range map[string]ppl.Model{"weibull": weibull, "cox": cox(followed)} {
		t.Run(name, func(t *testing.T) {
			p, err := ppl.Compile(model, batch)
			require.NoError(t, err)
			infertest.Exports(t, p)
		})
	}
}
