package nn_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// wide is a network whose weights are many: fan-in 50 and fan-out 200, then 200 and 10, and a convolution's.
func wide(t *testing.T) *nn.Network {
	return build(t, nn.Sequential{nn.Linear{Out: 200}, nn.ReLU{}, nn.Linear{Out: 100}}, 50)
}

// Each scheme's standard deviation and kurtosis (3 for normal, 9/5 for uniform numbers), by the formulas of the papers.
func TestSchemesHaveTheirMoments(t *testing.T) {
	n := wide(t)
	fans := map[string][2]float64{"0.weight": {50, 200}, "2.weight": {200, 100}}
	for name, c := range map[string]struct {
		scheme   nn.Scheme
		sd       func(in, out float64) float64
		kurtosis float64
		biased   bool
	}{
		"Kaiming normal": {nn.KaimingNormal(nn.GainReLU), func(in, _ float64) float64 { return math.Sqrt(2 / in) }, 3,
			false},
		"Kaiming uniform": {nn.KaimingUniform(nn.GainTanh), func(in, _ float64) float64 { return 5.0 / 3 / math.Sqrt(in) },
			1.8, false},
		"Xavier normal": {nn.XavierNormal(nn.GainSELU), func(in,
			out float64) float64 {
			return 0.75 * math.Sqrt(2/(in+out))
		}, 3, false},
		"Xavier uniform": {nn.XavierUniform(nn.GainLinear), func(in,
			out float64) float64 {
			return math.Sqrt(2 / (in + out))
		}, 1.8, false},
		"PyTorch":  {nn.PyTorch(), func(in, _ float64) float64 { return 1 / math.Sqrt(3*in) }, 1.8, true},
		"He prior": {nn.HePrior(0.05), func(in, _ float64) float64 { return math.Sqrt(2 / in) }, 3, true},
		"Laplace":  {nn.Same(nn.Laplace(0.3)), func(_, _ float64) float64 { return 0.3 * math.Sqrt2 }, 6, true},
		"normal":   {nn.Same(nn.Normal(0.2)), func(_, _ float64) float64 { return 0.2 }, 3, true},
	} {
		streams := torch.NewStreams(11, 2)
		p, err := nn.Init(n, c.scheme, &streams)
		require.NoError(t, err)
		require.Equal(t, 2, p.Chains())
		for site, fan := range fans {
			assertMoments(t, must(p.Site(site)), c.sd(fan[0], fan[1]), c.kurtosis, name+" "+site)
		}
		bias := must(p.Site("2.bias"))
		if !c.biased {
			assert.Equal(t, make([]float64, 200), bias, name)
			continue
		}
		sd := map[string]float64{"He prior": 0.05, "PyTorch": 1 / math.Sqrt(600)}[name]
		if sd == 0 {
			sd = c.sd(0, 0)
		}
		assertMoments(t, bias, sd, c.kurtosis, name+" bias")
	}
}

// PyTorch's bounds for LSTMs and embeddings.
func TestPyTorchStarts(t *testing.T) {
	n := build(t, nn.Sequential{nn.Embedding{Num: 3, Dim: 2}, nn.LSTM{Hidden: 16}, nn.Linear{Out: 4}}, 5)
	for _, s := range n.Sites() {
		want := nn.Uniform(0.25)
		if s.Layer == "0" {
			want = nn.Normal(1)
		}
		assert.Equal(t, want, s.Default, s.Name)
	}
	n = build(t, nn.Sequential{nn.Conv2d{Out: 2, Kernel: 5, Groups: 2}}, 8, 9, 9)
	for _, s := range n.Sites() {
		assert.Equal(t, nn.Uniform(0.1), s.Default, s.Name)
	}
}

