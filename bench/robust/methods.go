package main

import (
	"fmt"
	"strings"

	"github.com/kelvin-ppl/kelvin/bench/internal/command"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
)

// method is a way to adapt NUTS, as a change of what a posterior asks for.
type method struct {
	name  string
	apply func(m *hmc.NUTS)
}

// methods are all that Kelvin has.
var methods = []method{
	{"default", func(*hmc.NUTS) {}},
	{"diagonal", func(m *hmc.NUTS) { m.Metric = hmc.Diagonal }},
	{"lowrank", func(m *hmc.NUTS) { m.Metric = hmc.LowRank }},
}

// chooseMethods is the methods of a list separated by commas.
func chooseMethods(list string) ([]method, error) {
	return command.Choose(list, methods, func(x method) string { return x.name }, func(name string) error {
		return fmt.Errorf("-methods: there is no %q; there are %s", name, methodNames())
	})
}

func methodNames() string {
	var names []string
	for _, m := range methods {
		names = append(names, m.name)
	}
	return strings.Join(names, ",")
}
