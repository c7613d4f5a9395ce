package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
)

// tuneSeed is that of the adapters and shuffles on which settings are chosen. It is never scored.
const tuneSeed = 1001

// tried is a setting of -tune. Its loss is that of a model of each episode alone, or above that after the last episode.
type tried struct {
	Setting string  `json:"setting"`
	Loss    float64 `json:"loss"`
}

// tune compares learning rates by the mean loss of models of each episode alone. With the best it compares λ by the
// metric of figure 6 after the last episode. All losses are of the validation parts of the texts.
func (m *language) tune(ctx context.Context, w io.Writer, s settings, base *trained, texts map[string]text,
	asJSON bool) error {
	learn := func(rate float64, ways []way) (learned, error) {
		s.EpisodeLR = rate
		a, err := m.adapt(s, base, texts, tuneSeed, func(t text) []int { return t.validation })
		if err != nil {
			return learned{}, err
		}
		return a.learn(ctx, ways)
	}
	var rates, lambdas []tried
	best, least := 0.0, 0.0
	for _, rate := range []float64{1e-3, 3e-3, 1e-2, 3e-2} {
		l, err := learn(rate, nil)
		if err != nil {
			return err
		}
		mean := 0.0
		for _, x := range l.Single {
			mean += x / float64(len(l.Single))
		}
		if best == 0 || mean < least {
			best, least = rate, mean
		}
		rates = append(rates, tried{fmt.Sprintf("learning rate %g", rate), mean})
	}
	ways := []way{{name: sequential}}
	for _, lambda := range []float64{0.1, 0.3, 1, 3, 10, 30, 100} {
		ways = append(ways, laplaceWay(lambda))
	}
	l, err := learn(best, ways)
	if err != nil {
		return err
	}
	for _, one := range ways {
		lambdas = append(lambdas, tried{one.name, excess(l.Losses[one.name], l.Single)[len(episodes)-1]})
	}
	if asJSON {
		return json.NewEncoder(w).Encode(map[string][]tried{"rates": rates, "lambdas": lambdas})
	}
	for _, t := range []struct {
		title string
		rows  []tried
	}{{"Loss of a model of each episode alone", rates},
		{fmt.Sprintf("Loss above it after the last episode, learning rate %g", best), lambdas}} {
		if _, err := fmt.Fprintf(w, "\n%s, validation parts, nats for a character\n", t.title); err != nil {
			return err
		}
		for _, row := range t.rows {
			if _, err := fmt.Fprintf(w, "%-24s  %.4f\n", row.Setting, row.Loss); err != nil {
				return err
			}
		}
	}
	return nil
}