// Uniform numbers stay within their bounds and come near both.
func TestUniformBounds(t *testing.T) {
	n := wide(t)
	streams := torch.NewStreams(2, 1)
	p, err := nn.Init(n, nn.Same(nn.Uniform(0.5)), &streams)
	require.NoError(t, err)
	low, high := 1.0, -1.0
	for _, v := range must(p.Values()) {
		low, high = math.Min(low, v), math.Max(high, v)
	}
	assert.InDelta(t, -0.5, low, 1e-3)
	assert.InDelta(t, 0.5, high, 1e-3)
	assert.True(t, low > -0.5 && high < 0.5)
}

// One chain gives [d]; chain k of many is what chain k alone would be; the streams move on.
func TestInitReadsTheChainsStreams(t *testing.T) {
	n := wide(t)
	scheme := nn.PerSite(map[string]nn.Law{"0.bias": nn.Laplace(1), "2.bias": nn.Constant(3)}, nn.KaimingUniform(1))
	streams := torch.NewStreams(4, 3)
	all, err := nn.Init(n, scheme, &streams)
	require.NoError(t, err)
	require.Equal(t, []int{3, n.NumParams()}, shape(all.Flat))
	require.Equal(t, gotch.Double, all.Flat.T().DType())
	for k := range 3 {
		alone := torch.Streams{Seed: 4, Chains: []uint64{uint64(k)}}
		one, err := nn.Init(n, scheme, &alone)
		require.NoError(t, err)
		require.Equal(t, []int{n.NumParams()}, shape(one.Flat))
		do(t, func() { assert.Equal(t, values(one.Flat), values(row(all, k).Flat)) })
		require.Equal(t, streams.Offset, alone.Offset)
	}
	again, err := nn.Init(n, scheme, &streams)
	require.NoError(t, err)
	assert.NotEqual(t, values(all.Flat), values(again.Flat))
	assert.Equal(t, []float64{3, 3, 3}, must(all.Site("2.bias"))[98:101])
}

func TestSchemeErrors(t *testing.T) {
	n := wide(t)
	streams, empty := torch.NewStreams(1, 1), torch.Streams{}
	for _, c := range []struct {
		want   string
		scheme nn.Scheme
	}{
		{"the scheme is nil: expected one such as nn.Same", nil},
		{`site "0.weight" has no law`, nn.PerSite(map[string]nn.Law{"0.bias": nn.Normal(1)}, nil)},
		{`a law for site "weight": the sites are ["0.bias" "0.weight" "2.bias" "2.weight"]`,
			nn.PerSite(map[string]nn.Law{"weight": nn.Normal(1)}, nn.PyTorch())},
		{`site "0.bias" has the law Normal(0): its scale must be greater than 0 and finite`, nn.Same(nn.Normal(0))},
		{`site "0.bias" has the law Laplace(NaN): its scale`, nn.Same(nn.Laplace(math.NaN()))},
		{`site "0.bias" has the law Uniform(+Inf): its scale`, nn.Same(nn.Uniform(math.Inf(1)))},
		{`site "0.bias" has the law Constant(NaN): it must be finite`, nn.Same(nn.Constant(math.NaN()))},
		{"the scheme gives 1 laws for 4 sites", func([]nn.Site) ([]nn.Law, error) { return make([]nn.Law, 1), nil }},
		{`a law for site "w": the sites are ["0.bias" "0.weight" "2.bias" "2.weight"]`,
			nn.PerSite(map[string]nn.Law{"2.bias": nn.Normal(1)}, nn.PerSite(map[string]nn.Law{"w": nn.Normal(1)}, nil))},
	} {
		_, err := nn.Init(n, c.scheme, &streams)
		require.ErrorContains(t, err, c.want)
		require.ErrorIs(t, err, infer.ErrConfig)
		_, err = nn.NewPrior(n, c.scheme)
		require.ErrorContains(t, err, c.want)
	}
	for _, s := range []*torch.Streams{nil, &empty} {
		_, err := nn.Init(n, nn.PyTorch(), s)
		require.ErrorContains(t, err, "there are no random streams: use torch.NewStreams")
	}
	_, err := nn.NewPrior(n, nn.KaimingNormal(1))
	require.ErrorContains(t, err, `site "0.bias" has the law Constant(0), which has no density`)
}
