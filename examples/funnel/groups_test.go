package main

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// exactGroups are the posterior means of the six batches, mu, between and within. Given the standard deviations b and w
// the means of the batches are N(mu, b² + w²/5), mu is normal, and both can be integrated out; what is left is a sum
// over b and w.
func exactGroups(t *testing.T) [9]float64 {
	var means [6]float64 // less 1500
	var rows [6][]float64
	for _, line := range strings.Split(strings.TrimSpace(yields()), "\n")[1:] {
		v, err := strconv.ParseFloat(line[2:], 64)
		require.NoError(t, err)
		rows[line[0]-'A'] = append(rows[line[0]-'A'], v-1500)
		means[line[0]-'A'] += (v - 1500) / 5
	}
	within := 0.0 // sum of squares
	for j, row := range rows {
		require.Len(t, row, 5)
		for _, v := range row {
			within += (v - means[j]) * (v - means[j])
		}
	}
	all, sums := 0.0, [9]float64{}
	for b := 0.25; b < 250; b += 0.5 {
		for w := 20.25; w < 150; w += 0.5 {
			v := b*b + w*w/5
			precision, sum, squares := 1/1e4, 0.0, 0.0
			for _, m := range means {
				precision, sum, squares = precision+1/v, sum+m/v, squares+m*m/v
			}
			mu := sum / precision
			logp := -3*math.Log(v) - squares/2 + mu*mu*precision/2 - math.Log(precision)/2 -
				24*math.Log(w) - within/(2*w*w) - b*b/5000 - w*w/5000
			p := math.Exp(logp + 130)
			all += p
			for j, m := range means {
				k := 5 / (w * w)
				sums[j] += p * (1500 + (m*k+mu/(b*b))/(k+1/(b*b)))
			}
			sums[6], sums[7], sums[8] = sums[6]+p*(1500+mu), sums[7]+p*b, sums[8]+p*w
		}
	}
	for i := range sums {
		sums[i] /= all
	}
	return sums
}

// The rows are named by the levels of the file, and have the means of the quadrature within four standard errors.
func TestGroups(t *testing.T) {
	var printed strings.Builder
	summary, err := groups(context.Background(), &printed)
	require.NoError(t, err)
	want := exactGroups(t)
	names := []string{"batch A", "batch B", "batch C", "batch D", "batch E", "batch F", "mu", "between", "within"}
	require.Len(t, summary.Rows, len(names))
	for i, r := range summary.Rows {
		require.Equal(t, names[i], r.Name)
		require.InDelta(t, want[i], r.Mean, 4*r.MCSEMean, r.Name)
	}

	// A sample of another batch has the mean of mu, and the variance of mu with E b² and E w² (the law of total variance).
	// 16,000 draws of a law with a kurtosis of up to 5 have it within 4√(4/16000), 6 %, and print it in whole numbers.
	var mean, sd, variance float64
	_, err = fmt.Sscanf(printed.String()[strings.Index(printed.String(), "a sample"):],
		"a sample of another batch: %f, sd %f", &mean, &sd)
	require.NoError(t, err)
	for _, r := range summary.Rows[6:] {
		variance += r.SD * r.SD
		if r.Name != "mu" {
			variance += r.Mean * r.Mean
		}
	}
	require.InDelta(t, want[6], mean, 4*(summary.Rows[6].MCSEMean+sd/math.Sqrt(16000))+0.5)
	require.InEpsilon(t, math.Sqrt(variance), sd, 0.03+0.5/sd)
}
