package infer

import (
	"fmt"
	"strings"
)

// checkDiscrete refuses to differentiate a program with discrete sites.
func (t Target) checkDiscrete() error {
	p, ok := t.Program.(interface{ Discrete() []string })
	if !ok || len(p.Discrete()) == 0 {
		return nil
	}
	names := p.Discrete()
	return fmt.Errorf("the discrete site %q has no gradient: give infer.Sample the method gibbs.Blocks{{Sites: "+
		"[]string{%s}, Method: gibbs.Discrete{}}, {Sites: []string{gibbs.Rest}, Method: ...}}, with this method for the "+
		"rest: %w", names[0], `"`+strings.Join(names, `", "`)+`"`, ErrConfig)
}

// warm tells a transform of updates how long the warm-up is, where it asks, and refuses one that does not move the
// discrete sites of the target.
func (s *session) warm(target Target) error {
	if _, moves := s.transform.(interface{ MovesWholeNumbers() }); !moves {
		if err := target.checkDiscrete(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	t, ok := s.transform.(interface {
		WithWarmup(updates int) (Transform, error)
	})
	if _, drives := s.transform.(Driver); drives || !ok {
		return nil
	}
	var err error
	s.transform, err = t.WithWarmup(s.o.Warmup)
	return err
}
