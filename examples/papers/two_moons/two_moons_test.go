package main

import (
	"bytes"
	"context"
	"encoding/json"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/diag/score"
	"github.com/kelvin-ppl/kelvin/examples/internal/seeds"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Points are on their half circles with normal noise of sd 0.2: residuals against the curves by another
// form of their equations.
func TestMoons(t *testing.T) {
	const n = 4001 // the odd one has label 0
	p, err := moons(n, 5)
	require.NoError(t, err)
	count, sum, square := 0, 0.0, 0.0
	for i, x := range p.x {
		angle := math.Pi * float64(i) / 2000
		centre, up := [2]float64{0, 0}, 1.0
		if p.label[i] == 1 {
			count++
			angle = math.Pi - math.Pi*float64(i-2001)/1999 // from left to right
			centre, up = [2]float64{1, 0.5}, -1
		}
		dx, dy := x[0]-centre[0]-math.Cos(angle), x[1]-centre[1]-up*math.Sin(angle)
		sum += dx + dy
		square += dx*dx + dy*dy
	}
	require.Equal(t, 2000, count)
	residuals := 2.0 * n
	require.InDelta(t, 0, sum/residuals, 4*noise/math.Sqrt(residuals))
	require.InDelta(t, noise*noise, square/residuals, 4*noise*noise*math.Sqrt(2/residuals))

	again, err := moons(n, 5)
	require.NoError(t, err)
	require.Equal(t, p.x, again.x)
	other, err := moons(n, 6)
	require.NoError(t, err)
	require.NotEqual(t, p.x[0], other.x[0])
	flat, err := torch.ToSlice[float64](p.at)
	require.NoError(t, err)
	require.Equal(t, p.x[7][:], flat[14:16])
}

func TestGrid(t *testing.T) {
	g, err := grid(10)
	require.NoError(t, err)
	require.Len(t, g.x, 100)
	require.InDelta(t, left+0.35, g.x[0][0], 1e-12) // the middle of the pixel at the top left
	require.InDelta(t, top-0.325, g.x[0][1], 1e-12)
	require.InDelta(t, right-0.35, g.x[99][0], 1e-12)
	require.InDelta(t, bottom+0.325, g.x[99][1], 1e-12)
	data := points{x: [][2]float64{{0, 0}, {1, 0}}}
	require.Equal(t, []bool{false, true, false, true},
		points{x: [][2]float64{{-0.9, 0}, {-1.1, 0}, {1.5, 0.5}, {1.8, 0.8}}}.farFrom(data, 1))
}

// features are the last hidden layer and the logit of the network, in plain loops.
func features(layout *infer.Layout, flat []float64, x [2]float64) (a []float64, logit float64) {
	a = x[:]
	for l, layer := range layers {
		weight, _ := layout.Site(layer.Weight)
		bias, _ := layout.Site(layer.Bias)
		out := make([]float64, sizes[l+1])
		for o := range out {
			out[o] = flat[bias.Offset+o]
			for i, v := range a {
				out[o] += flat[weight.Offset+o*len(a)+i] * v
			}
		}
		if l == len(layers)-1 {
			return a, out[0]
		}
		for o := range out {
			out[o] = max(out[o], 0)
		}
		a = out
	}
	return nil, 0
}

func smallTask(t *testing.T, tau float64) *task {
	s := quick
	s.train, s.test = 40, 20
	task, err := newTask(s, nn.MLP{Sizes: sizes}, 3, tau)
	require.NoError(t, err)
	task.mode, err = task.starts(1)
	require.NoError(t, err)
	return task
}

// The log posterior, and the network as KFAC sees it, against plain loops.
func TestLogPosterior(t *testing.T) {
	task := smallTask(t, 0.5)
	require.Equal(t, 2241, task.model.net.NumParams())
	flat, err := task.mode.Values()
	require.NoError(t, err)
	want := 0.0
	for _, w := range flat {
		want -= w * w / (2 * 0.5 * 0.5) / 40
	}
	for i, x := range task.train.x {
		_, z := features(task.mode.Layout, flat, x)
		want += math.Log(sigmoid(float64(2*task.train.label[i]-1)*z)) / 40
	}
	g, err := infer.NewGradient(infer.Sum(task.model.logPosterior, 1))
	require.NoError(t, err)
	e, err := g.ValueAndGrad(task.mode, task.data, 0)
	require.NoError(t, err)
	require.InDelta(t, want, e.Values[0], 1e-10)
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		one := task.model.forward(task.mode, task.data).Values()
		two := laplace.Network(network).Forward(layers...)(task.mode, task.data).Values()
		require.InDeltaSlice(t, one, two, 1e-12)
		return nil
	}))
}

