package formula_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/internal/formula"
	"github.com/stretchr/testify/require"
)

// A million rows and ten thousand levels take seconds, and memory that grows with the numbers of the result.
func TestLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("a million rows")
	}
	const n = 1_000_000
	rng := rand.New(rand.NewPCG(1, 2))
	x, y := make([]float64, n), make([]float64, n)
	g, arm := make([]string, n), make([]string, n)
	for i := range n {
		x[i], y[i] = rng.Float64(), rng.NormFloat64()
		g[i] = fmt.Sprintf("clinic %d", rng.IntN(10000))
		arm[i] = []string{"a", "b", "c"}[rng.IntN(3)]
	}
	rows := table(t, data.Column{Name: "x", Numbers: x}, data.Column{Name: "y", Numbers: y},
		data.Column{Name: "g", Labels: g}, data.Column{Name: "arm", Labels: arm})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	d := fit(t, "y ~ log1p(x)*arm + s(x) + (1 + x | g) + (1 | arm:g)", rows, formula.Options{})
	fitted := time.Since(start)
	r := numbers(t, d, rows)
	runtime.ReadMemStats(&after)
	t.Logf("fit %v, rows %v, %d MB allocated by both", fitted.Round(time.Millisecond),
		(time.Since(start) - fitted).Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)>>20)
	require.Less(t, time.Since(start), time.Minute) // about 4 seconds of one core
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(3<<30))
	require.Len(t, d.Groups()[0].Levels, 10000)
	require.Len(t, r.Smooths[0], 8*n)
	require.Equal(t, math.Log1p(x[n-1]), r.X[(n-1)*len(d.Names())])
}
