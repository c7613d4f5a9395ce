package store

import (
	"io"
	"slices"
	"strings"
)

// readInferenceData reads what ArviZ's to_json or [writeInferenceData] wrote.
func readInferenceData(r io.Reader, file string, limits Limits) (*contents, error) {
	budget := newBudget(limits)
	scan := newJSONScanner(budget.Reader(r), file)
	out := &contents{
		Groups: map[string]*group{}, Attrs: map[string]any{}, Coords: map[string][]any{},
		Budget: budget,
	}
	attrs := map[string]map[string]any{}
	var coords, dims map[string]any
	seen := map[string]bool{}
	err := scan.Object(func(key string) (err error) {
		scan.What = key
		if seen[key] {
			return scan.Fail("the key is there twice")
		}
		seen[key] = true
		switch {
		case knownGroup(key):
			out.Groups[key], err = readGroup(scan, budget, key)
		case key == "coords":
			coords, err = scan.Map()
		case key == "dims":
			dims, err = scan.Map()
		case key == "attrs":
			out.Attrs, err = scan.Map()
		case key == digestKey:
			err = scan.Digest()
		case strings.HasSuffix(key, "_attrs"):
			attrs[strings.TrimSuffix(key, "_attrs")], err = scan.Map()
		default:
			out.Notes = append(out.Notes, file+": "+key+" was left out: Kelvin has no place for it")
			_, err = scan.Value(0)
		}
		scan.What = ""
		return err
	})
	if err == nil {
		err = scan.End()
	}
	if err != nil {
		return nil, err
	}
	out.label(attrs, coords, dims)
	return out, nil
}

// label gives attributes, dimensions and labels to the groups that they are of.
func (out *contents) label(attrs map[string]map[string]any, coords, dims map[string]any) {
	named := map[string]bool{}
	for name, g := range out.Groups {
		g.Attrs = attrs[name]
		for _, v := range g.Vars {
			named[v.Name] = true
			v.Dims = dimsOf(dims[v.Name], v, g)
		}
	}
	out.Dims = map[string][]string{}
	for name, list := range dims {
		if list, _ := list.([]any); !named[name] {
			if texts := textsOf(list); texts != nil {
				out.Dims[name] = texts
			}
		}
	}
	for name, values := range coords {
		if labels, ok := values.([]any); ok {
			out.Coords[name] = labels
		}
	}
}

func readGroup(scan *jsonScanner, budget *readBudget, name string) (*group, error) {
	g := &group{Name: name}
	seen := map[string]bool{}
	err := scan.Object(func(key string) error {
		scan.What = name + "." + key
		if key == "" || seen[key] {
			return scan.Fail("the variable has no name, or is there twice")
		}
		seen[key] = true
		v, err := readArray(scan)
		if err != nil {
			return err
		}
		v.Name = key
		g.Vars = append(g.Vars, v)
		if err := budget.Named(len(g.Vars)); err != nil {
			return scan.Wrong(err)
		}
		return nil
	})
	return g, err
}

// dimsOf are the dimensions of a variable, chain and draw among them, if the file names all of its own.
func dimsOf(names any, v *variable, g *group) []string {
	list, _ := names.([]any)
	var out []string
	if !slices.Contains(dataGroups, g.Name) {
		out = []string{"chain", "draw"}
	}
	if len(list) == 0 || len(out)+len(list) != len(v.Shape) {
		return nil
	}
	texts := textsOf(list)
	if texts == nil {
		return nil
	}
	return append(out, texts...)
}

// textsOf is nil if one of the list is no text.
func textsOf(list []any) []string {
	out := make([]string, len(list))
	for i, name := range list {
		text, ok := name.(string)
		if !ok {
			return nil
		}
		out[i] = text
	}
	return out
}

// jsonArray collects nested lists of numbers as one row-major array.
type jsonArray struct {
	scan   *jsonScanner
	v      *variable
	leaves int // depth of the numbers, -1 before the first
}

// readArray reads a number, or lists of numbers or strings nested to any depth; lists of one depth must
// be of one length.
func readArray(s *jsonScanner) (*variable, error) {
	a := &jsonArray{scan: s, v: &variable{}, leaves: -1}
	err := a.read(0)
	if a.v.Text != nil && len(a.v.Data) > 0 {
		return nil, s.Fail("numbers and text are mixed")
	}
	return a.v, err
}

func (a *jsonArray) read(depth int) error {
	s, v := a.scan, a.v
	if s.Peek() != '[' {
		if a.leaves < 0 {
			a.leaves = len(v.Shape)
		}
		if depth != a.leaves {
			return s.Fail("a value %d lists deep, where others are %d deep", depth, max(a.leaves, len(v.Shape)))
		}
		if s.Peek() == '"' {
			text, err := s.String()
			v.Text = append(v.Text, text)
			return err
		}
		x, _, err := s.Scalar()
		v.Data = append(v.Data, x)
		return err
	}
	s.Byte()
	if depth >= mostNested || a.leaves >= 0 && depth >= a.leaves {
		return s.Fail("a list %d lists deep, where there are values, or deeper than %d", depth, mostNested)
	}
	if len(v.Shape) == depth {
		v.Shape = append(v.Shape, -1)
	}
	n := 0
	if s.Peek() == ']' {
		s.Byte()
	} else {
		for {
			if err := a.read(depth + 1); err != nil {
				return err
			}
			n++
			c, err := s.Expect(",]")
			if err != nil {
				return err
			}
			if c == ']' {
				break
			}
		}
	}
	if v.Shape[depth] >= 0 && v.Shape[depth] != n {
		return s.Fail("a list of %d, where others have %d", n, v.Shape[depth])
	}
	v.Shape[depth] = n
	return nil
}