// The last-layer Laplace approximation against its equations with gonum: P = Σ p(1 − p) a aᵀ + λI, and logits of
// variance aᵀP⁻¹a.
func TestLastLayer(t *testing.T) {
	task := smallTask(t, 2)
	flat, err := task.mode.Values()
	require.NoError(t, err)
	with1 := func(x [2]float64) (*mat.VecDense, float64) {
		a, z := features(task.mode.Layout, flat, x)
		return mat.NewVecDense(33, append(append([]float64(nil), a...), 1)), z
	}
	precision := mat.NewSymDense(33, nil)
	for i := range 33 {
		precision.SetSym(i, i, 0.25)
	}
	for _, x := range task.train.x {
		a, z := with1(x)
		precision.SymRankOne(precision, sigmoid(z)*sigmoid(-z), a)
	}
	var cholesky mat.Cholesky
	require.True(t, cholesky.Factorize(precision))
	predict, err := task.lastLayer(context.Background())
	require.NoError(t, err)
	got, err := predict(task.test.at)
	require.NoError(t, err)
	for i, x := range task.test.x {
		a, z := with1(x)
		var solved mat.VecDense
		require.NoError(t, cholesky.SolveVecTo(&solved, a))
		v := mat.Dot(a, &solved)
		require.InDelta(t, sigmoid(z/math.Sqrt(1+math.Pi*v/8)), got.p[i], 1e-9)
		// Ten draws are the quantiles 0.05, 0.15, ...; that of 0.95 is 1.6449 standard deviations up.
		require.InDelta(t, z+1.6448536269514722*math.Sqrt(v), got.logits[9][i], 1e-8)
	}
}

// Masks keep four units of five, differ between batches, and come again with the batch.
func TestMasks(t *testing.T) {
	const keep = 0.8
	task := smallTask(t, 1)
	inner, err := task.batches()
	require.NoError(t, err)
	batches := masked{inner, task.model, keep, 9}
	read := func() (out []float64) {
		require.NoError(t, torch.Do(func(*torch.Scope) error {
			b, err := batches.Next()
			require.NoError(t, err)
			for _, l := range task.model.dropoutLayers() {
				out = append(out, torch.Must(torch.ToSlice[float64](b["mask."+l]))...)
			}
			return nil
		}))
		return out
	}
	first, second := read(), read()
	require.Len(t, first, 32*3*32)
	require.NotEqual(t, first[:100], second[:100])
	require.InDelta(t, keep, mean(first), 4*math.Sqrt(keep*(1-keep)/float64(len(first))))
	require.NoError(t, batches.Seek(infer.Position{}))
	require.Equal(t, first, read())
}

// A twin has the same logits, far away; a twin with one weight changed has not.
func TestTwins(t *testing.T) {
	task := smallTask(t, 1)
	difference, distance, err := task.twinDifference(5)
	require.NoError(t, err)
	require.Less(t, difference, 1e-12)
	require.Greater(t, distance, 1.0)
	flat, err := task.mode.Values()
	require.NoError(t, err)
	other := twin(task.mode.Layout, flat, 1)
	_, want := features(task.mode.Layout, flat, [2]float64{0.5, 0.2})
	_, got := features(task.mode.Layout, other, [2]float64{0.5, 0.2})
	require.InDelta(t, want, got, 1e-12)
	site, _ := task.mode.Layout.Site("4.bias")
	for i := range site.Size {
		other[site.Offset+i] += 0.1
	}
	_, got = features(task.mode.Layout, other, [2]float64{0.5, 0.2})
	require.Greater(t, math.Abs(want-got), 1e-6)
}

