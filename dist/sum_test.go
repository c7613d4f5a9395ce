package dist_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// sumCase is a family as a function of one tensor of parameters, and values of every shape that broadcasts with it.
type sumCase struct {
	name   string
	of     func(p *ts.Tensor) dist.Distribution
	params []float64
	values []float64
}

func sumCases() []sumCase {
	real, positive, unit := []float64{-3.5, 0, 0.25, 40}, []float64{1e-8, 0.5, 1, 30}, []float64{1e-6, 0.3, 0.5, 0.999}
	self := func(f func(p any) dist.Distribution) func(p *ts.Tensor) dist.Distribution {
		return func(p *ts.Tensor) dist.Distribution { return f(p) }
	}
	scale := []float64{0.3, 1, 2, 100}
	return []sumCase{
		{"Normal, loc", self(func(p any) dist.Distribution { return dist.Normal(p, 2) }), real, real},
		{"Normal, scale", self(func(p any) dist.Distribution { return dist.Normal(1, p) }), scale, real},
		{
			"Normal, huge scale",
			self(func(p any) dist.Distribution { return dist.Normal(p, 1e150) }),
			real,
			[]float64{1e150, -3e150, 0, 5e149},
		},
		{"HalfNormal", self(func(p any) dist.Distribution { return dist.HalfNormal(p) }), scale, positive},
		{"Cauchy", self(func(p any) dist.Distribution { return dist.Cauchy(p, 3) }), real, []float64{-3.5, 1e200, 1e-12, 4}},
		{
			"HalfCauchy",
			self(func(p any) dist.Distribution { return dist.HalfCauchy(p) }),
			scale,
			[]float64{0, 1e-200, 2, 1e200},
		},
		{"StudentT", self(func(p any) dist.Distribution { return dist.StudentT(4, 1, p) }), scale, real},
		{"StudentT, loc", self(func(p any) dist.Distribution { return dist.StudentT(0.5, p, 2) }), real, real},
		{"Exponential", self(func(p any) dist.Distribution { return dist.Exponential(p) }), scale, positive},
		{
			"Bernoulli",
			self(func(p any) dist.Distribution { return dist.BernoulliLogits(p) }),
			[]float64{-1000, -1, 2, 1000},
			[]float64{0, 1, 1, 0},
		},
		{
			"Poisson, small",
			self(func(p any) dist.Distribution { return dist.PoissonLog(p) }),
			[]float64{-30, 0, 1, 5},
			[]float64{0, 0, 3, 1000},
		},
		{
			"Poisson, large",
			self(func(p any) dist.Distribution { return dist.PoissonLog(p) }),
			[]float64{math.Log(1e9), 0, 1, -300},
			[]float64{1e9 + 1e4, 0, 3, 0},
		},
		{
			"Independent",
			func(p *ts.Tensor) dist.Distribution { return dist.Independent(dist.Normal(p, 2).Expand(4), 1) },
			real,
			real,
		},
		{"numbers", func(*ts.Tensor) dist.Distribution { return dist.Normal(1, 2).Expand(4) }, scale, real},
		{"Gamma", func(*ts.Tensor) dist.Distribution { return dist.Gamma(2.5, 3).Expand(4) }, scale, positive},
		{"Gamma, concentration 1", func(*ts.Tensor) dist.Distribution { return dist.Gamma(1, 3) }, scale, positive},
		{"Beta", func(*ts.Tensor) dist.Distribution { return dist.Beta(2.5, 0.5).Expand(4) }, scale, unit},
		{"Beta, flat on one side", func(*ts.Tensor) dist.Distribution { return dist.Beta(1, 3) }, scale, unit},
		{
			"Exponential, a number",
			func(*ts.Tensor) dist.Distribution { return dist.Exponential(2).Expand(4) },
			scale,
			positive,
		},
		{"HalfCauchy, a number", func(*ts.Tensor) dist.Distribution { return dist.HalfCauchy(2).Expand(4) }, scale, positive},
		{
			"ImproperUniform",
			func(*ts.Tensor) dist.Distribution { return dist.ImproperUniform(support.Real, []int{4}, nil) },
			scale,
			real,
		},
	}
}

// sums are the short and the long sum of the log density as functions of [params, values]. alone is what Known says.
func (c sumCase) sums(t *testing.T, alone bool) (short, long func(both torch.Tensor) torch.Tensor) {
	split := func(both *ts.Tensor) (dist.Distribution, *ts.Tensor) {
		d, x := c.of(both.MustSelect(0, 0, false)), both.MustSelect(0, 1, false)
		if d.Support().Discrete() { // there is no gradient in a count
			x = x.MustDetach(false)
		}
		return d, x
	}
	short = func(both torch.Tensor) torch.Tensor {
		d, x := split(both.T())
		terms, constant, ok := d.(dist.Summer).SumLogProb(torch.Of(x), dist.Known{Inside: true, Alone: alone})
		if !ok {
			t.Errorf("%s has no short sum", c.name)
		}
		sum := both.T().MustSum(gotch.Double, false).MustMulScalar(ts.FloatScalar(0), false)
		for _, term := range terms {
			sum = sum.MustAdd(term.Tensor.T().MustMulScalar(ts.FloatScalar(term.Coeff), false), false)
		}
		return torch.Of(sum.MustAddScalar(ts.FloatScalar(constant), false))
	}
	long = func(both torch.Tensor) torch.Tensor {
		d, x := split(both.T())
		return torch.Of(d.LogProb(torch.Of(x)).
			T().
			MustSum(gotch.Double, false).
			MustAdd(both.T().MustSum(gotch.Double, false).MustMulScalar(ts.FloatScalar(0), false), false))
	}
	return short, long
}

