package posteriors

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
)

// Distance is the mean, over the parameters of the reference, of the 1-Wasserstein distances of draws to it, each in
// standard deviations of the reference.
func (r Reference) Distance(d *draws.Draws) (float64, error) {
	total, n := 0.0, 0
	for _, s := range d.Sites() {
		for i := range s.Size {
			theirs, ok := r[StanName(s, i)]
			if !ok {
				continue
			}
			var ours []float64
			for c := range d.Chains() {
				ours = append(ours, d.Element(c, s.Offset+i)...)
			}
			total += wasserstein(ours, slices.Concat(theirs...))
			n++
		}
	}
	if n != len(r) {
		return 0, fmt.Errorf("%d parameters of %d of the reference are in the draws", n, len(r))
	}
	return total / float64(n), nil
}

// wasserstein is ∫ |F − G| of the empirical distribution functions of a and b, which it sorts, in standard deviations
// of b.
func wasserstein(a, b []float64) float64 {
	slices.Sort(a)
	slices.Sort(b)
	mean, square := 0.0, 0.0
	for _, v := range b {
		mean += v / float64(len(b))
	}
	for _, v := range b {
		square += (v - mean) * (v - mean) / float64(len(b))
	}
	total, i, j, at := 0.0, 0, 0, math.Min(a[0], b[0])
	for i < len(a) || j < len(b) {
		next := math.Inf(1)
		if i < len(a) {
			next = a[i]
		}
		if j < len(b) {
			next = math.Min(next, b[j])
		}
		total += (next - at) * math.Abs(float64(i)/float64(len(a))-float64(j)/float64(len(b)))
		at = next
		for i < len(a) && a[i] <= at {
			i++
		}
		for j < len(b) && b[j] <= at {
			j++
		}
	}
	return total / math.Sqrt(square)
}

// StanName is the name of an element as Stan writes it: indices count from 1.
func StanName(s draws.Site, element int) string {
	if len(s.Shape) == 0 {
		return s.Name
	}
	index := make([]string, len(s.Shape))
	for i := len(s.Shape) - 1; i >= 0; i-- {
		n := int(s.Shape[i])
		index[i], element = fmt.Sprint(element%n+1), element/n
	}
	return s.Name + "[" + strings.Join(index, ",") + "]"
}

// MeanSD is the mean and the standard deviation of the draws of all chains.
func MeanSD(x [][]float64) (mean, sd float64) {
	n := 0.0
	for _, chain := range x {
		for _, v := range chain {
			n, mean = n+1, mean+v
		}
	}
	mean /= n
	for _, chain := range x {
		for _, v := range chain {
			sd += (v - mean) * (v - mean)
		}
	}
	return mean, math.Sqrt(sd / (n - 1))
}
