package score

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// randomLogits are normal with the standard deviation spread.
func randomLogits(seed uint64, draws, cases, classes int, spread float64) [][][]float64 {
	rng := source(seed)
	z := make([][][]float64, draws)
	for s := range z {
		z[s] = filled(cases, classes, func(int, int) float64 { return spread * rng.NormFloat64() })
	}
	return z
}

func logSoftmaxRows(z [][]float64) [][]float64 {
	p := make([][]float64, len(z))
	for i, row := range z {
		p[i] = logSoftmax(row)
	}
	return p
}

// Against the plain formula where it does not underflow, and by hand where it does.
func TestLogSoftmax(t *testing.T) {
	z := []float64{0.3, -2, 1.7, 0.3}
	sum := 0.0
	for _, v := range z {
		sum += math.Exp(v)
	}
	for k, v := range logSoftmax(z) {
		require.InDelta(t, math.Log(math.Exp(z[k])/sum), v, 1e-15)
	}
	require.Equal(t, []float64{0, -2e5}, logSoftmax([]float64{1e5, -1e5}))
	got := logSoftmax([]float64{0, -40}) // 1 - exp(-40) is 1 in float64, its log is not 0
	require.InEpsilon(t, -math.Exp(-40), got[0], 1e-12)
	require.Equal(t, []float64{0, -inf}, logSoftmax([]float64{3, -inf}))
	require.True(t, math.IsNaN(logSoftmax([]float64{-inf, -inf})[0]))
	require.True(t, math.IsNaN(logSoftmax([]float64{1, nan})[0]))
	require.True(t, math.IsNaN(logSoftmax([]float64{1, inf})[1]))
	require.Empty(t, logSoftmax(nil))
	for _, v := range []float64{0, 0.3, -7, 40, -40, 800, -1e5} {
		b := BinaryLogProbabilities(v)
		want := logSoftmax([]float64{0, v})
		near(t, "relative to a small log", b[0]/max(-want[0], 1e-300), want[0]/max(-want[0], 1e-300), 1e-14)
		near(t, "relative to a small log", b[1]/max(-want[1], 1e-300), want[1]/max(-want[1], 1e-300), 1e-14)
	}
}

// Against plain averages, in any way of adding; uncertainties against EntropyOf.
func TestPredictive(t *testing.T) {
	const draws, cases, classes = 50, 7, 4
	z := randomLogits(70, draws, cases, classes, 3)
	streamed, err := NewPredictive(cases, classes)
	require.NoError(t, err)
	logits, err := NewPredictive(cases, classes)
	require.NoError(t, err)
	logp := make([][][]float64, draws)
	want := make([][]float64, cases)
	perCase := make([][][]float64, cases)
	for i := range want {
		want[i] = make([]float64, classes)
	}
	for s := range z {
		logp[s] = logSoftmaxRows(z[s])
		require.NoError(t, streamed.Add(logp[s]))
		require.NoError(t, logits.AddLogits(z[s]))
		for i, row := range logp[s] {
			perCase[i] = append(perCase[i], softmax(z[s][i]))
			for k, v := range row {
				want[i][k] += math.Exp(v) / draws
			}
		}
	}
	require.Equal(t, draws, streamed.Draws())
	require.Equal(t, streamed.LogMean(), logits.LogMean())
	whole := streamed.LogMean()
	uncertainty := streamed.Uncertainty()
	for i := range want {
		for k := range want[i] {
			require.InEpsilon(t, want[i][k], streamed.Mean()[i][k], 1e-13)
			require.InDelta(t, math.Log(want[i][k]), whole[i][k], 1e-13)
		}
		u, err := EntropyOf(perCase[i])
		require.NoError(t, err)
		require.InDelta(t, u.Total, uncertainty[i].Total, 1e-13)
		require.InDelta(t, u.Aleatoric, uncertainty[i].Aleatoric, 1e-13)
		require.InDelta(t, u.Epistemic, uncertainty[i].Epistemic, 1e-12)
		require.Greater(t, u.Epistemic, 0.01)
	}

	binary, err := NewPredictive(2, 2)
	require.NoError(t, err)
	require.NoError(t, binary.AddBinaryLogits([]float64{0.5, -3}))
	require.NoError(t, binary.AddBinaryLogits([]float64{2, 900}))
	sigma := func(v float64) float64 { return 1 / (1 + math.Exp(-v)) }
	require.InDelta(t, (sigma(0.5)+sigma(2))/2, binary.Mean()[0][1], 1e-15)
	require.InDelta(t, (sigma(-3)+1)/2, binary.Mean()[1][1], 1e-15)
	require.InDelta(t, 1-(sigma(-3)+1)/2, binary.Mean()[1][0], 1e-15)
}

