package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

const claimWide = "The variance of the output of networks drawn from the prior tends to the Gaussian process's as " +
	"width grows (within 4 s.e.)"

// wideLimit: networks drawn from the prior become a Gaussian process as they grow wide, and their tangent kernels
// become one.
func (t *task) wideLimit(map[string]outcome) ([]claim, error) {
	a, b := [2]float64{1, 0.5}, [2]float64{-0.5, 1}
	limit, err := wide.kernel(a, b)
	if err != nil {
		return nil, err
	}
	var variances, covariances, shapes, tangents []string
	// distances from the limit in standard errors, at each width
	var ofVariance, ofCovariance, kurtosis, ofTangent []float64
	for _, width := range []int{50, 100, 200, 500, 1000, 2000} {
		fa, fb, err := wide.outputs(a, b, width, t.priorDraws, t.seed)
		if err != nil {
			return nil, err
		}
		m, se := meanError(products(fa, fa))
		variances = append(variances, fmt.Sprintf("%d: %.4f ± %.4f", width, m, se))
		ofVariance = append(ofVariance, math.Abs(m-limit.aa)/se)
		m, se = meanError(products(fa, fb))
		covariances = append(covariances, fmt.Sprintf("%d: %.4f ± %.4f", width, m, se))
		ofCovariance = append(ofCovariance, math.Abs(m-limit.ab)/se)
		kurtosis = append(kurtosis, sampleExcessKurtosis(fa))
		shapes = append(shapes, fmt.Sprintf("%d: %.3f (%.3f)", width, sampleExcessKurtosis(fa),
			wide.excessKurtosis(a, width)))
	}
	tangent, err := wide.tangentKernel(a, b)
	if err != nil {
		return nil, err
	}
	for _, width := range []int{50, 100, 200, 400} {
		k, err := wide.tangentKernels(a, b, width, t.tangents, t.seed)
		if err != nil {
			return nil, err
		}
		m, se := meanError(k)
		tangents = append(tangents, fmt.Sprintf("%d: %.3f ± %.3f", width, m, se))
		ofTangent = append(ofTangent, math.Abs(m-tangent)/se)
	}
	far, nearer, descents, err := t.descents()
	if err != nil {
		return nil, err
	}
	last := func(x []float64) float64 { return x[len(x)-1] }
	return []claim{
		{claimWide, fmt.Sprintf("kernel %.4f; %s; at most %.1f s.e. away. For ReLU it is the kernel at every width",
			limit.aa, strings.Join(variances, ", "), slices.Max(ofVariance)), 4 - last(ofVariance)},
		{"So does the covariance of the outputs at two points (within 4 s.e.)",
			fmt.Sprintf("kernel %.4f; %s", limit.ab, strings.Join(covariances, ", ")), 4 - last(ofCovariance)},
		{"What width changes is the shape: the excess kurtosis is smaller at width 2000 than at 50",
			"sample (exact) " + strings.Join(shapes, ", "), kurtosis[0] - math.Abs(last(kurtosis))},
		{"The neural tangent kernel at the two points tends to its limit as width grows (within 4 s.e.)",
			fmt.Sprintf("limit %.3f; %s", tangent, strings.Join(tangents, ", ")), 4 - last(ofTangent)},
		{"The tangent kernel of the start says where gradient descent takes the linearised network (to 1e-8)",
			fmt.Sprintf("largest distance at new points %.1e", far), 1e-8 - far},
		{"And the network itself, nearer at width 400 than at 25", "mean distance at new points " + descents, nearer},
	}, nil
}

// descents compare 20 steps of descent on 8 of the training points with what the tangent kernel of the start says at 20
// test points, for networks of growing width: the largest distance of the linearised ones, and by how much the mean
// distance of the networks is smaller at the greatest width than at the least.
func (t *task) descents() (linear, nearer float64, text string, err error) {
	const train, test, steps = 8, 20, 20
	var x [][2]float64
	var y []float64
	for i := range train {
		k := i * len(t.train.x) / train
		x, y = append(x, t.train.x[k]), append(y, float64(2*t.train.label[k]-1))
	}
	var texts []string
	var means []float64
	for _, width := range []int{25, 100, 400} {
		var distances []float64
		for draw := range uint64(t.descended) {
			d, err := wide.descend(width, x, t.test.x[:min(test, len(t.test.x))], y, steps, t.seed*uint64(t.descended)+draw)
			if err != nil {
				return 0, 0, "", err
			}
			linear = max(linear, furthest(d.linear, d.kernel))
			sum := 0.0
			for i, f := range d.network {
				sum += math.Abs(f - d.kernel[i])
			}
			distances = append(distances, sum/float64(len(d.network)))
		}
		m, se := meanError(distances)
		means = append(means, m)
		texts = append(texts, fmt.Sprintf("%d: %.3f ± %.3f", width, m, se))
	}
	return linear, means[0] - means[2], strings.Join(texts, ", "), nil
}
