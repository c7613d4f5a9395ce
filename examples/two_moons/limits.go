package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

const claimWide = "The variance of the output of networks drawn from the prior tends to the Gaussian process's as width grows (within 4 s.e.)"

// wideLimit: networks drawn from the prior become a Gaussian process as they grow wide, and their tangent kernels become one.
func (t *task) wideLimit(map[string]outcome) ([]claim, error) {
	a, b := [2]float64{1, 0.5}, [2]float64{-0.5, 1}
	limit := wide.kernel(a, b)
	var variances, covariances, shapes, tangents []string
	var ofVariance, ofCovariance, kurtosis, ofTangent []float64 // distances from the limit in standard errors, at each width
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
		shapes = append(shapes, fmt.Sprintf("%d: %.3f (%.3f)", width, sampleExcessKurtosis(fa), wide.excessKurtosis(a, width)))
	}
	tangent := wide.tangentKernel(a, b)
	for _, width := range []int64{50, 100, 200, 400} {
		k, err := wide.tangentKernels(a, b, width, t.tangents, t.seed)
		if err != nil {
			return nil, err
		}
		m, se := meanError(k)
		tangents = append(tangents, fmt.Sprintf("%d: %.3f ± %.3f", width, m, se))
		ofTangent = append(ofTangent, math.Abs(m-tangent)/se)
	}
	last := func(x []float64) float64 { return x[len(x)-1] }
	return []claim{
		{claimWide, fmt.Sprintf("kernel %.4f; %s; at most %.1f s.e. away. For ReLU it is the kernel at every width",
			limit.aa, strings.Join(variances, ", "), slices.Max(ofVariance)), last(ofVariance) <= 4},
		{"So does the covariance of the outputs at two points (within 4 s.e.)",
			fmt.Sprintf("kernel %.4f; %s", limit.ab, strings.Join(covariances, ", ")), last(ofCovariance) <= 4},
		{"What width changes is the shape: the excess kurtosis is smaller at width 2000 than at 50",
			"sample (exact) " + strings.Join(shapes, ", "), math.Abs(last(kurtosis)) < kurtosis[0]},
		{"The neural tangent kernel at the two points tends to its limit as width grows (within 4 s.e.)",
			fmt.Sprintf("limit %.3f; %s", tangent, strings.Join(tangents, ", ")), last(ofTangent) <= 4},
	}, nil
}