// The short sum and its gradients, in the parameters and in the value, are those of the sum of LogProb.
func TestSumLogProbIsTheSum(t *testing.T) {
	for _, c := range sumCases() {
		t.Run(c.name, func(t *testing.T) {
			short, long := c.sums(t, false)
			both, err := torch.FromSlice(append(append([]float64{}, c.params...), c.values...), 2, 4)
			require.NoError(t, err)
			have, haveGrad, err := torch.ValueAndGrad(short, both)
			require.NoError(t, err)
			want, wantGrad, err := torch.ValueAndGrad(long, both)
			require.NoError(t, err)
			requireClose(t, want.T(), have.T(), 1e-11)
			requireClose(t, wantGrad.T(), haveGrad.T(), 1e-9)
			one, _ := c.sums(t, true)
			have, haveGrad, err = torch.ValueAndGrad(one, both)
			require.NoError(t, err)
			requireClose(t, want.T(), have.T(), 1e-11)
			requireClose(t, wantGrad.T(), haveGrad.T(), 1e-9)

			// Three rows at once are the rows one by one.
			rows, err := torch.FromSlice(
				append(
					append(
						append(append([]float64{}, c.params...), c.values...),
						append(append([]float64{}, c.params...), c.values...)...),
					append(append([]float64{}, c.params...), c.values...)...),
				3,
				2,
				4,
			)
			require.NoError(t, err)
			many, _, err := torch.VmapValueAndGrad(short, rows)
			require.NoError(t, err)
			requireClose(t, want.T().MustExpand([]int64{3}, true, false), many.T(), 1e-11)
		})
	}
}

// The sum that a log posterior has is that of LogProb to 1e-12 for large shapes too, where plain formulas cancel.
func TestSumLogProbOfLargeShapes(t *testing.T) {
	scoped(t, func() {
		for _, n := range []float64{9, 11, 1e4, 1e8} {
			for _, d := range []dist.Distribution{dist.Beta(n, n), dist.Beta(2, n), dist.Gamma(n, n), dist.StudentT(n, 0, 1)} {
				x := scalarRead(d.Mean().T())[0] + 0.3*math.Sqrt(scalarRead(d.Variance().T())[0])
				want := d.LogProb(torch.Of(x)).Item()
				terms, got, ok := d.(dist.Summer).SumLogProb(torch.Scalar(x), dist.Known{Inside: true})
				if !ok { // the sum is that of LogProb
					continue
				}
				for _, term := range terms {
					got += term.Coeff * term.Tensor.Item()
				}
				require.InEpsilon(t, want, got, 1e-12, "%s of %v", d.Name(), n)
			}
		}
	})
}

// requireClose compares elements relative to the greatest of them; infinities must be equal.
func requireClose(t *testing.T, want, have *ts.Tensor, tolerance float64) {
	t.Helper()
	w, err := torch.ToSlice[float64](torch.Of(want))
	require.NoError(t, err)
	h, err := torch.ToSlice[float64](torch.Of(have))
	require.NoError(t, err)
	require.Len(t, h, len(w))
	for i := range w {
		if w[i] != h[i] && !(math.Abs(w[i]-h[i]) <= tolerance*math.Max(1, math.Abs(w[i]))) {
			require.Fail(t, fmt.Sprintf("element %d is %v, expected %v", i, h[i], w[i]))
		}
	}
}

