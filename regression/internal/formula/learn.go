package formula

import (
	"fmt"
	"slices"
)

// learn puts into the memory what the formula needs.
func (s *source) learn() error {
	for _, t := range s.f.Terms {
		if err := s.learnTerm(t); err != nil {
			return err
		}
	}
	for _, m := range s.f.Smooths {
		if err := s.learnSmooth(m); err != nil {
			return err
		}
	}
	for _, g := range s.f.Groups {
		for _, t := range g.Terms {
			if err := s.learnTerm(t); err != nil {
				return err
			}
		}
		if err := s.learnGroup(g); err != nil {
			return err
		}
	}
	return s.learnOutcome()
}

func (s *source) learnTerm(t Term) error {
	for _, e := range t.Factors {
		factor := false
		var err error
		if e.Kind == Column || e.Kind == Call {
			if factor, err = s.isFactor(e); err != nil {
				return err
			}
		}
		if !factor {
			if _, err := s.basis(e); err != nil {
				return err
			}
			continue
		}
		if err := s.learnFactor(e); err != nil {
			return err
		}
	}
	return nil
}

// learnFactor learns the levels of a factor of common terms, and checks them.
func (s *source) learnFactor(e Expr) error {
	c, err := s.factor(e)
	if err != nil {
		return err
	}
	_, levels := s.known(e.String(), c)
	if len(levels) < 2 {
		return s.wrong(e, "%s has one level in the training data, %q: a term needs at least two; leave it out", e,
			short(levels[0]))
	}
	if e.Kind == Call && e.Name == "C" {
		coding, bad := (&expansion{text: s.f.text}).coding(e)
		if bad != nil {
			return bad
		}
		if coding.reference != "" && !slices.Contains(levels, coding.reference) {
			return s.wrong(e, "%s has no level %q: %s", coding.column, short(coding.reference),
				nearest(coding.reference, levels))
		}
	}
	return nil
}

func (s *source) learnGroup(g Group) error {
	var all *codes
	for i, e := range slices.Concat(g.Factors, g.Members) {
		factor, err := s.isFactor(e)
		if err != nil {
			return err
		}
		if !factor {
			inner := e
			e = Apply("factor", inner)
			e.at = inner.at
		}
		c, err := s.factor(e)
		if err != nil {
			return err
		}
		s.known(e.String(), c)
		switch {
		case i == 0:
			all = c
		case g.Members != nil:
			all = union(all, c)
		default:
			all = combine(all, c)
		}
	}
	if twice := repeated(all.levels); twice != "" {
		return s.f.wrong(g.at, "two combinations of levels of "+g.Factor()+" have the name "+list([]string{twice})+
			": levels with a colon in their names cannot be combined")
	}
	s.known(g.with(s.m).Factor(), all)
	return nil
}

// union is a factor with the levels that rows have of either. It has no rows of its own.
func union(a, b *codes) *codes {
	out := &codes{}
	seen := map[string]bool{}
	for _, c := range []*codes{a, b} {
		for i, l := range c.levels {
			if c.used[i] && !seen[l] {
				seen[l] = true
				out.levels, out.used = append(out.levels, l), append(out.used, true)
			}
		}
	}
	return out
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

func (s *source) learnSmooth(m Smooth) error {
	centred := true
	if !m.By.None() {
		factor, err := s.isFactor(m.By)
		if err != nil {
			return err
		}
		if centred = factor; factor {
			if err := s.learnFactor(m.By); err != nil {
				return err
			}
		} else if _, err := s.numeric(m.By); err != nil {
			return err
		}
	}
	v, err := s.number(m.X)
	if err != nil {
		return err
	}
	x, k := v.full(s.t.Len()), m.k()
	if n := distinctCount(x, k); n < k {
		return s.f.wrong(m.at, Smooth{X: m.X, K: k}.few(n))
	}
	s.m.Numbers[m.key()] = newCubic(x, k, centred).numbers()
	return nil
}

// few says that there are fewer values than knots.
func (s Smooth) few(n int) string {
	out := fmt.Sprintf("%s has %s, and the basis of s() has dimension %d", s.X, differing(n), s.K)
	if n < 3 {
		return out + ": a factor or a line is enough for so few"
	}
	s.K = n
	return out + ": write " + s.String()
}
