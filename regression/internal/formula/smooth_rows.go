package formula

// SmoothRows are the penalised columns of a smooth, N x SmoothDesign.Columns: their coefficients are iid normal. Those
// of one level are 0 in rows of other levels.
type SmoothRows struct {
	Z []float64
}

// smooth has the penalised columns, and writes the others into the common ones.
func (s *source) smooth(m smooth, x []float64, p, at int) ([]float64, error) {
	v, err := s.number(m.of.X)
	if err != nil {
		return nil, err
	}
	by := vector{c: 1}
	var codes []int32
	if m.level >= 0 {
		codes, err = s.levels(m.of.By)
	} else if !m.of.By.None() {
		by, err = s.numeric(m.of.By)
	}
	if err != nil {
		return nil, err
	}
	n, width := s.t.Len(), m.of.k()-2
	z := make([]float64, n*width)
	for i := range n {
		if codes != nil && int(codes[i]) != m.level {
			continue
		}
		row, w := z[i*width:(i+1)*width], by.at(i)
		u := (v.at(i) - m.cubic.mean) / m.cubic.sd
		m.cubic.evaluate(u, row)
		for j := range row {
			if row[j] *= w; !finite(row[j]) {
				return nil, cell(i, m.of.X, number(v.at(i)),
					"the smooth is not finite there: it is too far from the training data")
			}
		}
		if len(m.linear) == 2 {
			x[i*p+at], x[i*p+at+1] = w, w*u
		} else {
			x[i*p+at] = u
		}
	}
	return z, nil
}
