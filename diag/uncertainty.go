package diag

import "math"

// Uncertainty is the uncertainty of one class prediction in nats, split in two.
type Uncertainty struct {
	// Total is the entropy of the averaged probabilities; Aleatoric is the average of the entropies, what stays when the
	// parameters are known; Epistemic is the difference, the mutual information of label and parameters, at least 0.
	Total, Aleatoric, Epistemic float64
}

// EntropyOf splits the uncertainty of a class prediction, from the class probabilities under each draw, [draw][class]:
//
//	H[mean p] = mean H[p] + I
//
// Depeweg, Hernández-Lobato, Doshi-Velez and Udluft (2018), Proceedings of Machine Learning Research 80. [ErrSize] and
// [ErrRange] are the errors.
func EntropyOf(p [][]float64) (Uncertainty, error) {
	if err := checkProbabilities("entropy", p, make([]int, len(p))); err != nil {
		return Uncertainty{}, err
	}
	var u Uncertainty
	mean := make([]float64, len(p[0]))
	for _, row := range p {
		u.Aleatoric += entropy(row) / float64(len(p))
		for k, v := range row {
			mean[k] += v / float64(len(p))
		}
	}
	u.Total = entropy(mean)
	u.Epistemic = max(u.Total-u.Aleatoric, 0) // below 0 by rounding only
	return u, nil
}

func entropy(p []float64) float64 {
	h := 0.0
	for _, v := range p {
		if v > 0 {
			h -= v * math.Log(v)
		}
	}
	return h
}
