package classify

import "github.com/kelvin-ppl/kelvin/diag/score"

// Metrics are scores on the test data. Entropies are in nats.
type Metrics struct {
	NLL       float64 `json:"nll"` // of the averaged probabilities, as Accuracy, Brier and ECE
	Accuracy  float64 `json:"accuracy"`
	Brier     float64 `json:"brier"`
	ECE       float64 `json:"ece"`
	Gibbs     float64 `json:"gibbs_nll"` // mean NLL of single networks
	Epistemic float64 `json:"epistemic"` // mean over the test images
	Aleatoric float64 `json:"aleatoric"`
}

// Parts are pointers to all metrics, in order.
func (m *Metrics) Parts() []*float64 {
	return []*float64{&m.NLL, &m.Accuracy, &m.Brier, &m.ECE, &m.Gibbs, &m.Epistemic, &m.Aleatoric}
}

// Score is what the average over networks predicts, from their log probabilities [network][case][class].
func Score(logp [][][]float64, labels []int) (Metrics, error) {
	predictive, err := score.NewPredictive(len(labels), len(logp[0][0]))
	if err != nil {
		return Metrics{}, err
	}
	for _, p := range logp {
		if err := predictive.Add(p); err != nil {
			return Metrics{}, err
		}
	}
	scores, err := score.Score(predictive.LogMean(), labels)
	if err != nil {
		return Metrics{}, err
	}
	calibration, err := score.ClassCalibration(predictive.Mean(), labels, score.Binning{})
	if err != nil {
		return Metrics{}, err
	}
	gibbs, err := score.GibbsScoreOf(logp, labels)
	if err != nil {
		return Metrics{}, err
	}
	m := Metrics{NLL: scores.LogLoss, Accuracy: scores.Accuracy, Brier: scores.Brier, ECE: calibration.ECE,
		Gibbs: gibbs.Mean.LogLoss}
	for _, u := range predictive.Uncertainty() {
		m.Epistemic += u.Epistemic / float64(len(labels))
		m.Aleatoric += u.Aleatoric / float64(len(labels))
	}
	return m, nil
}
