package layers

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
)

// size is the value of a field whose zero value is its default.
func size(kind, field string, value, byDefault, most int) (int, error) {
	if value == 0 {
		return byDefault, nil
	}
	if value < 0 || value > most {
		return 0, &infer.FieldError{Type: "layers." + kind, Field: field, Value: value,
			Allowed: fmt.Sprintf("it must be from 1 to %d, or 0 for the default, %d", most, byDefault)}
	}
	return value, nil
}

// sizes fills the fields of a configuration, and gives the first error.
type sizes struct {
	kind string
	err  error
}

func (s *sizes) fill(field string, value *int, byDefault, most int) {
	v, err := size(s.kind, field, *value, byDefault, most)
	if err != nil && s.err == nil {
		s.err = err
	}
	*value = v
}