// The height of the barrier against losses by plain loops.
func TestBarrier(t *testing.T) {
	task := smallTask(t, 1)
	var err error
	task.members, err = task.starts(3)
	require.NoError(t, err)
	flat, err := task.members.Values()
	require.NoError(t, err)
	a, b := flat[2241:2*2241], flat[2*2241:]
	var loss []float64
	for s := 0.0; s < 1.01; s += 0.05 {
		at := make([]float64, len(a))
		for i := range at {
			at[i] = (1-s)*a[i] + s*b[i]
		}
		sum := 0.0
		for i, x := range task.train.x {
			_, z := features(task.members.Layout, at, x)
			sum -= math.Log(sigmoid(float64(2*task.train.label[i]-1)*z)) / 40
		}
		loss = append(loss, sum)
	}
	highest := 0.0
	for _, l := range loss {
		highest = max(highest, l)
	}
	got, err := task.barrier(1, 2)
	require.NoError(t, err)
	require.InDelta(t, highest-max(loss[0], loss[20]), got, 1e-9)
}

// The parts of an uncertainty add up, also where probabilities are 0 and 1 to the last digit, and the entropy's are
// those of diag.
func TestDecomposition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, width := range []float64{0.1, 1, 10, 1000} {
		logits := make([]float64, 50)
		p := make([][]float64, 50)
		for i := range logits {
			logits[i] = width * rng.NormFloat64()
			p[i] = []float64{sigmoid(-logits[i]), sigmoid(logits[i])}
		}
		entropy, variance := gaps(logits)
		require.Less(t, entropy, 1e-14)
		require.Less(t, variance, 1e-14)
		u, err := score.EntropyOf(p)
		require.NoError(t, err)
		require.InDelta(t, u.Total, u.Aleatoric+u.Epistemic, 1e-12)
		o := prediction{}
		for _, z := range logits {
			o.logits = append(o.logits, []float64{z})
		}
		o, err = o.averaged()
		require.NoError(t, err)
		sd, epistemic, err := o.spread()
		require.NoError(t, err)
		require.InDelta(t, u.Epistemic, epistemic[0], 1e-10)
		m, square := mean(o.probabilities(0)), 0.0
		for _, q := range o.probabilities(0) {
			square += (q - m) * (q - m) / 50
		}
		require.InDelta(t, math.Sqrt(square), sd[0], 1e-10)
	}
}

// The scores of a row in plain Go, and the paired difference of two rows' NLL.
func TestScore(t *testing.T) {
	task := smallTask(t, 1)
	rng := rand.New(rand.NewPCG(5, 6))
	made := func() outcome {
		var o outcome
		for set, n := range map[*prediction]int{&o.test: len(task.test.x), &o.grid: len(task.grid.x)} {
			for range 3 {
				z := make([]float64, n)
				for i := range z {
					z[i] = 2 * rng.NormFloat64()
				}
				set.logits = append(set.logits, z)
			}
			var err error
			*set, err = set.averaged()
			require.NoError(t, err)
		}
		var err error
		o.sd, o.epistemic, err = o.grid.spread()
		require.NoError(t, err)
		require.NoError(t, task.score(&o))
		return o
	}
	o, other := made(), made()
	var right, nll, brier, sd, sdFar, far, ece float64
	var gap [10]float64 // Σ (right − confidence) in ten bins of confidence
	n := float64(len(task.test.x))
	for i, label := range task.test.label {
		p := mean(o.test.probabilities(i))
		require.InDelta(t, math.Log(p/(1-p)), o.test.z[i], 1e-10)
		require.InDelta(t, p, o.test.p[i], 1e-12)
		ofLabel := p
		if label == 0 {
			ofLabel = 1 - p
		}
		confidence := max(p, 1-p)
		if ofLabel > 0.5 {
			right++
			gap[int(10*confidence)] += 1 - confidence
		} else {
			gap[int(10*confidence)] -= confidence
		}
		nll -= math.Log(ofLabel)
		brier += (p - float64(label)) * (p - float64(label))
		square := 0.0
		for _, q := range o.test.probabilities(i) {
			square += (q - p) * (q - p) / 3
		}
		sd += math.Sqrt(square)
	}
	for i, isFar := range task.grid.farFrom(task.train, 1) {
		if isFar {
			far++
			sdFar += o.sd[i]
		}
	}
	for _, g := range gap {
		ece += math.Abs(g) / n
	}
	require.InDelta(t, ece, o.row.ECE, 1e-10)
	require.InDelta(t, right/n, o.row.Accuracy, 1e-12)
	require.InDelta(t, nll/n, o.row.NLL, 1e-12)
	require.InDelta(t, brier/n, o.row.Brier, 1e-12)
	require.InDelta(t, sd/n, o.row.SD, 1e-10)
	require.InDelta(t, sdFar/far, o.row.SDFar, 1e-12)
	// A sure prediction that is wrong has a finite score.
	sure := o
	sure.test.logits = [][]float64{make([]float64, len(task.test.x))}
	for i, label := range task.test.label {
		sure.test.logits[0][i] = 500 * float64(1-2*label)
	}
	var err error
	sure.test, err = sure.test.averaged()
	require.NoError(t, err)
	require.NoError(t, task.score(&sure))
	require.InDelta(t, 500, sure.row.NLL, 1e-10)
	difference, se := task.pairedNLL(o.test, other.test)
	require.InDelta(t, o.row.NLL-other.row.NLL, difference, 1e-12)
	require.Greater(t, se, 0.0)
}

