package store

// jsonArray collects nested lists of numbers as one row-major array.
type jsonArray struct {
	scan   *jsonScanner
	v      *variable
	leaves int // depth of the numbers, -1 before the first
}

// array reads a number, or lists of numbers or strings nested to any depth; lists of one depth must be of one length.
func (s *jsonScanner) array() (*variable, error) {
	a := &jsonArray{scan: s, v: &variable{}, leaves: -1}
	err := a.read(0)
	if a.v.text != nil && len(a.v.data) > 0 {
		return nil, s.fail("numbers and text are mixed")
	}
	return a.v, err
}

func (a *jsonArray) read(depth int) error {
	s, v := a.scan, a.v
	if s.peek() != '[' {
		if a.leaves < 0 {
			a.leaves = len(v.shape)
		}
		if depth != a.leaves {
			return s.fail("a value %d lists deep, where others are %d deep", depth, max(a.leaves, len(v.shape)))
		}
		if s.peek() == '"' {
			text, err := s.string()
			v.text = append(v.text, text)
			return err
		}
		x, _, err := s.scalar()
		v.data = append(v.data, x)
		return err
	}
	s.byte()
	if depth >= mostNested || a.leaves >= 0 && depth >= a.leaves {
		return s.fail("a list %d lists deep, where there are values, or deeper than %d", depth, mostNested)
	}
	if len(v.shape) == depth {
		v.shape = append(v.shape, -1)
	}
	n := int64(0)
	if s.peek() == ']' {
		s.byte()
	} else {
		for {
			if err := a.read(depth + 1); err != nil {
				return err
			}
			n++
			c, err := s.expect(",]")
			if err != nil {
				return err
			}
			if c == ']' {
				break
			}
		}
	}
	if v.shape[depth] >= 0 && v.shape[depth] != n {
		return s.fail("a list of %d, where others have %d", n, v.shape[depth])
	}
	v.shape[depth] = n
	return nil
}
