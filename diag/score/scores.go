package score

import (
	"math"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// checkProbabilities checks predicted probabilities, [case][class], and labels 0 to classes-1.
func checkProbabilities(doing string, p [][]float64, label []int) error {
	if len(p) == 0 || len(p[0]) == 0 {
		return failf(draws.ErrSize, "%s: at least one case with at least one class is needed", doing)
	}
	if len(label) != len(p) {
		return failf(draws.ErrSize, "%s: %d labels, want %d, one per case", doing, len(label), len(p))
	}
	for i, row := range p {
		if len(row) != len(p[0]) {
			return failf(draws.ErrSize, "%s: case %d has %d classes, want %d as case 0", doing, i, len(row), len(p[0]))
		}
		sum := 0.0
		for _, v := range row {
			if err := checkProbability(doing, v); err != nil {
				return err
			}
			sum += v
		}
		if math.Abs(sum-1) > 1e-6 {
			return failf(draws.ErrRange, "%s: the probabilities of case %d sum to %v, want 1", doing, i, sum)
		}
		if label[i] < 0 || label[i] >= len(row) {
			return failf(draws.ErrRange, "%s: label %d is %d, want 0 to %d", doing, i, label[i], len(row)-1)
		}
	}
	return nil
}

// checkLabels checks the shape of predictions, [case][class], and that labels are 0 to classes-1.
func checkLabels(doing string, rows [][]float64, label []int) error {
	if len(rows) == 0 || len(rows[0]) == 0 {
		return failf(draws.ErrSize, "%s: at least one case with at least one class is needed", doing)
	}
	if len(label) != len(rows) {
		return failf(draws.ErrSize, "%s: %d labels, want %d, one per case", doing, len(label), len(rows))
	}
	for i, row := range rows {
		if len(row) != len(rows[0]) {
			return failf(draws.ErrSize, "%s: case %d has %d classes, want %d as case 0", doing, i, len(row),
				len(rows[0]))
		}
		if label[i] < 0 || label[i] >= len(row) {
			return failf(draws.ErrRange, "%s: label %d is %d, want 0 to %d", doing, i, label[i], len(row)-1)
		}
	}
	return nil
}

// top is the most probable class, the first of equals, and its probability.
func top(p []float64) (class int, confidence float64) {
	for k, v := range p {
		if v > p[class] {
			class = k
		}
	}
	return class, p[class]
}

// Scores are the mean scores of predicted class probabilities; all but Accuracy are proper and better when smaller.
type Scores struct {
	// LogLoss is -mean log p(label), the negative log likelihood or cross-entropy; infinite if a label had probability 0.
	LogLoss float64
	// Brier is mean Σ over classes of (p - 1{label})², from 0 to 2. With two classes it is twice the mean of
	// (p(1) - label)².
	Brier float64
	// Accuracy is the share of cases whose most probable class, the first of equals, is the label.
	Accuracy float64
}

// Score compares the log probabilities of a prediction, [case][class], with the labels. For a Bayesian prediction they
// are those of the probabilities averaged over draws, [Predictive.LogMean]. LogLoss is finite also where probabilities
// underflow. Gneiting and Raftery (2007), Journal of the American Statistical Association 102, 359-378. [draws.ErrSize]
// and [draws.ErrRange] are the errors.
func Score(logp [][]float64, label []int) (Scores, error) {
	if err := checkLabels("score", logp, label); err != nil {
		return Scores{}, err
	}
	if err := checkLogProbabilities("score", logp); err != nil {
		return Scores{}, err
	}
	var s Scores
	n := float64(len(logp))
	for i, row := range logp {
		s.LogLoss -= row[label[i]] / n
		for k, v := range row {
			p := math.Exp(v)
			if k == label[i] {
				p = math.Expm1(v) // p - 1
			}
			s.Brier += p * p / n
		}
		if class, _ := top(row); class == label[i] {
			s.Accuracy += 1 / n
		}
	}
	return s, nil
}

// GibbsScores are the scores of the members of an ensemble.
type GibbsScores struct {
	// Mean are their means, SD their standard deviations (divisor Members - 1, NaN for a single one).
	Mean, SD Scores
	Members  int
}

// GibbsScoreOf averages the scores of the predictions of single draws, log probabilities [draw][case][class]: what a
// prediction by a draw picked at random scores on average. The score of the averaged probabilities is at least as good
// in LogLoss and Brier, by Jensen's inequality. The errors are those of [Score], and [draws.ErrSize] for no draws.
func GibbsScoreOf(logp [][][]float64, label []int) (GibbsScores, error) {
	if len(logp) == 0 {
		return GibbsScores{}, failf(draws.ErrSize, "gibbs: no members")
	}
	all := make([]Scores, len(logp))
	for i, rows := range logp {
		var err error
		if all[i], err = Score(rows, label); err != nil {
			return GibbsScores{}, err
		}
	}
	r := GibbsScores{Members: len(all)}
	part := func(of func(Scores) float64) (mean, sd float64) {
		x := make([]float64, len(all))
		for i, s := range all {
			x[i] = of(s)
		}
		mean, variance := sample.MeanVar(x)
		return mean, math.Sqrt(variance)
	}
	r.Mean.LogLoss, r.SD.LogLoss = part(func(s Scores) float64 { return s.LogLoss })
	r.Mean.Brier, r.SD.Brier = part(func(s Scores) float64 { return s.Brier })
	r.Mean.Accuracy, r.SD.Accuracy = part(func(s Scores) float64 { return s.Accuracy })
	return r, nil
}

// SymmetricKL is the mean over cases of the symmetrised Kullback-Leibler divergence between two predictions, log
// probabilities [case][class], in nats:
//
//	(1/n) Σ (1/2) [KL(p ‖ q) + KL(q ‖ p)] = (1/n) Σ (1/2) Σ over classes of (p - q) (log p - log q)
//
// Twice that is the divergence of Jeffreys (1946); texts differ in which one they mean. It is 0 where the predictions
// are equal, finite also where probabilities underflow, and +Inf where only one of them is 0. [draws.ErrSize] and
// [draws.ErrRange] are the errors.
func SymmetricKL(logp, logq [][]float64) (float64, error) {
	if len(logp) != len(logq) {
		return 0, failf(draws.ErrSize, "symmetric kl: %d and %d cases, want equally many", len(logp), len(logq))
	}
	for _, x := range [][][]float64{logp, logq} {
		if err := checkLabels("symmetric kl", x, make([]int, len(x))); err != nil {
			return 0, err
		}
		if err := checkLogProbabilities("symmetric kl", x); err != nil {
			return 0, err
		}
	}
	if len(logp[0]) != len(logq[0]) {
		return 0, failf(draws.ErrSize, "symmetric kl: %d and %d classes, want equally many", len(logp[0]), len(logq[0]))
	}
	sum := 0.0
	for i, row := range logp {
		for k, a := range row {
			if b := logq[i][k]; a != b {
				if math.IsInf(a, -1) || math.IsInf(b, -1) {
					return math.Inf(1), nil
				}
				sum += (math.Exp(a) - math.Exp(b)) * (a - b) / 2
			}
		}
	}
	return sum / float64(len(logp)), nil
}

// AUROC is the area under the receiver operating characteristic: the probability that a score of a positive case is
// larger than one of a negative case, equal scores counting half,
//
//	P(s+ > s-) + P(s+ = s-)/2
//
// (Mann and Whitney 1947). 1/2 is chance. To see whether an uncertainty tells unknown inputs apart, give the known ones
// as negative. NaN scores are an [diag.ErrNotFinite], an empty list an [draws.ErrSize]; infinite scores are ordinary.
func AUROC(positive, negative []float64) (float64, error) {
	if len(positive) == 0 || len(negative) == 0 {
		return 0, failf(draws.ErrSize, "auroc: %d positive and %d negative scores, want at least one of each",
			len(positive), len(negative))
	}
	all := sortedCopy(negative)
	if low, _ := sample.Extremes([][]float64{positive, negative}); math.IsNaN(low) {
		return 0, failf(diag.ErrNotFinite, "auroc: a score is NaN")
	}
	sum := 0.0
	for _, v := range positive {
		sum += float64(below(all, v, false)+below(all, v, true)) / 2
	}
	return sum / float64(len(positive)) / float64(len(negative)), nil
}
