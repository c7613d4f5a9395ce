package main

import (
	"fmt"
	"math"
	"strings"
)

const claimParts = "Aleatoric and epistemic uncertainty add up to the total, for entropy and for variance"

// decomposition: the parts of the uncertainty, each computed by itself, add up to the total.
func (t *task) decomposition(all map[string]outcome) ([]claim, error) {
	entropy, variance, count := 0.0, 0.0, 0
	for _, m := range methods {
		o := all[m.name]
		if m.name == nameMAP || strings.HasPrefix(m.name, "laplace_") && m.name != "laplace_draws" {
			continue // one draw, and probabilities that are not the mean over draws
		}
		for _, p := range []prediction{o.test, o.grid} {
			for i := range p.p {
				e, v := gaps(p.at(i))
				entropy, variance, count = max(entropy, e), max(variance, v), count+1
			}
		}
	}
	return []claim{{claimParts,
		fmt.Sprintf("greatest gap over %d predictions: entropy %.1e, variance %.1e", count, entropy, variance),
		1e-12 - max(entropy, variance)}}, nil
}

// gaps are total − aleatoric − epistemic of the draws of a logit: the epistemic part of the entropy is the mean of the
// divergences KL(p_s‖p̄), and that of the variance the mean of (p_s − p̄)².
func gaps(logits []float64) (entropy, variance float64) {
	n := float64(len(logits))
	var m [2]float64 // of each label by itself: 1 − p̄ has no digits where p̄ is near 1
	for _, z := range logits {
		m[0], m[1] = m[0]+sigmoid(-z)/n, m[1]+sigmoid(z)/n
	}
	var total, aleatoric, epistemic, bernoulli, spread float64
	for label, mean := range m {
		total -= xlog(mean, mean)
		for _, z := range logits {
			q := sigmoid(float64(2*label-1) * z)
			aleatoric -= xlog(q, q) / n
			epistemic += (xlog(q, q) - xlog(q, mean)) / n
		}
	}
	for _, z := range logits {
		bernoulli += sigmoid(z) * sigmoid(-z) / n
		spread += (sigmoid(z) - m[1]) * (sigmoid(z) - m[1]) / n
	}
	return math.Abs(total - aleatoric - epistemic), math.Abs(m[0]*m[1] - bernoulli - spread)
}

// xlog is x log y, and 0 where x is.
func xlog(x, y float64) float64 {
	if x == 0 {
		return 0
	}
	return x * math.Log(y)
}