// Log probabilities near -1e5 of 1000 draws, in rising, falling and mixed order, against sums with 300 digits.
func TestPredictiveUnderflow(t *testing.T) {
	const draws = 1000
	rng := source(71)
	offsets := make([]float64, draws)
	for s := range offsets {
		offsets[s] = 3 * rng.NormFloat64()
	}
	rising := sortedCopy(offsets)
	falling := slices.Clone(rising)
	slices.Reverse(falling)
	for name, order := range map[string][]float64{"mixed": offsets, "rising": rising, "falling": falling} {
		p, err := NewPredictive(1, 2)
		require.NoError(t, err)
		sum := new(big.Float).SetPrec(1000)
		for _, v := range order {
			require.NoError(t, p.Add([][]float64{{0, -1e5 + v}}))
			sum.Add(sum, new(big.Float).SetPrec(1000).SetFloat64(math.Exp((-1e5+v)+1e5)))
		}
		mean, _ := sum.Quo(sum, big.NewFloat(draws)).Float64()
		// a unit in the last place of 1e5 is 1.5e-11
		require.InDelta(t, -1e5+math.Log(mean), p.LogMean()[0][1], 3e-11, name)
	}
	p, err := NewPredictive(1, 2) // a draw that leaves a class out, before and after one that does not
	require.NoError(t, err)
	require.NoError(t, p.Add([][]float64{{0, -inf}}))
	require.Equal(t, -inf, p.LogMean()[0][1])
	require.NoError(t, p.AddLogits([][]float64{{0, 0}}))
	require.NoError(t, p.Add([][]float64{{0, -inf}}))
	require.InDelta(t, math.Log(0.5/3), p.LogMean()[0][1], 1e-15)
	empty, err := NewPredictive(1, 2)
	require.NoError(t, err)
	require.True(t, math.IsNaN(empty.Mean()[0][0]))
	require.True(t, math.IsNaN(empty.Uncertainty()[0].Epistemic))
}

func TestPredictiveErrors(t *testing.T) {
	_, err := NewPredictive(0, 2)
	require.EqualError(t, err, "diag/score: predictive: 0 cases of 2 classes, want at least 1")
	p, err := NewPredictive(1, 2)
	require.NoError(t, err)
	require.EqualError(t, p.Add(nil), "diag/score: predictive: log probabilities of 0 cases, want 1")
	require.EqualError(t, p.Add([][]float64{{0}}),
		"diag/score: predictive: case 0 has log probabilities of 1 classes, want 2")
	require.EqualError(t, p.Add([][]float64{{-1, -1}}), "diag/score: predictive: the probabilities of case 0 sum to "+
		"0.7357588823428847, want 1")
	require.ErrorIs(t, p.Add([][]float64{{0, nan}}), draws.ErrRange)
	require.ErrorIs(t, p.Add([][]float64{{1, 0}}), draws.ErrRange)
	require.EqualError(t, p.AddLogits([][]float64{{1, inf}}), "diag/score: predictive: logit 1 of case 0 is +Inf")
	require.ErrorIs(t, p.AddLogits([][]float64{{1, 2, 3}}), draws.ErrSize)
	require.ErrorIs(t, p.AddBinaryLogits([]float64{1, 2}), draws.ErrSize)
	require.ErrorIs(t, p.AddBinaryLogits([]float64{nan}), diag.ErrNotFinite)
	require.Zero(t, p.Draws())
	three, err := NewPredictive(1, 3)
	require.NoError(t, err)
	require.EqualError(t, three.AddBinaryLogits([]float64{1}), "diag/score: predictive: 1 binary logits, want 1 "+
		"cases of 2 classes and there are 3 classes")
}

// plainScore is Score by its definition, of probabilities.
func plainScore(p [][]float64, label []int) (s Scores) {
	n := float64(len(p))
	for i, row := range p {
		s.LogLoss -= math.Log(row[label[i]]) / n
		for k, v := range row {
			s.Brier += math.Pow(v-indicator(k == label[i]), 2) / n
		}
		s.Accuracy += indicator(slices.Index(row, slices.Max(row)) == label[i]) / n
	}
	return s
}

