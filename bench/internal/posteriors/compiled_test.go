package posteriors

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/internal/ccompiler"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Compiled gradients are those of eager evaluation at 100 points, some of them far out: values and gradients to 1e-10
// of the largest, or to sixteen times what eager evaluation changes by where the point moves by eight roundings. Beyond
// 1e-4 rounding decides.
func TestCompiledDensities(t *testing.T) {
	tiers := []native.Tier{native.VM}
	if _, err := ccompiler.Find(); err == nil {
		tiers = append(tiers, native.C)
	}
	for _, f := range formulas() {
		t.Run(fmt.Sprintf("%s/%v%v", f.name, f.data["N"], f.data["T"]), func(t *testing.T) {
			p, err := made(t, f.name, f.data)
			require.NoError(t, err)
			program, err := ppl.Compile(p.Model, p.Batch)
			require.NoError(t, err)
			target, layout := program.Target(), program.Layout()
			gradient, err := infer.NewGradient(target)
			require.NoError(t, err)
			start, err := infer.NewParams(layout, each(layout.Dim(), func(i int) float64 { return 0.1 * float64(i%5) }))
			require.NoError(t, err)
			var compiled []*native.Func
			for _, tier := range tiers {
				f, report, err := infer.Compile(target, start, p.Batch, native.Options{Tier: tier, CacheDir: t.TempDir()})
				require.NoError(t, err)
				require.Equal(t, tier, report.Tier)
				compiled = append(compiled, f)
			}
			far := 10.0
			if f.name == "gp_pois_regr-gp_pois_regr" {
				far = 3 // at longer scales the covariance is singular but for its rounding, which decides its factor
			}
			rng := rand.New(rand.NewPCG(3, 4))
			for k := range 100 {
				scale := []float64{0.5, 0.5, 3, far}[k%4]
				weight := []float64{1, 0, 0.3}[k%3]
				x := each(layout.Dim(), func(int) float64 { return scale * rng.NormFloat64() })
				value, grad := eagerAt(t, gradient, layout, p.Batch, x, weight)
				slack, slackGrad := 0.0, 0.0
				for range 4 {
					moved := each(len(x), func(i int) float64 { return x[i] * (1 + 8*0x1p-52*float64(1-2*rng.IntN(2))) })
					v, g := eagerAt(t, gradient, layout, p.Batch, moved, weight)
					slack = math.Max(slack, finite(16*math.Abs(v-value)))
					for i := range g {
						slackGrad = math.Max(slackGrad, finite(16*math.Abs(g[i]-grad[i])))
					}
				}
				largest := 1.0
				for _, g := range grad {
					largest = math.Max(largest, finite(math.Abs(g)))
				}
				for i, f := range compiled {
					got := make([]float64, len(x))
					v, err := f.Eval(x, weight, got)
					require.NoError(t, err)
					where := fmt.Sprintf("%s, point %d", tiers[i], k)
					assert.True(t, agree(v, value, math.Max(1, math.Abs(value)), slack), "%s: value %v, eager %v", where, v, value)
					for j := range got {
						assert.True(t, agree(got[j], grad[j], largest, slackGrad), "%s: gradient, number %d: %v, eager %v", where, j,
							got[j], grad[j])
					}
				}
			}
		})
	}
}

// finite is x, or 0 where it is not finite.
func finite(x float64) float64 {
	if x-x != 0 {
		return 0
	}
	return x
}

// agree says whether two numbers are equal but for rounding, or the same where one is not finite.
func agree(got, want, scale, slack float64) bool {
	if got-got != 0 || want-want != 0 {
		return got == want || got != got && want != want
	}
	return math.Abs(got-want) <= math.Max(1e-10*scale, slack) || slack > 1e-4*scale
}

func eagerAt(t *testing.T, g infer.Gradient, l *infer.Layout, b infer.Batch, x []float64,
	weight float64) (value float64, grad []float64) {
	t.Helper()
	at, err := infer.NewParams(l, x)
	require.NoError(t, err)
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		e, err := g.ValueAndGrad(at, b, weight)
		if err != nil {
			return err
		}
		value = e.Values[0]
		grad, err = torch.ToSlice[float64](e.Grad)
		return err
	}))
	return value, grad
}
