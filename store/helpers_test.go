package store

import (
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// placedSites places named shapes one after the other.
func placedSites(t testing.TB, named ...any) []draws.Site {
	t.Helper()
	var l layout
	for i := 0; i < len(named); i += 2 {
		l.Sites = append(l.Sites, layoutSite{Name: named[i].(string), Shape: named[i+1].([]int)})
	}
	return l.Placed()
}

// noSync spares a test that writes many files the waiting for the disk.
func noSync(t testing.TB) {
	t.Helper()
	old := atomicfile.Sync
	atomicfile.Sync = func(*os.File) error { return nil }
	t.Cleanup(func() { atomicfile.Sync = old })
}

// difficult are numbers that formats lose.
var difficult = []float64{
	math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0, math.SmallestNonzeroFloat64,
	-math.SmallestNonzeroFloat64, 0x1p-1030,
	math.MaxFloat64, -math.MaxFloat64, 0.1, 1. / 3, math.Pi, 1e21, 1e6, 123456789, 1 << 60, -1, math.Nextafter(1, 2),
}

// filled makes draws with the lengths, and Difficult numbers everywhere but in the statistics of whole numbers.
func filled(t testing.TB, sites []draws.Site, stats []string, whole bool, lengths ...int) *draws.Draws {
	t.Helper()
	d, err := draws.New(sites, stats, len(lengths))
	require.NoError(t, err)
	x, s, next := make([]float64, d.Dim()), make([]float64, len(stats)), 0
	number := func() float64 {
		next++
		return difficult[next%len(difficult)]
	}
	for c, n := range lengths {
		for i := range n {
			for k := range x {
				x[k] = number()
			}
			for k, name := range stats {
				s[k] = number()
				if whole && statKind(statVariables([]string{name}, anyName)[0], nil) != float {
					s[k] = float64((i + c) % 2)
				}
			}
			require.NoError(t, d.AppendChain(c, x, s))
		}
	}
	return d
}

// identical compares layouts and numbers, bit by bit except that any NaN is a NaN.
func identical(t testing.TB, want, got *draws.Draws) {
	t.Helper()
	require.NotNil(t, got)
	require.Equal(t, want.Stats(), got.Stats())
	require.True(t, sameSites(want.Sites(), got.Sites()), "sites are %v, want %v",
		got.Sites(), want.Sites())
	require.Equal(t, want.Chains(), got.Chains())
	for c := range want.Chains() {
		require.Equal(t, want.Len(c), got.Len(c), "length of chain %d", c)
		for i := range want.Len(c) {
			sameNumbers(t, want.Row(c, i), got.Row(c, i))
		}
		for _, name := range want.Stats() {
			a, err := want.Stat(name, c)
			require.NoError(t, err)
			b, err := got.Stat(name, c)
			require.NoError(t, err)
			sameNumbers(t, a, b)
		}
	}
}

func sameNumbers(t testing.TB, want, got []float64) {
	t.Helper()
	require.Equal(t, len(want), len(got))
	for k := range want {
		if math.Float64bits(want[k]) != math.Float64bits(got[k]) && !(math.IsNaN(want[k]) && math.IsNaN(got[k])) {
			assert.Failf(t, "numbers differ", "at %d: %v, want %v", k, got[k], want[k])
			return
		}
	}
}

// nutsStats are the statistics of NUTS.
var nutsStats = []string{"lp", "accept", "step_size", "tree_depth", "n_leapfrog", "divergent", "energy"}
