package formula

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/internal/sample"
	"gonum.org/v1/gonum/floats"
)

// GroupRows are the columns of a group of terms.
type GroupRows struct {
	X []float64 // N x len(GroupDesign.Columns)
	// Index has the place of the level of each row in GroupDesign.Levels, N x GroupDesign.Members. Levels that the
	// training data do not have follow, as in Unseen.
	Index []int
	// Weights of the levels of each row in a multi-membership, of the shape of Index and of sum 1; nil otherwise.
	Weights []float64
	Unseen  []string // levels that the training data do not have, in the order of the table
}

// newGroup is a group without levels and columns.
func newGroup(g Group) group {
	return group{of: g, GroupDesign: GroupDesign{Name: g.String(), Factor: g.Factor(), Correlated: g.Correlated,
		Members: max(1, len(g.Members))}}
}

// newGroup learns the levels of a group, and plans its columns.
func (p *planner) newGroup(g Group) (group, error) {
	out := newGroup(g)
	columns, err := p.columns(g.Terms, g.Intercept)
	if err != nil {
		return out, err
	}
	factors, err := p.s.groupFactors(g)
	if err != nil {
		return out, err
	}
	for _, c := range factors {
		for _, l := range c.present() {
			if g.Members == nil || !slices.Contains(out.Levels, l) {
				out.Levels = append(out.Levels, l)
			}
		}
	}
	if twice := repeated(out.Levels); twice != "" {
		return out, p.s.f.wrong(g.at, "two combinations of levels of "+g.Factor()+" have the name "+list([]string{twice})+
			": levels with a colon in their names cannot be combined")
	}
	if len(out.Levels) < 2 {
		return out, p.s.f.wrong(g.at, fmt.Sprintf("%s has one level in the training data, %q: effects of levels need at "+
			"least two; leave the group out", g.Factor(), short(out.Levels[0])))
	}
	if g.Intercept {
		out.columns = []column{{name: "Intercept"}}
	}
	out.columns = append(out.columns, columns...)
	for _, c := range out.columns {
		out.Columns = append(out.Columns, c.name)
	}
	return out, nil
}

func repeated(levels []string) string {
	seen := make(map[string]bool, len(levels))
	for _, l := range levels {
		if seen[l] {
			return l
		}
		seen[l] = true
	}
	return ""
}

// groupFactors are those that give the levels of a group: the product of its factors, or each member.
func (s *source) groupFactors(g Group) (out []*codes, err error) {
	if g.Members == nil {
		c, err := s.product(g.Factors)
		return []*codes{c}, err
	}
	for _, e := range g.Members {
		c, err := s.factor(e)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// group has the columns and the levels of a group.
func (s *source) group(g group) (GroupRows, error) {
	n, p := s.t.Len(), len(g.columns)
	out := GroupRows{X: make([]float64, n*p), Index: make([]int, n*g.Members)}
	if err := s.fill(g.columns, out.X, p); err != nil {
		return out, err
	}
	factors, err := s.groupFactors(g.of)
	if err != nil {
		return out, err
	}
	for m, c := range factors {
		to := matched(c.levels, slices.Concat(g.Levels, out.Unseen))
		for k, l := range c.levels {
			if to[k] < 0 && c.used[k] {
				to[k] = int32(len(g.Levels) + len(out.Unseen))
				out.Unseen = append(out.Unseen, l)
			}
		}
		for i, code := range c.of {
			out.Index[i*g.Members+m] = int(to[code])
		}
	}
	if g.Members > 1 {
		out.Weights, err = s.memberWeights(g)
	}
	return out, err
}

// memberWeights are those of a multi-membership: all the same, or those stated by their sum.
func (s *source) memberWeights(g group) ([]float64, error) {
	if g.of.Weights == nil {
		return slices.Repeat([]float64{1 / float64(g.Members)}, s.t.Len()*g.Members), nil
	}
	out := make([]float64, s.t.Len()*g.Members)
	for m, e := range g.of.Weights {
		w, err := s.number(e)
		if err != nil {
			return nil, err
		}
		for i, v := range w {
			if out[i*g.Members+m] = v; v < 0 {
				return nil, cell(i, e, number(v), "a weight of mm() is at least 0")
			}
		}
	}
	for i := range s.t.Len() {
		row := out[i*g.Members : (i+1)*g.Members]
		total := floats.Sum(row)
		if !(total > 0) || !sample.Finite(total) {
			return nil, cell(i, g.of.Weights[0], "",
				"the weights of mm() have the sum "+number(total)+": it must be above 0")
		}
		for m := range row {
			row[m] /= total
		}
	}
	return out, nil
}