// A temperature changes no decision, whatever it is; above 1 it takes confidence away.
func TestScalingKeepsDecisions(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	logits, label := make([]float64, 200), make([]int, 200)
	for i := range logits {
		logits[i] = 6 * rng.NormFloat64()
		if rng.Float64() < sigmoid(logits[i]/3) { // three times too confident
			label[i] = 1
		}
	}
	for _, temperature := range []float64{0.01, 0.5, 1, 3, 100} {
		c, err := scaled(logits, label, temperature)
		require.NoError(t, err)
		require.Zero(t, c.changed)
	}
	c, err := scaled(logits, label, 3)
	require.NoError(t, err)
	require.Greater(t, c.margin(), 0.0, c.String())
	c, err = scaled(logits, label, -1) // turns every decision round
	require.NoError(t, err)
	require.Equal(t, 200, c.changed)
}

var inputA, inputB = [2]float64{1, 0.5}, [2]float64{-0.5, 1}

// kernelAt is the kernel, which must be defined.
func kernelAt(t *testing.T, p prior, a, b [2]float64) pair {
	t.Helper()
	k, err := p.kernel(a, b)
	require.NoError(t, err)
	return k
}

// Networks drawn weight by weight have the moments of those drawn unit by unit, the kernel's variance at every width,
// and the fourth moment of the recursion.
func TestPriorNetworks(t *testing.T) {
	const width, draws = 20, 4000
	limit := kernelAt(t, wide, inputA, inputB)
	net, err := nn.MLP{Sizes: []int{2, width, width, width, 1}}.Build()
	require.NoError(t, err)
	var na, nb []float64
	for part := range uint64(4) {
		streams := torch.NewStreams(11+part, draws/4)
		p, err := nn.Init(net, wide.scheme(), &streams)
		require.NoError(t, err)
		x, err := torch.FromSlice([]float64{inputA[0], inputA[1], inputB[0], inputB[1]}, 2, 2)
		require.NoError(t, err)
		z, err := networkAt(net, p)(x)
		require.NoError(t, err)
		for _, f := range z.logits {
			na, nb = append(na, f[0]), append(nb, f[1])
		}
	}
	ua, ub, err := wide.outputs(inputA, inputB, width, 10*draws, 12)
	require.NoError(t, err)
	// E f⁴ = 3 E q², and E q² is the kurtosis's.
	fourth := (wide.excessKurtosis(inputA, width) + 3) * limit.aa * limit.aa
	for name, f := range map[string][2][]float64{"weights": {na, nb}, "units": {ua, ub}} {
		m, se := meanError(products(f[0], f[0]))
		assert.InDelta(t, limit.aa, m, 4*se, name)
		m, se = meanError(products(f[1], f[1]))
		assert.InDelta(t, limit.bb, m, 4*se, name)
		m, se = meanError(products(products(f[0], f[0]), products(f[0], f[0])))
		assert.InDelta(t, fourth, m, 4*se, name)
	}
	// With one hidden layer of h units q' = σ_b² + σ_w² Σ φ²/h, where E φ² = q/2 and E φ⁴ = 3q²/2.
	one := prior{weightVariance: 1.6, biasVariance: 0.1, hidden: 1}
	q := 0.1 + 1.6*1.25/2
	for _, h := range []float64{1, 7} {
		square := 0.01 + 2*0.1*1.6*q/2 + 1.6*1.6*(1.5*q*q/h+(1-1/h)*q*q/4)
		require.InDelta(t, 3*square/((0.1+0.8*q)*(0.1+0.8*q))-3, one.excessKurtosis(inputA, int(h)), 1e-12)
	}
	m, se := meanError(products(na, nb))
	m2, se2 := meanError(products(ua, ub))
	assert.InDelta(t, m2, m, 4*math.Hypot(se, se2))
}

