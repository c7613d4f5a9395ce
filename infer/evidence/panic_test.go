package evidence_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/evidence"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/stretchr/testify/require"
)

// A model that panics at some evaluation is an error of the run, whichever goroutine evaluates it.
func TestPanicsOfTheModel(t *testing.T) {
	seen := 0
	for name, method := range map[string]infer.Method{"SMC": evidence.SMC{}, "AIS": evidence.AIS{}, "TI": evidence.TI{}} {
		for _, after := range []int{1, 5, 20} {
			var calls atomic.Int64
			stop := int(-1)
			p, err := ppl.Compile(func(c *ppl.Ctx) {
				if int(calls.Add(1)) == stop {
					panic("boom")
				}
				a := c.Sample("a", dist.Normal(0, 10))
				c.Observe("y", dist.Normal(a, 1), 2)
			}, nil)
			require.NoError(t, err)
			stop = int(calls.Load()) + after
			_, err = infer.Sample(context.Background(), p, method, infer.Options{Chains: 2, Draws: 20, Native: native.Eager,
				Observer: infer.Silent})
			require.ErrorContains(t, err, "boom", "%s after %d", name, after)
			seen++
		}
	}
	t.Logf("seen: %d panics of a model on other goroutines are errors", seen)
}
