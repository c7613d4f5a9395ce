package main

import (
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/kelvin-ppl/kelvin/examples/internal/classify"
	"github.com/kelvin-ppl/kelvin/examples/internal/seeds"
)

// estimate is a mean over repetitions and its standard error.
type estimate struct {
	Networks    int              `json:"networks"` // in each average
	Repetitions int              `json:"repetitions"`
	Mean        classify.Metrics `json:"mean"`
	SE          classify.Metrics `json:"se"`
}

// repeated scores several averages over networks that are independent of each other,
// [repetition][network][case][class].
func repeated(groups [][][][]float64, labels []int) (estimate, error) {
	all := make([]classify.Metrics, len(groups))
	for i, logp := range groups {
		var err error
		if all[i], err = classify.Score(logp, labels); err != nil {
			return estimate{}, err
		}
	}
	return estimateOf(len(groups[0]), all), nil
}

// estimateOf is the mean of the scores of repetitions, each an average over so many networks.
func estimateOf(networks int, all []classify.Metrics) estimate {
	e := estimate{Networks: networks, Repetitions: len(all)}
	mean, se := e.Mean.Parts(), e.SE.Parts()
	for j := range mean {
		x := make([]float64, len(all))
		for i := range all {
			x[i] = *all[i].Parts()[j]
		}
		e := seeds.Over(x)
		*mean[j], *se[j] = e.Mean, e.SE
	}
	return e
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
	full, err := classify.Score(without(-1), labels)
	if err != nil {
		return estimate{}, err
	}
	k := float64(len(chains))
	e := estimate{Networks: len(chains) * len(chains[0]), Repetitions: 1, Mean: full}
	parts := make([]classify.Metrics, len(chains))
	for i := range chains {
		if parts[i], err = classify.Score(without(i), labels); err != nil {
			return estimate{}, err
		}
	}
	for j, se := range e.SE.Parts() {
		x := make([]float64, len(parts))
		for i := range parts {
			x[i] = *parts[i].Parts()[j]
		}
		*se = math.Sqrt(k-1) * stat.PopStdDev(x, nil)
	}
	return e, nil
}
