package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/regression"
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
	"logistic":      two("Logistic", "location", "scale", dist.Logistic),
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

// parsePrior reads "b[age]=normal(0, 1)"; the name may have an = in it, as that of a basis.
func parsePrior(text string) (name, says string, err error) {
	at := strings.LastIndex(text, "=")
	if at < 0 {
		return "", "", fmt.Errorf("%q has no =: write it as 'b[age]=normal(0, 1)'", text)
	}
	name, says = strings.TrimSpace(text[:at]), strings.TrimSpace(text[at+1:])
	l, numbers, err := parseLaw(says)
	if err == nil {
		err = l.make(numbers).Validate()
	}
	return name, says, err
}

// parseLaw reads "normal(0, 1)".
func parseLaw(text string) (law, []float64, error) {
	name, rest, ok := strings.Cut(text, "(")
	l, known := laws[strings.TrimSpace(name)]
	if !known {
		return l, nil, fmt.Errorf("%q is no distribution of priors; these are %s", strings.TrimSpace(name),
			strings.Join(slices.Sorted(maps.Keys(laws)), ", "))
	}
	list, end := strings.CutSuffix(strings.TrimSpace(rest), ")")
	form := strings.TrimSpace(name) + "(" + strings.Join(l.params, ", ") + ")"
	if !ok || !end {
		return l, nil, fmt.Errorf("%q: write it as %s", text, form)
	}
	var numbers []float64
	for _, field := range strings.Split(list, ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(field), 64)
		if err != nil {
			return l, nil, fmt.Errorf("%q: %q is not a number: write it as %s", text, strings.TrimSpace(field), form)
		}
		numbers = append(numbers, v)
	}
	if len(numbers) != len(l.params) {
		return l, nil, fmt.Errorf("%q has %d numbers: write it as %s", text, len(numbers), form)
	}
	return l, numbers, nil
}

// goCode is the distribution as Go has it.
func goCode(text string) (string, error) {
	l, numbers, err := parseLaw(text)
	if err != nil {
		return "", err
	}
	var args []string
	for _, v := range numbers {
		args = append(args, strconv.FormatFloat(v, 'g', -1, 64))
	}
	return "dist." + l.name + "(" + strings.Join(args, ", ") + ")", nil
}

// given is the law of a prior: as the user gave it, where it is one of those.
func (s *saved) given(p regression.Prior) string {
	best := ""
	for key := range s.Priors {
		rest, ok := strings.CutPrefix(p.Name, key)
		if p.Own && ok && (rest == "" || rest[0] == '[' || rest[0] == '_') && len(key) > len(best) {
			best = key
		}
	}
	if best == "" {
		return p.Law
	}
	return s.Priors[best]
}

// describe is a model in words, with the priors that the user gave.
func (s *saved) describe(model *regression.Model) string {
	lines := strings.Split(model.String(), "\n")
	for _, p := range model.Priors() {
		for i, line := range lines {
			if p.Own && strings.HasPrefix(line, "  "+p.Name+" ") {
				lines[i] = strings.Replace(line, p.Law+" (given)", s.given(p)+" (given)", 1)
			}
		}
	}
	return strings.Join(lines, "\n")
}
