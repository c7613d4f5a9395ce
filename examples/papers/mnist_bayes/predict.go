package main

import (
	"github.com/kelvin-ppl/kelvin/diag/score"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// scores are what networks predict of the test images.
type scores struct {
	Gibbs         float64 `json:"gibbs"`          // mean loss of single networks, in nats for each image
	GibbsAccuracy float64 `json:"gibbs_accuracy"` // their mean accuracy
	Loss          float64 `json:"loss"`           // of the mean of their probabilities: −log score
	Accuracy      float64 `json:"accuracy"`
	Networks      int     `json:"networks"`
}

// predicted scores points, [k][d]. A network is evaluated at a time, so that memory does not grow with them.
func (p *problem) predicted(n *network, points [][]float64) (scores, error) {
	all, err := score.NewPredictive(len(p.scored), int(n.net.Out()[0]))
	if err != nil {
		return scores{}, err
	}
	s := scores{Networks: len(points)}
	for _, flat := range points {
		logp, err := logProbabilities(n, flat, p.images)
		if err != nil {
			return s, err
		}
		if err := all.Add(logp); err != nil {
			return s, err
		}
		one, err := score.Score(logp, p.scored)
		if err != nil {
			return s, err
		}
		s.Gibbs += one.LogLoss / float64(len(points))
		s.GibbsAccuracy += one.Accuracy / float64(len(points))
	}
	together, err := score.Score(all.LogMean(), p.scored)
	s.Loss, s.Accuracy = together.LogLoss, together.Accuracy
	return s, err
}

// logProbabilities are those of a network for each image and class.
func logProbabilities(n *network, flat []float64, images torch.Tensor) (rows [][]float64, err error) {
	point, err := infer.NewParams(n.net.Layout(), flat)
	if err != nil {
		return nil, err
	}
	err = torch.Do(func(*torch.Scope) error {
		return torch.NoGrad(func() error {
			values, err := torch.ToSlice[float64](n.logits(point, images).LogSoftmax(-1))
			for classes := int(n.net.Out()[0]); len(values) > 0; values = values[classes:] {
				rows = append(rows, values[:classes])
			}
			return err
		})
	})
	return rows, err
}

// loss is E(w)/n, the mean loss of a network for the images that it is trained with.
func (p *problem) loss(n *network, flat []float64) (float64, error) {
	logp, err := logProbabilities(n, flat, p.batch["x"])
	if err != nil {
		return 0, err
	}
	s, err := score.Score(logp, p.train.Labels)
	return s.LogLoss, err
}
