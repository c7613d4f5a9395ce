package kernel

import (
	"errors"

	"github.com/kelvin-ppl/kelvin/infer/internal/pathfind"
)

// approximate moves a chain from its start to a draw of the normal distribution that Pathfinder finds, whose covariance
// becomes the metric. At a point that is not finite, or without such a distribution, the chain stays where it is.
func (r *runner) approximate(c *chain, s *position, stream *stream) error {
	if !r.Pathfinder {
		return nil
	}
	fit, err := pathfind.Find(func(x, logp, grad []float64) error {
		for k := range logp {
			row := grad[k*r.d : (k+1)*r.d]
			value, err := point(c.gradient, x[k*r.d:(k+1)*r.d], row)
			if err != nil {
				return err
			}
			logp[k] = value / c.Temperature
			for i := range row {
				row[i] /= c.Temperature
			}
		}
		return nil
	}, s.X, pathfind.Options{}, func(z []float64) error {
		stream.Norms(z)
		return nil
	})
	if errors.Is(err, pathfind.ErrNone) || errors.Is(err, pathfind.ErrStart) {
		return nil
	}
	if err != nil {
		return err
	}
	z, at := make([]float64, r.d), position{X: make([]float64, r.d), Grad: make([]float64, r.d)}
	stream.Norms(z)
	fit.Draw(at.X, z)
	if at.LogP, err = point(c.gradient, at.X, at.Grad); err != nil {
		return err
	}
	if finite(at.LogP) {
		*s, c.Near = at, true
	}
	if r.given || r.KeepMetric || r.Metric == Unit {
		return nil
	}
	return c.setMetric(metricOf(fit.Normal, r.Metric))
}

// metricOf is a covariance as a metric of a kind.
func metricOf(q *pathfind.Normal, kind MetricKind) Metric {
	d := len(q.Mean)
	switch kind {
	case Diagonal:
		return diagonalMetric(q.Variances())
	case Dense:
		return denseMetric(d, q.Covariance())
	}
	diag := make([]float64, d)
	for i, s := range q.Scale {
		diag[i] = s * s
	}
	return lowRankMetric(diag, q.Vectors, q.Values)
}