// A value, a parameter or a batch that is smaller than the others counts as often as it is broadcast.
func TestSumLogProbBroadcasts(t *testing.T) {
	scalar := torch.Scalar(0.7)
	vector := torch.New([]float64{1, 2, 3})
	column := torch.New([]float64{0.5, 2}, 2, 1)
	counts := torch.New([]float64{1, 0, 3})
	large := torch.New([]float64{1, 0, 1e6})
	for name, c := range map[string]struct {
		d dist.Distribution
		x *ts.Tensor
	}{
		"scalar value, vector loc":        {dist.Normal(vector, 2), scalar.T()},
		"vector value, scalar loc":        {dist.Normal(scalar, 2), vector.T()},
		"column scale":                    {dist.Normal(0, column), vector.T()},
		"column loc":                      {dist.Normal(column, vector), scalar.T()},
		"numbers and a batch":             {dist.Normal(0, 2).Expand(5), scalar.T()},
		"numbers and a larger value":      {dist.Normal(0, 2).Expand(3), column.T()},
		"exponential":                     {dist.Exponential(column), vector.T()},
		"half-Cauchy":                     {dist.HalfCauchy(column), vector.T()},
		"gamma":                           {dist.Gamma(2, 3).Expand(2, 3), vector.T()},
		"beta":                            {dist.Beta(2, 3).Expand(2, 3), scalar.T()},
		"logits of a column":              {dist.BernoulliLogits(column), counts.T().MustGt(ts.FloatScalar(0), false)},
		"one logit":                       {dist.BernoulliLogits(scalar), counts.T().MustGt(ts.FloatScalar(0), false)},
		"small counts, a column of rates": {dist.PoissonLog(column), counts.T()},
		"one count, rates":                {dist.PoissonLog(vector), torch.Scalar(2).T()},
		"one large count, rates":          {dist.PoissonLog(vector), torch.Scalar(1e5).T()},
		"large counts, one rate":          {dist.PoissonLog(scalar), large.T()},
		"large counts, a column of rates": {dist.PoissonLog(column), large.T()},
		"counts as integers":              {dist.PoissonLog(scalar), counts.T().MustTotype(gotch.Int64, false)},
		"negative counts are impossible":  {dist.PoissonLog(scalar), torch.New([]float64{1, -1}).T()},
		"fractions are impossible":        {dist.PoissonLog(scalar), torch.New([]float64{1, 2.5}).T()},
		"large fractions are impossible":  {dist.PoissonLog(scalar), torch.New([]float64{1e5, 2.5}).T()},
		"a coin has two sides":            {dist.BernoulliLogits(scalar), torch.New([]float64{1, 2}).T()},
		"a rate of zero with counts of one": {dist.PoissonLog(torch.New([]float64{math.Inf(-1), 0})),
			torch.New([]float64{1, 1}).T()},
	} {
		var sums [2]float64
		for i, alone := range []bool{false, true} {
			terms, sum, ok := c.d.(dist.Summer).SumLogProb(torch.Of(c.x), dist.Known{Inside: true, Alone: alone})
			require.True(t, ok, name)
			for _, term := range terms {
				v, err := torch.Item(term.Tensor)
				require.NoError(t, err)
				sum += term.Coeff * v
			}
			sums[i] = sum
		}
		sum := sums[0]
		want, err := torch.Item(torch.Of(c.d.LogProb(torch.Of(c.x)).T().MustSum(gotch.Double, false)))
		require.NoError(t, err)
		if math.IsInf(want, -1) {
			require.False(t, sum > math.Inf(-1), "%s: %v", name, sum) // not a finite density: the point is refused
			continue
		}
		require.InEpsilon(t, want, sum, 1e-12, name)
		require.InEpsilon(t, want, sums[1], 1e-12, name)
	}
}

// Values that need not be inside are left to LogProb, which is minus infinity outside.
func TestSumLogProbLeavesTheOutsideToLogProb(t *testing.T) {
	for _, d := range []dist.Distribution{dist.HalfNormal(1), dist.HalfCauchy(1), dist.Exponential(1), dist.Gamma(1, 1),
		dist.Beta(1, 1)} {
		_, _, ok := d.(dist.Summer).SumLogProb(torch.Scalar(-1), dist.Known{})
		require.False(t, ok, d.Name())
	}
}

// What is kept of data is asked for under their own names.
func TestSumLogProbKeeps(t *testing.T) {
	kept := map[string]int{}
	known := dist.Known{
		Keep: func(_ torch.Tensor, name string, f func() []torch.Tensor) []torch.Tensor { kept[name]++; return f() },
	}
	x := torch.New([]float64{1, 0})
	for _, d := range []dist.Distribution{dist.Normal(0, x), dist.PoissonLog(x), dist.BernoulliLogits(x)} {
		_, _, ok := d.(dist.Summer).SumLogProb(x, known)
		require.True(t, ok)
	}
	require.Equal(t, map[string]int{"log": 1, "poisson": 1, "sign": 1}, kept)
}

// Whole numbers stored as integers are computed in double precision, also with parameters that are numbers.
func TestIntegerValuesAreExact(t *testing.T) {
	x := torch.New([]int{100_000_001})
	small := torch.New([]int{3})
	for _, c := range []struct {
		d    dist.Distribution
		x    *ts.Tensor
		want float64
	}{
		{dist.Normal(1e8, 1), x.T(), -0.5 - 0.5*math.Log(2*math.Pi)},
		{dist.Laplace(1e8, 1), x.T(), -1 - math.Ln2},
		{dist.Cauchy(1e8, 1), x.T(), -math.Log(2 * math.Pi)},
		{dist.Exponential(0.1), small.T(), math.Log(0.1) - 0.3},
		{dist.Truncated(dist.Exponential(0.1), 1, 7), small.T(),
			math.Log(0.1) - 0.3 - math.Log(math.Exp(-0.1)-math.Exp(-0.7))},
	} {
		have, err := torch.Item(torch.Of(c.d.LogProb(torch.Of(c.x)).T().MustSum(gotch.Double, false)))
		require.NoError(t, err)
		require.InEpsilon(t, c.want, have, 1e-13, c.d.Name())
	}
}
