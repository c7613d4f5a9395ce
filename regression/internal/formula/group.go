package formula

// GroupRows are the columns of a group of terms.
type GroupRows struct {
	X []float64 // N x len(GroupDesign.Columns)
	// Index has the place of the level of each row in GroupDesign.Levels, N x GroupDesign.Members; -1 for another
	// level.
	Index []int
	// Weights of the levels of each row in a multi-membership, of the shape of Index and of sum 1; nil otherwise.
	Weights []float64
	Unseen  []string // levels that the training data do not have, in the order of the table
	New     []int    // place in Unseen where Index is -1, and -1 elsewhere; nil without such levels
}

// group has the columns and the levels of a group.
func (s *source) group(g group) (GroupRows, error) {
	n, p := s.t.Len(), len(g.columns)
	out := GroupRows{X: make([]float64, n*p), Index: make([]int, n*g.Members)}
	if err := s.fill(g.columns, out.X, p); err != nil {
		return out, err
	}
	var factors []*codes
	if g.of.Members == nil {
		c, err := s.product(g.of.Factors)
		if err != nil {
			return out, err
		}
		factors = append(factors, c)
	}
	for _, e := range g.of.Members {
		c, err := s.factor(e)
		if err != nil {
			return out, err
		}
		factors = append(factors, c)
	}
	fresh := map[string]int{}
	for m, c := range factors {
		to := matched(c.levels, g.Levels)
		for k, l := range c.levels {
			if _, known := fresh[l]; to[k] < 0 && c.used[k] && !known {
				fresh[l] = len(out.Unseen)
				out.Unseen = append(out.Unseen, l)
			}
		}
		for i, code := range c.of {
			out.Index[i*g.Members+m] = int(to[code])
		}
	}
	if out.Unseen != nil {
		out.New = make([]int, len(out.Index))
		for m, c := range factors {
			for i, code := range c.of {
				out.New[i*g.Members+m] = -1
				if out.Index[i*g.Members+m] < 0 {
					out.New[i*g.Members+m] = fresh[c.levels[code]]
				}
			}
		}
	}
	var err error
	if g.Members > 1 {
		out.Weights, err = s.memberWeights(g)
	}
	return out, err
}

// memberWeights are those of a multi-membership: all the same, or those stated by their sum.
func (s *source) memberWeights(g group) ([]float64, error) {
	out := make([]float64, s.t.Len()*g.Members)
	weights := make([]vector, g.Members)
	for m := range weights {
		weights[m] = vector{c: 1}
		if g.of.Weights != nil {
			var err error
			if weights[m], err = s.number(g.of.Weights[m]); err != nil {
				return nil, err
			}
		}
	}
	for i := range s.t.Len() {
		total := 0.0
		for m, w := range weights {
			if w.at(i) < 0 {
				return nil, cell(i, g.of.Weights[m], number(w.at(i)), "a weight of mm() is at least 0")
			}
			total += w.at(i)
		}
		if !(total > 0) || !finite(total) {
			return nil, cell(i, g.of.Weights[0], "",
				"the weights of mm() have the sum "+number(total)+": it must be above 0")
		}
		for m, w := range weights {
			out[i*g.Members+m] = w.at(i) / total
		}
	}
	return out, nil
}
