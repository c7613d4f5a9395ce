//go:build slow

package main

import (
	"context"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/stretchr/testify/require"
)

// The quick form of the command: five targets that every method is right on, with five seeds, in closed form or with
// long runs; three that are lost with a start and a metric that do not fit, for the default. One that no diagonal
// metric can sample is seen to fail.
func TestRobust(t *testing.T) {
	s := settings{methods: methods, seeds: 5, limit: 400000, options: infer.Options{Chains: 4, Warmup: 1000, Draws: 1000}}
	for _, name := range []string{"bounds", "separation", "multinomial50", "centred", "bimodal"} {
		t.Run(name, func(t *testing.T) {
			chosen, err := choose(targets, name)
			require.NoError(t, err)
			rows, err := s.measure(context.Background(), chosen[0])
			require.NoError(t, err)
			require.Len(t, rows, len(methods))
			for _, r := range rows {
				require.Empty(t, r.why, r.Method)
			}
		})
	}
	for _, name := range []string{"lkj20", "arma11", "columns25"} {
		t.Run(name, func(t *testing.T) {
			chosen, err := choose(targets, name)
			require.NoError(t, err)
			one := s
			one.methods, err = chooseMethods("default")
			require.NoError(t, err)
			rows, err := one.measure(context.Background(), chosen[0])
			require.NoError(t, err)
			require.Empty(t, rows[0].why)
		})
	}
	t.Run("rotated100_1e8", func(t *testing.T) {
		chosen, err := choose(targets, "rotated100_1e8")
		require.NoError(t, err)
		one := s
		one.methods, err = chooseMethods("diagonal")
		require.NoError(t, err)
		rows, err := one.measure(context.Background(), chosen[0])
		require.NoError(t, err)
		require.Equal(t, 5, rows[0].Failed)
	})
}
