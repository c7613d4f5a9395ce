package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/dist"
)

// law is a distribution that a prior may be.
type law struct {
	name   string   // in package dist
	params []string // its parameters, in order
	make   func(a []float64) dist.Distribution
}

func one(name, param string, f func(any) dist.Distribution) law {
	return law{name, []string{param}, func(a []float64) dist.Distribution { return f(a[0]) }}
}

func two(name, first, second string, f func(a, b any) dist.Distribution) law {
	return law{name, []string{first, second}, func(a []float64) dist.Distribution { return f(a[0], a[1]) }}
}

// laws are the distributions of priors by name.
var laws = map[string]law{
	"normal":        two("Normal", "mean", "sd", dist.Normal),
	"cauchy":        two("Cauchy", "location", "scale", dist.Cauchy),
	"laplace":       two("Laplace", "location", "scale", dist.Laplace),
	"lognormal":     two("LogNormal", "location", "scale", dist.LogNormal),
	"uniform":       two("Uniform", "low", "high", dist.Uniform),
	"gamma":         two("Gamma", "shape", "rate", dist.Gamma),
	"inverse_gamma": two("InverseGamma", "shape", "scale", dist.InverseGamma),
	"beta":          two("Beta", "a", "b", dist.Beta),
	"exponential":   one("Exponential", "rate", dist.Exponential),
	"half_normal":   one("HalfNormal", "scale", dist.HalfNormal),
	"half_cauchy":   one("HalfCauchy", "scale", dist.HalfCauchy),
	"student_t": {"StudentT", []string{"df", "location", "scale"},
		func(a []float64) dist.Distribution { return dist.StudentT(a[0], a[1], a[2]) }},
}

// parseLaw reads "normal(0, 1)": a distribution, and the same in Go.
func parseLaw(text string) (d dist.Distribution, code string, err error) {
	name, rest, _ := strings.Cut(text, "(")
	name = strings.TrimSpace(name)
	l, known := laws[name]
	if !known {
		return nil, "", fmt.Errorf("%q is no distribution of priors; these are %s", name,
			strings.Join(slices.Sorted(maps.Keys(laws)), ", "))
	}
	fields := strings.Split(strings.TrimSuffix(strings.TrimSpace(rest), ")"), ",")
	var numbers []float64
	var args []string
	for _, field := range fields {
		if v, err := strconv.ParseFloat(strings.TrimSpace(field), 64); err == nil {
			numbers, args = append(numbers, v), append(args, strconv.FormatFloat(v, 'g', -1, 64))
		}
	}
	if len(numbers) != len(fields) || len(numbers) != len(l.params) {
		return nil, "", fmt.Errorf("%q: write it as %s(%s), with numbers", text, name, strings.Join(l.params, ", "))
	}
	d = l.make(numbers)
	return d, "dist." + l.name + "(" + strings.Join(args, ", ") + ")", d.Validate()
}
