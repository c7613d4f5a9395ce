package evidence

import (
	"math"

	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// Resampling is how particles are drawn anew by their weights. All are unbiased: a particle of weight W is drawn N·W
// times on average.
type Resampling string

// The schemes. They differ in the variance that they add: systematic and stratified the least, multinomial the most
// (Douc, Cappé and Moulines 2005).
const (
	Systematic  Resampling = "systematic"  // one number moves a grid of N (Kitagawa 1996); the default
	Stratified  Resampling = "stratified"  // a number for each of N strata
	Multinomial Resampling = "multinomial" // N independent draws
	Residual    Resampling = "residual"    // ⌊N·W⌋ copies, and multinomial draws of the rest (Liu and Chen 1998)
)

// ancestors are N indices drawn by weights W, which sum to 1, with N uniform numbers. They do not decrease, so that
// copies are neighbours.
func (r Resampling) ancestors(w, u []float64) []int {
	n := len(w)
	at := make([]float64, 0, n) // where the running sum of the weights is looked up, in units of 1/N
	switch r {
	case Stratified:
		for i := range n {
			at = append(at, float64(i)+u[i])
		}
	case Multinomial:
		at = ordered(u)
	case Residual:
		return residual(w, u)
	default:
		for i := range n {
			at = append(at, float64(i)+u[0])
		}
	}
	return sample.Systematic(w, at)
}

// ordered are N uniform order statistics times N, by the spacings of exponential numbers; one more is made of the last.
func ordered(u []float64) []float64 {
	n := len(u)
	out := make([]float64, n)
	// U_(n) = V^(1/n) and downwards: each is the largest of those that are left.
	top := 1.0
	for i := n - 1; i >= 0; i-- {
		top *= math.Pow(u[i], 1/float64(i+1))
		out[i] = top * float64(n)
	}
	return out
}

func residual(w, u []float64) []int {
	n := len(w)
	total := 0.0
	for _, v := range w {
		total += v
	}
	copies, rest := make([]int, n), make([]float64, n)
	left := n
	for i, v := range w {
		whole := math.Floor(float64(n) * v / total)
		copies[i], rest[i] = int(whole), float64(n)*v/total-whole
		left -= copies[i]
	}
	if left > 0 {
		for _, k := range sample.Systematic(rest, ordered(u[:left])) {
			copies[k]++
		}
	}
	out := make([]int, 0, n)
	for i, c := range copies {
		for range c {
			out = append(out, i)
		}
	}
	return out
}
