package main

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

const (
	episodes = 5    // on the intervals [0, 1], [1, 2], ... of the inputs
	points   = 20   // of an episode
	tests    = 50   // of an episode, without noise
	noise    = 0.2  // standard deviation of an observation
	gridStep = 0.05 // of the inputs in the pictures
)

// A seed's numbers come from stream (seed, 0) of everything but the data: samples of variational inference from the
// start of the stream, and the first point of an optimiser and the draws of predictions from far along it.
const (
	starts      = 1 << 40
	predictions = 1 << 41
)

// truth is the function to learn.
func truth(x float64) float64 { return math.Sin(x) + 0.5*math.Sin(2*x) + 0.1*math.Sin(3*x) }

// series is inputs and outputs.
type series struct {
	x, y []float64
}

// batch is a series as tensors: x of shape [n, 1] and y of shape [n].
func (s series) batch() (infer.Batch, error) {
	x, err := torch.FromSlice(s.x, len(s.x), 1)
	if err != nil {
		return nil, err
	}
	y, err := torch.FromSlice(s.y)
	return infer.Batch{"x": x, "y": y}, err
}

// observe draws the episodes: inputs uniform on an episode's interval, outputs with noise. The numbers come from a
// stream of their own.
func observe(seed uint64) ([]series, error) {
	out := make([]series, episodes)
	err := torch.Do(func(*torch.Scope) error {
		source := torch.NewSource(seed, math.MaxUint64)
		for i := range out {
			uniform, err := source.Uniform([]int{points}, gotch.Double, torch.CPU)
			if err != nil {
				return err
			}
			normal, err := source.Normal([]int{points}, gotch.Double, torch.CPU)
			if err != nil {
				return err
			}
			u, err := torch.ToSlice[float64](uniform)
			if err != nil {
				return err
			}
			eps, err := torch.ToSlice[float64](normal)
			if err != nil {
				return err
			}
			for j := range u {
				x := float64(i) + u[j]
				out[i].x, out[i].y = append(out[i].x, x), append(out[i].y, truth(x)+noise*eps[j])
			}
		}
		return nil
	})
	return out, err
}

// exam is the true function at points spread evenly over the interval of an episode.
func exam(episode int) series {
	var s series
	for i := range tests {
		x := float64(episode) + (float64(i)+0.5)/tests
		s.x, s.y = append(s.x, x), append(s.y, truth(x))
	}
	return s
}

// grid is the true function on the whole range, and a little beyond, for the pictures.
func grid() series {
	var s series
	for i := -4; i <= int(math.Round(episodes/gridStep))+4; i++ {
		s.x, s.y = append(s.x, float64(i)*gridStep), append(s.y, truth(float64(i)*gridStep))
	}
	return s
}
