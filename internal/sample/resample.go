package sample

// Systematic finds where a rising list of numbers, in units of 1/N of the total with N its length, falls into the
// running sum of the weights. The indices do not decrease. Grid numbers u, 1+u, ... with a uniform u make it systematic resampling
// (Kitagawa 1996).
func Systematic(w, at []float64) []int {
	n := float64(len(at))
	total := 0.0
	for _, v := range w {
		total += v
	}
	out := make([]int, 0, len(at))
	k, sum := 0, w[0]
	for _, a := range at {
		for sum*n < a*total && k < len(w)-1 {
			k++
			sum += w[k]
		}
		out = append(out, k)
	}
	return out
}