// Scores from logs are those from probabilities, and finite where those are not; the ensemble's are no worse than the
// mean of its members', by Jensen.
func TestGibbs(t *testing.T) {
	const members, cases, classes = 20, 30, 3
	z := randomLogits(72, members, cases, classes, 2)
	rng := source(73)
	label := make([]int, cases)
	for i := range label {
		label[i] = rng.IntN(classes)
	}
	average, err := NewPredictive(cases, classes)
	require.NoError(t, err)
	logp := make([][][]float64, members)
	var losses, briers, accuracies []float64
	for s := range z {
		logp[s] = logSoftmaxRows(z[s])
		require.NoError(t, average.Add(logp[s]))
		want := plainScore(sample.Mapped(logp[s], math.Exp), label)
		got, err := Score(logp[s], label)
		require.NoError(t, err)
		require.InDelta(t, want.LogLoss, got.LogLoss, 1e-13)
		require.InDelta(t, want.Brier, got.Brier, 1e-13)
		require.InDelta(t, want.Accuracy, got.Accuracy, 1e-13)
		losses, briers = append(losses, want.LogLoss), append(briers, want.Brier)
		accuracies = append(accuracies, want.Accuracy)
	}
	r, err := GibbsScoreOf(logp, label)
	require.NoError(t, err)
	require.Equal(t, members, r.Members)
	for _, c := range []struct {
		x        []float64
		mean, sd float64
	}{{losses, r.Mean.LogLoss, r.SD.LogLoss}, {briers, r.Mean.Brier, r.SD.Brier},
		{accuracies, r.Mean.Accuracy, r.SD.Accuracy}} {
		mean, variance := sample.MeanVar(c.x)
		require.InDelta(t, mean, c.mean, 1e-13)
		require.InDelta(t, math.Sqrt(variance), c.sd, 1e-13)
	}
	ensemble, err := Score(average.LogMean(), label)
	require.NoError(t, err)
	require.Less(t, ensemble.LogLoss, r.Mean.LogLoss)
	require.Less(t, ensemble.Brier, r.Mean.Brier)

	far, err := Score([][]float64{{0, -1e5}}, []int{1})
	require.NoError(t, err)
	require.Equal(t, Scores{LogLoss: 1e5, Brier: 2}, far)
	_, err = GibbsScoreOf(nil, []int{2})
	require.EqualError(t, err, "diag/score: gibbs: no members")
	_, err = GibbsScoreOf([][][]float64{{{0, -inf}}}, []int{2})
	require.EqualError(t, err, "diag/score: score: label 0 is 2, want 0 to 1")
	_, err = Score([][]float64{{0, 0}}, []int{1})
	require.ErrorIs(t, err, draws.ErrRange)
	_, err = Score(nil, nil)
	require.ErrorIs(t, err, draws.ErrSize)
	_, err = Score([][]float64{{0}, {0, 0}}, []int{0, 0})
	require.EqualError(t, err, "diag/score: score: case 1 has 2 classes, want 1 as case 0")
}

// By hand, against the two divergences, and where probabilities underflow.
func TestSymmetricKL(t *testing.T) {
	p, q := [][]float64{{0.2, 0.3, 0.5}, {0.9, 0.1, 0}}, [][]float64{{0.1, 0.6, 0.3}, {0.5, 0.5, 0}}
	want := 0.0
	for i := range p {
		for k := range p[i] {
			if p[i][k] > 0 {
				want += (p[i][k]*math.Log(p[i][k]/q[i][k]) + q[i][k]*math.Log(q[i][k]/p[i][k])) / 4
			}
		}
	}
	got, err := SymmetricKL(logs(p), logs(q))
	require.NoError(t, err)
	require.InDelta(t, want, got, 1e-15)
	back, err := SymmetricKL(logs(q), logs(p))
	require.NoError(t, err)
	require.Equal(t, got, back)
	same, err := SymmetricKL(logs(p), logs(p))
	require.NoError(t, err)
	require.Zero(t, same)
	apart, err := SymmetricKL(logs([][]float64{{1, 0}}), logs([][]float64{{0.5, 0.5}}))
	require.NoError(t, err)
	require.True(t, math.IsInf(apart, 1))
	far, err := SymmetricKL([][]float64{{0, -1e5}}, [][]float64{{-2e5, 0}})
	require.NoError(t, err)
	require.Equal(t, 1.5e5, far)
	_, err = SymmetricKL(logs(p), logs(q[:1]))
	require.ErrorIs(t, err, draws.ErrSize)
	_, err = SymmetricKL(logs([][]float64{{1}}), logs([][]float64{{0.5, 0.5}}))
	require.EqualError(t, err, "diag/score: symmetric kl: 1 and 2 classes, want equally many")
	_, err = SymmetricKL(nil, nil)
	require.ErrorIs(t, err, draws.ErrSize)
	_, err = SymmetricKL(logs([][]float64{{0.5, 0.6}}), logs([][]float64{{0.5, 0.5}}))
	require.ErrorIs(t, err, draws.ErrRange)
	_, err = SymmetricKL([][]float64{{0, 0}}, [][]float64{{0, -inf}})
	require.ErrorIs(t, err, draws.ErrRange)
	_, err = SymmetricKL([][]float64{{0}}, nil)
	require.ErrorIs(t, err, draws.ErrSize)
}