// The covariance of wide networks is the kernel's; at one point the kernel is the linear recursion k' =
// σ_b² + σ_w² k/2.
func TestKernel(t *testing.T) {
	k := 0.1 + 1.6*1.25/2
	for range 3 {
		k = 0.1 + 1.6*k/2
	}
	require.InDelta(t, k, kernelAt(t, wide, inputA, inputA).ab, 1e-12)
	require.InDelta(t, k, kernelAt(t, wide, inputA, inputB).aa, 1e-12)
	fa, fb, err := wide.outputs(inputA, inputB, 500, 2000, 13)
	require.NoError(t, err)
	m, se := meanError(products(fa, fb))
	require.InDelta(t, kernelAt(t, wide, inputA, inputB).ab, m, 4*se)
	// Opposite inputs share no active unit of a layer without bias: the mean product is 0 there.
	free := prior{weightVariance: 2, hidden: 1}
	require.InDelta(t, 0, kernelAt(t, free, [2]float64{1, 2}, [2]float64{-1, -2}).ab, 1e-12)
}

// With one hidden layer the mean of the tangent kernel is the limit at every width: its two parts are means
// over independent units. With three it is the limit of wide layers. At one point it is the linear recursion Θ'
// = k' + σ_w² Θ/2.
func TestTangentKernel(t *testing.T) {
	k := 0.1 + 1.6*1.25/2
	theta := k
	for range 3 {
		k = 0.1 + 1.6*k/2
		theta = k + 0.8*theta
	}
	at, err := wide.tangentKernel(inputA, inputA)
	require.NoError(t, err)
	require.InDelta(t, theta, at, 1e-12)
	for _, c := range []struct {
		hidden, width int
		draws         int
	}{{1, 3, 2000}, {3, 200, 40}} {
		p := prior{weightVariance: 1.6, biasVariance: 0.1, hidden: c.hidden}
		kernels, err := p.tangentKernels(inputA, inputB, c.width, c.draws, 21)
		require.NoError(t, err)
		m, se := meanError(kernels)
		at, err := p.tangentKernel(inputA, inputB)
		require.NoError(t, err)
		require.InDelta(t, at, m, 4*se)
	}
}

// The tangent kernel's formula is what descent of the linearised network comes to, to rounding; the networks themselves
// come nearer to it as they grow wide (Lee et al. 2019): at 16 times the width by more than four standard errors.
func TestDescentIsThatOfTheTangentKernel(t *testing.T) {
	x := [][2]float64{{1, 0}, {0, 1}, {-1, 0.2}, {1, -0.5}, {2, 0.3}}
	y := []float64{-1, -1, -1, 1, 1}
	to := [][2]float64{{0.5, 0.5}, {-0.5, 0.7}, {1.5, -0.3}}
	var mean, se [2]float64
	for i, width := range []int{20, 320} {
		var apart []float64
		for seed := range uint64(30) {
			d, err := wide.descend(width, x, to, y, 20, seed)
			require.NoError(t, err)
			require.InDeltaSlice(t, d.kernel, d.linear, 1e-10)
			apart = append(apart, furthest(d.network, d.kernel))
		}
		mean[i], se[i] = meanError(apart)
	}
	require.Greater(t, (mean[0]-mean[1])/math.Hypot(se[0], se[1]), 4.0, "%v ± %v", mean, se)
}

