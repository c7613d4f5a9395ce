package main

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/examples/internal/shown"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/stretchr/testify/require"
)

func TestTutorialShowsWhatIsPrinted(t *testing.T) {
	var printed strings.Builder
	require.NoError(t, table(context.Background(), &printed))
	shown.Printed(t, "../../docs/tutorials/7-coming-from.md", printed.String())
}

// exact are the posterior means of alpha, beta and sigma. The sum of x is 0, so that given sigma both coefficients are
// normal and independent, and can be integrated out; what is left is a sum over sigma.
func exact() [3]float64 {
	var xx, xy, sy, yy float64
	for i, x := range xs {
		xx, xy, sy, yy = xx+x*x, xy+x*ys[i], sy+ys[i], yy+ys[i]*ys[i]
	}
	n := float64(len(xs))
	all, sums := 0.0, [3]float64{}
	for i := range 20000 {
		s := 0.001 * (float64(i) + 0.5)
		pa, pb := 0.01+n/(s*s), 0.01+xx/(s*s) // precisions of alpha and beta
		ma, mb := sy/(s*s)/pa, xy/(s*s)/pb
		w := math.Exp(-s - n*math.Log(s) - yy/(2*s*s) + (ma*ma*pa+mb*mb*pb)/2 - (math.Log(pa)+math.Log(pb))/2)
		all += w
		for j, v := range []float64{ma, mb, s} {
			sums[j] += w * v
		}
	}
	for j := range sums {
		sums[j] /= all
	}
	return sums
}

// NUTS and the loop have the exact means, within four standard errors.
func TestMeans(t *testing.T) {
	data, err := batch()
	require.NoError(t, err)
	program, err := ppl.Compile(line, data)
	require.NoError(t, err)
	sampled, err := stan(context.Background(), program)
	require.NoError(t, err)
	looped, err := posteriors(data)
	require.NoError(t, err)
	want := exact()
	for _, d := range []*draws.Draws{sampled, looped} {
		summary, err := diag.Summary(d, diag.SummaryOptions{Sites: []string{"alpha", "beta", "sigma"}})
		require.NoError(t, err)
		for j, row := range summary.Rows {
			require.InDelta(t, want[j], row.Mean, 4*row.MCSEMean, row.Name)
		}
	}
}

// The hand-written log posterior is that of the model: their values differ by the same number at all points. The model
// has the Jacobian apart.
func TestSameDensity(t *testing.T) {
	data, err := batch()
	require.NoError(t, err)
	program, err := ppl.Compile(line, data)
	require.NoError(t, err)
	points := []float64{7, 0.5, 0.1, -3, 2, 1.5, 20, -1, -0.7}
	value := func(target infer.Target, layout *infer.Layout, jacobian float64) []float64 {
		p, err := infer.NewParams(layout, points)
		require.NoError(t, err)
		g, err := infer.NewGradient(target)
		require.NoError(t, err)
		e, err := g.ValueAndGrad(p, data, jacobian)
		require.NoError(t, err)
		return e.Values
	}
	layout, err := infer.NewLayout(infer.Shapes{"alpha": {}, "beta": {}, "log_sigma": {}})
	require.NoError(t, err)
	n := float64(len(ys))
	own := value(infer.Mean(logPosterior, int(n)), layout, 0)
	model := value(program.Target(), program.Layout(), 1/n)
	for k := range own {
		require.InDelta(t, model[k], own[k], 1e-12*math.Abs(model[k]))
	}
}
