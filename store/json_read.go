package store

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// ReadJSON reads InferenceData that ArviZ's to_json or [WriteJSON] wrote. Beside JSON it takes NaN, Infinity and -Infinity, as
// Python does; null is NaN, true and false are 1 and 0.
//
// ArviZ's names of statistics become Kelvin's: diverging is divergent. What has no place in an [Inference] is left out
// and mentioned in Notes: groups that it does not have, variables of text, statistics with more than one number for a
// draw. Errors are [ParseError]s with line, column and the variable.
func ReadJSON(path string) (*Inference, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("store: read JSON: %w", err)
	}
	defer f.Close()
	return readJSON(f, path)
}

// ReadJSONFrom is [ReadJSON] of a reader.
func ReadJSONFrom(r io.Reader) (*Inference, error) { return readJSON(r, "JSON") }

func readJSON(r io.Reader, file string) (*Inference, error) {
	scan := newJSONScanner(r, file)
	d := &decoder{file: file, fit: anyName, groups: map[string]*group{}, attrs: map[string]any{}}
	attrs := map[string]map[string]any{}
	known := map[string]bool{}
	inf := &Inference{}
	for _, p := range inf.parts() {
		known[p.name], known[p.stats] = true, p.stats != ""
	}
	for _, p := range inf.dataParts() {
		known[p.name] = true
	}
	var coords, dims map[string]any
	seen := map[string]bool{}
	err := scan.object(func(key string) (err error) {
		scan.what = key
		if seen[key] {
			return scan.fail("the key is there twice")
		}
		seen[key] = true
		switch {
		case known[key]:
			d.groups[key], err = readJSONGroup(scan, key)
		case key == "coords":
			coords, err = jsonMap(scan)
		case key == "dims":
			dims, err = jsonMap(scan)
		case key == "attrs":
			d.attrs, err = jsonMap(scan)
		case strings.HasSuffix(key, "_attrs"):
			attrs[strings.TrimSuffix(key, "_attrs")], err = jsonMap(scan)
		default:
			d.note("%s was left out: Kelvin has no place for it", key)
			_, err = scan.value(0)
		}
		scan.what = ""
		return err
	})
	if err != nil {
		return nil, err
	}
	if scan.peek() != 0 {
		scan.byte()
		return nil, scan.fail("there is more after the end")
	}
	if scan.err != nil {
		return nil, scan.fail("")
	}
	for name, g := range d.groups {
		g.attrs = attrs[name]
		for _, v := range g.vars {
			v.dims = jsonDims(dims[v.name], v, g)
		}
	}
	out, err := d.inference()
	if err != nil {
		return nil, err
	}
	for name, values := range coords {
		if labels, ok := values.([]any); ok {
			out.Coords[name] = labels
		}
	}
	return out, nil
}

func jsonMap(scan *jsonScanner) (map[string]any, error) {
	v, err := scan.value(0)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, scan.fail("want an object")
	}
	return m, nil
}

func readJSONGroup(scan *jsonScanner, name string) (*group, error) {
	g := &group{name: name}
	seen := map[string]bool{}
	err := scan.object(func(key string) error {
		scan.what = name + "." + key
		if key == "" || seen[key] {
			return scan.fail("the variable has no name, or is there twice")
		}
		seen[key] = true
		v, err := scan.array()
		if err != nil {
			return err
		}
		v.name = key
		g.vars = append(g.vars, v)
		return nil
	})
	return g, err
}

// jsonDims are the dimensions of a variable, chain and draw among them, if the file names all of its own.
func jsonDims(names any, v *variable, g *group) []string {
	list, _ := names.([]any)
	var out []string
	if !slices.Contains([]string{"observed_data", "constant_data"}, g.name) {
		out = []string{"chain", "draw"}
	}
	if len(list) == 0 || len(out)+len(list) != len(v.shape) {
		return nil
	}
	for _, name := range list {
		text, ok := name.(string)
		if !ok {
			return nil
		}
		out = append(out, text)
	}
	return out
}
