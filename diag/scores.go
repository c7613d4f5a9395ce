package diag

import "math"

// checkProbabilities checks predicted probabilities, [case][class], and labels 0 to classes-1.
func checkProbabilities(doing string, p [][]float64, label []int) error {
	if len(p) == 0 || len(p[0]) == 0 {
		return failf(ErrSize, "%s: at least one case with at least one class is needed", doing)
	}
	if len(label) != len(p) {
		return failf(ErrSize, "%s: %d labels, want %d, one per case", doing, len(label), len(p))
	}
	for i, row := range p {
		if len(row) != len(p[0]) {
			return failf(ErrSize, "%s: case %d has %d classes, want %d as case 0", doing, i, len(row), len(p[0]))
		}
		sum := 0.0
		for _, v := range row {
			if err := checkProbability(doing, v); err != nil {
				return err
			}
			sum += v
		}
		if math.Abs(sum-1) > 1e-6 {
			return failf(ErrRange, "%s: the probabilities of case %d sum to %v, want 1", doing, i, sum)
		}
		if label[i] < 0 || label[i] >= len(row) {
			return failf(ErrRange, "%s: label %d is %d, want 0 to %d", doing, i, label[i], len(row)-1)
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

// Score compares predicted probabilities, [case][class], with the labels. For a Bayesian prediction they are the averages
// of the probabilities over the draws. Gneiting and Raftery (2007), Journal of the American Statistical Association 102,
// 359-378. [ErrSize] and [ErrRange] are the errors.
func Score(p [][]float64, label []int) (Scores, error) {
	if err := checkProbabilities("score", p, label); err != nil {
		return Scores{}, err
	}
	var s Scores
	n := float64(len(p))
	for i, row := range p {
		s.LogLoss -= math.Log(row[label[i]]) / n
		for k, v := range row {
			if k == label[i] {
				v -= 1
			}
			s.Brier += v * v / n
		}
		if class, _ := top(row); class == label[i] {
			s.Accuracy += 1 / n
		}
	}
	return s, nil
}

// AUROC is the area under the receiver operating characteristic: the probability that a score of a positive case is
// larger than one of a negative case, equal scores counting half,
//
//	P(s+ > s-) + P(s+ = s-)/2
//
// (Mann and Whitney 1947). 1/2 is chance. To see whether an uncertainty tells unknown inputs apart, give the known ones as
// negative. NaN scores are an [ErrNotFinite], an empty list an [ErrSize]; infinite scores are ordinary.
func AUROC(positive, negative []float64) (float64, error) {
	if len(positive) == 0 || len(negative) == 0 {
		return 0, failf(ErrSize, "auroc: %d positive and %d negative scores, want at least one of each", len(positive), len(negative))
	}
	all := sortedCopy(negative)
	if low, _ := extremes([][]float64{positive, negative}); math.IsNaN(low) {
		return 0, failf(ErrNotFinite, "auroc: a score is NaN")
	}
	sum := 0.0
	for _, v := range positive {
		sum += float64(below(all, v, false)+below(all, v, true)) / 2
	}
	return sum / float64(len(positive)) / float64(len(negative)), nil
}
