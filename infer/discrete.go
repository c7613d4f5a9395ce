package infer

import (
	"fmt"
	"strings"
)

// fit tells a transform of updates how long the warm-up is, where it asks, and refuses a method that cannot move the
// discrete sites of the program.
func (s *session) fit() error {
	if p, ok := s.program.(interface{ Discrete() []string }); ok {
		if names := p.Discrete(); len(names) > 0 {
			if _, ok := s.transform.(interface{ MovesWholeNumbers() }); !ok {
				return fmt.Errorf("%s cannot move the discrete site %q, which has no gradient: give the method gibbs.Blocks{"+
					"{Sites: []string{%s}, Method: gibbs.Discrete{}}, {Sites: []string{gibbs.Rest}, Method: ...}}, with this method "+
					"for the rest: %w", s.name, names[0], `"`+strings.Join(names, `", "`)+`"`, ErrConfig)
			}
		}
	}
	if _, drives := s.transform.(Driver); drives {
		return nil
	}
	t, ok := s.transform.(interface {
		WithWarmup(updates int) (Transform, error)
	})
	if !ok {
		return nil
	}
	var err error
	s.transform, err = t.WithWarmup(s.o.Warmup)
	return err
}
