package loo

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
)

func goldenModels(t *testing.T) []Model {
	t.Helper()
	var models []Model
	for k, name := range []string{"narrow", "medium", "wide"} {
		ll := goldenLogLik(lcg(11+k), []float64{1, 1.5, 3}[k])
		r, err := LOO(ll, nil)
		require.NoError(t, err)
		models = append(models, r.Model(name))
	}
	return models
}

// loo_compare, stacking_weights (reltol 1e-15) and pseudobma_weights of loo 2.5.1; the bootstrap of the latter with
// 200,000 samples. Efficiencies do not matter here: the tail has a fifth of the draws either way.
func TestCompareGolden(t *testing.T) {
	c, err := Compare(goldenModels(t), Options{Samples: 20000})
	require.NoError(t, err)
	for rank, want := range []Comparison{
		{Name: "medium", ELPD: -23.13226524107521, SE: 3.3795131739161675, P: 0.19179542524445825,
			Stacking: 0.90081571378027114, PseudoBMA: 0.93476036283735808, PseudoBMAPlus: 0.72163771480379124},
		{Name: "wide", ELPD: -25.992255494998098, SE: 0.82887029098949228, P: 0.011193965204290723,
			Diff:   -2.8599902539228843,
			SEDiff: 2.5506948331375407, Stacking: 0.099184286105099884, PseudoBMA: 0.053533088860063575,
			PseudoBMAPlus: 0.15331142627325892},
		{Name: "narrow", ELPD: -27.512407071863628, SE: 7.7151733884889593, P: 0.82162542045337394,
			Diff:   -4.3801418307884123,
			SEDiff: 4.3356817590655679, Stacking: 1.1462899578412274e-10, PseudoBMA: 0.01170654830257825,
			PseudoBMAPlus: 0.12505085892294981},
	} {
		got := c[rank]
		require.Equal(t, want.Name, got.Name)
		require.Equal(t, rank, got.Rank)
		for _, v := range []struct {
			name                 string
			got, want, tolerance float64
		}{
			{"elpd", got.ELPD, want.ELPD, 1e-11}, {"se", got.SE, want.SE, 1e-11}, {"p", got.P, want.P, 1e-11},
			{"diff", got.Diff, want.Diff, 1e-10},
			{"se_diff", got.SEDiff, want.SEDiff, 1e-10}, {"stacking", got.Stacking, want.Stacking, 1e-7},
			{"bma", got.PseudoBMA, want.PseudoBMA, 1e-11},
			// the sd of a weight is at most 1/2
			{"bma+", got.PseudoBMAPlus, want.PseudoBMAPlus, 4 * 0.5 / math.Sqrt(20000)},
		} {
			near(t, want.Name+" "+v.name, v.got, v.want, v.tolerance)
		}
	}
	lines := strings.Split(c.String(), "\n")
	require.Equal(t, []string{"rank", "elpd", "p", "elpd_diff", "stacking", "bma+", "se", "se_diff"},
		strings.Fields(lines[0]))
	require.Equal(t, []string{"medium", "0", "-23.13", "0.19", "0.00", "0.90"}, strings.Fields(lines[1])[:6])
}

// Two models that are each right about half of the observations: with densities a on one half and b on the other, the
// best weights are equal by symmetry. If only model 0 has a fraction q of the observations right and densities are 1
// and 0, the best weight is q.
func TestStackingClosedForm(t *testing.T) {
	lpd := [][]float64{make([]float64, 100), make([]float64, 100)}
	for i := range 100 {
		lpd[0][i], lpd[1][i] = 0, -800
		if i >= 73 {
			lpd[0][i], lpd[1][i] = -800, 0
		}
	}
	w, err := stackingWeights(lpd)
	require.NoError(t, err)
	require.InDelta(t, 0.73, w[0], 1e-8)

	// Densities 2 and 1 on q = 0.6, 1 and 3 on the rest: the slope q/(2w + (1-w)) - 2 (1-q)/(w + 3(1-w)) is zero at
	// q (3 - 2w) = 2 (1-q) (1 + w).
	for i := range 100 {
		lpd[0][i], lpd[1][i] = math.Log(2), 0
		if i >= 60 {
			lpd[0][i], lpd[1][i] = 0, math.Log(3)
		}
	}
	w, err = stackingWeights(lpd)
	require.NoError(t, err)
	require.InDelta(t, (3*0.6-2*0.4)/(2*0.4+2*0.6), w[0], 1e-8)
}

// Twins share their weight, a dominated model gets none, one model gets all, and order does not matter.
func TestStackingProperties(t *testing.T) {
	rng := source(9)
	row := func(shift float64) []float64 {
		x := make([]float64, 200)
		for i := range x {
			x[i] = shift + rng.NormFloat64()
		}
		return x
	}
	a, b := row(0), row(0)
	below := make([]float64, len(a))
	for i := range a {
		below[i] = min(a[i], b[i]) - 0.1
	}
	w, err := stackingWeights([][]float64{a, b})
	require.NoError(t, err)
	v, err := stackingWeights([][]float64{b, a, a, below})
	require.NoError(t, err)
	require.InDelta(t, w[1], v[0], 1e-6)
	require.InDelta(t, w[0]/2, v[1], 1e-6)
	require.InDelta(t, v[1], v[2], 1e-9)
	require.InDelta(t, 0, v[3], 1e-9)

	w, err = stackingWeights([][]float64{a})
	require.NoError(t, err)
	require.InDelta(t, 1, w[0], 1e-12)

	// Many models, by the optimality conditions: slopes are at most 1, and 1 where the weight is positive.
	var many [][]float64
	for k := range 12 {
		many = append(many, row(-0.1*float64(k)))
	}
	w, err = stackingWeights(many)
	require.NoError(t, err)
	s := newStacking(many)
	require.Less(t, s.gap(w), 1e-9)
	for k, v := range w {
		require.GreaterOrEqual(t, v, 0.0)
		if v > 1e-4 {
			require.InDelta(t, 1, s.slope[k], 1e-7)
		}
	}
}

// Random problems, mild to extreme: the certificate holds for all.
func TestStackingHard(t *testing.T) {
	rng := source(15)
	for range 100 {
		k, n, scale := 2+rng.IntN(6), 1+rng.IntN(60), math.Pow(10, 4*rng.Float64()-1)
		lpd := filled(k, n, func(int, int) float64 { return scale * rng.NormFloat64() })
		w, err := stackingWeights(lpd)
		require.NoError(t, err, "%d models, %d observations, scale %v", k, n, scale)
		sum := 0.0
		for _, v := range w {
			require.GreaterOrEqual(t, v, 0.0)
			sum += v
		}
		require.InDelta(t, 1, sum, 1e-12)
	}
}

func TestCompareErrors(t *testing.T) {
	_, err := Compare(nil, Options{})
	require.ErrorIs(t, err, draws.ErrSize)
	_, err = Compare([]Model{{Name: "a", Pointwise: []float64{1, 2}}, {Name: "b", Pointwise: []float64{1}}}, Options{})
	require.EqualError(t, err, "diag/loo: compare: model 1 has 1 observations, want 2 as model 0")
	_, err = Compare([]Model{{Name: "a", Pointwise: []float64{1, nan}}}, Options{})
	require.ErrorIs(t, err, diag.ErrNotFinite)
	_, err = Compare([]Model{{Name: "a", Pointwise: []float64{1, 2}}}, Options{Samples: -1})
	require.ErrorIs(t, err, draws.ErrRange)
	_, err = stackingWeights(nil)
	require.ErrorIs(t, err, draws.ErrSize)
}
