package main

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/diag/score"
)

// scaling: temperature scaling on validation data.
func (t *task) scaling(all map[string]outcome) ([]claim, error) {
	var out []claim
	for _, name := range []string{nameMAP, nameEnsemble} {
		o := all[name]
		fit, err := score.FitBinaryTemperature(o.validation.z, t.validation.isOne())
		if err != nil {
			return nil, err
		}
		v, err := scaled(o.validation.z, t.validation.label, fit.T)
		if err != nil {
			return nil, err
		}
		s, err := scaled(o.test.z, t.test.label, fit.T)
		if err != nil {
			return nil, err
		}
		out = append(out,
			claim{fmt.Sprintf("Temperature scaling lowers NLL and ECE of %s on the validation data, and no decision changes",
				o.row.Title),
				fmt.Sprintf("T = %.2f: %s", fit.T, v), v.margin()},
			claim{"and on the test data", s.String(), s.margin()})
	}
	return out, nil
}

// change is what dividing logits by a temperature does.
type change struct {
	nll, ece [2]float64 // before and after
	changed  int        // decisions
}

// margin is by how much NLL and ECE fall, the smaller one of the two, and below 0 where a decision changes.
func (c change) margin() float64 {
	if c.changed > 0 {
		return -float64(c.changed)
	}
	return min(c.nll[0]-c.nll[1], c.ece[0]-c.ece[1])
}

func (c change) String() string {
	return fmt.Sprintf("NLL %.4f → %.4f, ECE %.4f → %.4f, %d decisions changed", c.nll[0], c.nll[1], c.ece[0], c.ece[1],
		c.changed)
}

func scaled(logits []float64, label []int, temperature float64) (change, error) {
	var c change
	var decisions [2][]bool
	for i, divisor := range []float64{1, temperature} {
		var p, logp [][]float64
		for _, z := range logits {
			l := score.BinaryLogProbabilities(z / divisor)
			logp = append(logp, l[:])
			p = append(p, []float64{math.Exp(l[0]), math.Exp(l[1])})
			decisions[i] = append(decisions[i], l[1] > l[0])
		}
		scores, err := score.Score(logp, label)
		if err != nil {
			return c, err
		}
		r, err := score.ClassCalibration(p, label, score.Binning{Bins: bins})
		if err != nil {
			return c, err
		}
		c.nll[i], c.ece[i] = scores.LogLoss, r.ECE
	}
	for i := range logits {
		if decisions[0][i] != decisions[1][i] {
			c.changed++
		}
	}
	return c, nil
}
