package main

import (
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/kelvin-ppl/kelvin/diag/score"
)

// metrics are scores on the test data. Entropies are in nats.
type metrics struct {
	NLL       float64 `json:"nll"` // of the averaged probabilities, as Accuracy, Brier and ECE
	Accuracy  float64 `json:"accuracy"`
	Brier     float64 `json:"brier"`
	ECE       float64 `json:"ece"`
	Gibbs     float64 `json:"gibbs_nll"` // mean NLL of single networks
	Epistemic float64 `json:"epistemic"` // mean over the test images
	Aleatoric float64 `json:"aleatoric"`
}

// parts are pointers to all metrics, in order.
func (m *metrics) parts() []*float64 {
	return []*float64{&m.NLL, &m.Accuracy, &m.Brier, &m.ECE, &m.Gibbs, &m.Epistemic, &m.Aleatoric}
}

// scored is what the average over networks predicts, from their log probabilities [network][case][class].
func scored(logp [][][]float64, labels []int) (metrics, error) {
	predictive, err := score.NewPredictive(len(labels), len(logp[0][0]))
	if err != nil {
		return metrics{}, err
	}
	for _, p := range logp {
		if err := predictive.Add(p); err != nil {
			return metrics{}, err
		}
	}
	scores, err := score.Score(predictive.LogMean(), labels)
	if err != nil {
		return metrics{}, err
	}
	calibration, err := score.ClassCalibration(predictive.Mean(), labels, score.Binning{})
	if err != nil {
		return metrics{}, err
	}
	gibbs, err := score.GibbsScoreOf(logp, labels)
	if err != nil {
		return metrics{}, err
	}
	m := metrics{NLL: scores.LogLoss, Accuracy: scores.Accuracy, Brier: scores.Brier, ECE: calibration.ECE,
		Gibbs: gibbs.Mean.LogLoss}
	for _, u := range predictive.Uncertainty() {
		m.Epistemic += u.Epistemic / float64(len(labels))
		m.Aleatoric += u.Aleatoric / float64(len(labels))
	}
	return m, nil
}

// estimate is a mean over repetitions and its standard error.
type estimate struct {
	Networks    int     `json:"networks"` // in each average
	Repetitions int     `json:"repetitions"`
	Mean        metrics `json:"mean"`
	SE          metrics `json:"se"`
}

// repeated scores several averages over networks that are independent of each other,
// [repetition][network][case][class].
func repeated(groups [][][][]float64, labels []int) (estimate, error) {
	all := make([]metrics, len(groups))
	for i, logp := range groups {
		var err error
		if all[i], err = scored(logp, labels); err != nil {
			return estimate{}, err
		}
	}
	e := estimate{Networks: len(groups[0]), Repetitions: len(groups)}
	mean, se := e.Mean.parts(), e.SE.parts()
	for j := range mean {
		x := make([]float64, len(all))
		for i := range all {
			x[i] = *all[i].parts()[j]
		}
		var sd float64
		*mean[j], sd = stat.MeanStdDev(x, nil)
		*se[j] = sd / math.Sqrt(float64(len(x)))
	}
	return e, nil
}

// pooled scores the average over all networks of all chains. Its standard error is the jackknife's over chains (Efron
// and Stein 1981).
func pooled(chains [][][][]float64, labels []int) (estimate, error) {
	without := func(left int) (all [][][]float64) {
		for k, chain := range chains {
			if k != left {
				all = append(all, chain...)
			}
		}
		return all
	}
	full, err := scored(without(-1), labels)
	if err != nil {
		return estimate{}, err
	}
	k := float64(len(chains))
	e := estimate{Networks: len(chains) * len(chains[0]), Repetitions: 1, Mean: full}
	parts := make([]metrics, len(chains))
	for i := range chains {
		if parts[i], err = scored(without(i), labels); err != nil {
			return estimate{}, err
		}
	}
	for j, se := range e.SE.parts() {
		x := make([]float64, len(parts))
		for i := range parts {
			x[i] = *parts[i].parts()[j]
		}
		*se = math.Sqrt(k-1) * stat.PopStdDev(x, nil)
	}
	return e, nil
}
