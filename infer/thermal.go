package infer

// Thermal is a transform whose states have momenta, and momenta a temperature: a check of whether a sampler simulates its
// target, which holds site by site. (Wenzel et al. 2020, appendix I; Leimkuhler and Matthews 2015, section 6.1.5.)
type Thermal interface {
	// KineticTemperatures is m·M⁻¹m/d of each site of each chain, [K][sites], with the mass M that the method moves with and d
	// the size of the site. In equilibrium d/T times it has a χ² law with d degrees of freedom, so that it is T on average.
	KineticTemperatures(s State) ([][]float64, error)
}

// SiteMeans is, for each site of a layout, the mean over its elements of values: those of K chains, one after the other.
func SiteMeans(l *Layout, values []float64) [][]float64 {
	var out [][]float64
	for d := l.Dim(); d > 0 && len(values) >= d; values = values[d:] {
		row := make([]float64, len(l.Sites))
		for i, s := range l.Sites {
			for _, v := range values[s.Offset : s.Offset+s.Size] {
				row[i] += v
			}
			row[i] /= float64(s.Size)
		}
		out = append(out, row)
	}
	return out
}