// A small run of everything: the shape of the JSON, the claims that are identities, and the pictures. What is done is
// not done again, so that the seconds are the same, and results of other settings are refused.
func TestQuickRun(t *testing.T) {
	dir := t.TempDir()
	o := options{json: true, quick: true, out: dir, seed: 1, seeds: 1, workers: 1, tau: 100}
	var text bytes.Buffer
	require.NoError(t, run(context.Background(), &text, o))
	var sum summary
	require.NoError(t, json.Unmarshal(text.Bytes(), &sum))
	require.Equal(t, 1, sum.Seeds)
	require.Len(t, sum.Methods, len(methods))
	for i, m := range sum.Methods {
		require.Equal(t, methods[i].name, m.Name)
		for _, e := range []seeds.Estimate{m.Accuracy, m.NLL, m.Brier, m.ECE, m.MCE, m.Seconds} {
			require.GreaterOrEqual(t, e.Mean, 0.0)
			require.GreaterOrEqual(t, e.SE, 0.0)
		}
		require.LessOrEqual(t, m.Accuracy.Mean, 1.0)
		require.Equal(t, m.Draws > 1, m.AUROC != nil, m.Name)
	}
	identities := map[string]bool{claimTwins: false, claimParts: false, claimWide: false}
	for _, c := range sum.Claims {
		require.NotEmpty(t, c.Figure)
		if _, ok := identities[c.Claim]; ok {
			identities[c.Claim] = true
			require.True(t, c.Holds, c.Figure)
			require.Equal(t, 1, c.Held)
		}
	}
	for name, seen := range identities {
		require.True(t, seen, name)
	}
	for _, name := range []string{"decision.png", "uncertainty.png", "entropy.png", "reliability.png"} {
		f, err := os.Open(filepath.Join(dir, "quick", name))
		require.NoError(t, err)
		_, err = png.Decode(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}

	var again bytes.Buffer
	require.NoError(t, run(context.Background(), &again, o))
	require.Equal(t, text.String(), again.String())
	o.tau = 50
	require.ErrorContains(t, run(context.Background(), &again, o), "tau is 100 there and 50 here")
}

// Means, errors and claims over seeds: margins 1, 2 and 3 are 2 ± 0.577, which is beyond two errors, and
// -1, 2 and 5 are 2 ± 1.73, which is not.
func TestSummarise(t *testing.T) {
	var all []*seedResult
	for i, nll := range []float64{0.1, 0.2, 0.6} {
		all = append(all, &seedResult{Seed: uint64(4 + i), Methods: []rowJSON{{Name: "map", NLL: nll}},
			Claims: []claim{{"a", "first", float64(1 + i)}, {"b", "first", float64(3*i - 1)}}, Notes: []string{"note"}})
	}
	s := summarise(all)
	require.InDelta(t, 0.3, s.Methods[0].NLL.Mean, 1e-12)
	require.InDelta(t, math.Sqrt(0.07/3), s.Methods[0].NLL.SE, 1e-12) // squares 0.04 + 0.01 + 0.09 over 2
	require.Nil(t, s.Methods[0].AUROC)
	require.InDelta(t, math.Sqrt(1.0/3), s.Claims[0].Margin.SE, 1e-12)
	require.Equal(t, []int{3, 2}, []int{s.Claims[0].Held, s.Claims[1].Held})
	require.True(t, s.Claims[0].Holds)
	require.False(t, s.Claims[1].Holds)
	require.Equal(t, []string{"Seed 4: note", "Seed 5: note", "Seed 6: note"}, s.Notes)
}

func TestBadOptions(t *testing.T) {
	for _, tau := range []float64{-1, math.NaN()} {
		o := options{quick: true, out: t.TempDir(), tau: tau, seeds: 1}
		require.ErrorContains(t, run(context.Background(), &bytes.Buffer{}, o), "tau")
	}
	require.ErrorContains(t, run(context.Background(), &bytes.Buffer{}, options{seed: 1}), "seeds")
	require.ErrorContains(t, run(context.Background(), &bytes.Buffer{}, options{seed: 1000, seeds: 2}), "1001")
}
