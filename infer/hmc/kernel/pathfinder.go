package kernel

import (
	"errors"
	"math"

	"github.com/kelvin-ppl/kelvin/infer/internal/pathfind"
)

// trusted is the largest standard deviation of log p - log q at which a normal distribution q is taken for the target
// p. Of draws of q, weighted by p/q, the share exp(-3) counts there, one in twenty, if the logarithms are normal. A
// worse q is most often too narrow, and makes trees longer for hundreds of transitions. It is a start alone where the
// metric is diagonal and follows the draws, since a chain finds variances in some; correlations, and Stan's windows,
// take many, and q is worth it even so.
var trusted = math.Sqrt(3)

// approximate moves a chain from its start to a draw of the normal distribution that Pathfinder finds, whose covariance
// becomes the metric. At a point that is not finite, without such a distribution, or where the target has unit scale
// already, the chain stays where it is.
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
	}, s.X, pathfind.Options{Brief: true}, func(z []float64) error {
		stream.Norms(z)
		return nil
	})
	for _, without := range []error{pathfind.ErrNone, pathfind.ErrStart, pathfind.ErrUnit} {
		if errors.Is(err, without) {
			return nil
		}
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
	near := r.Windows || r.Metric != Diagonal || fit.Spread <= trusted
	if finite(at.LogP) {
		*s, c.Near = at, near
	}
	if !near {
		return nil
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
