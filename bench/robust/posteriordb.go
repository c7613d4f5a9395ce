package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/bench/internal/posteriors"
)

// published is the targets of posteriordb, whose truth is the reference draws, which are what is judged.
func published(dir string) ([]target, error) {
	db, err := posteriors.Open(dir)
	if err != nil {
		return nil, err
	}
	var out []target
	for _, e := range posteriors.Registry {
		p, program, reference, err := e.Compile(db)
		if err != nil {
			return nil, err
		}
		d, _, err := db.Read(e.Name)
		if err != nil {
			return nil, err
		}
		_, stan, _ := strings.Cut(e.Name, "-")
		known := truth{}
		for name, x := range reference {
			known[name] = momentsOf(x)
		}
		out = append(out, target{e.Name, func(*maker) problem {
			return problem{
				program: program, accept: p.Method.TargetAccept, watch: slices.Collect(maps.Keys(known)), exact: known,
				stan: stan, data: d.Values(),
			}
		}})
	}
	return out, nil
}
