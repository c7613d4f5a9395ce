package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is a line of `go test -json`.
type event struct {
	Action     string
	Package    string
	ImportPath string // of a build
	Test       string
	Output     string
	Elapsed    float64
}

// result is what became of a package.
type result struct {
	Outcome string   `json:"outcome"` // ok, FAIL, no tests
	Seconds float64  `json:"seconds"`
	Passed  int      `json:"passed"`
	Failed  []string `json:"failed,omitempty"` // tests, without those of which a part has failed
}

// results are those of the packages.
type results map[string]*result

// read reads events to their end, and writes the packages that pass and the output of what fails to log.
func read(in io.Reader, log io.Writer) (results, error) {
	r := results{}
	output := map[[2]string]string{}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<20), 1<<26)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("go test printed %q: %w", lines.Text(), err)
		}
		key := [2]string{e.Package, e.Test}
		switch e.Action {
		case "build-output":
			fmt.Fprint(log, e.Output)
		case "output":
			output[key] += e.Output
		case "pass", "skip", "fail":
			if e.Action == "fail" {
				fmt.Fprint(log, output[key])
			}
			delete(output, key)
			if e.Action == "pass" && e.Test == "" {
				fmt.Fprintf(log, "ok %s %.0f s\n", e.Package, e.Elapsed)
			}
			r.add(e)
		}
	}
	return r, lines.Err()
}

func (r results) add(e event) {
	p := r[e.Package]
	if p == nil {
		p = &result{}
		r[e.Package] = p
	}
	switch {
	case e.Test == "":
		p.Outcome, p.Seconds = map[string]string{"pass": "ok", "fail": "FAIL", "skip": "no tests"}[e.Action], e.Elapsed
	case e.Action == "pass":
		p.Passed++
	case e.Action == "fail":
		// The parts of a test end before it does.
		if !slices.ContainsFunc(p.Failed, func(t string) bool { return strings.HasPrefix(t, e.Test+"/") }) {
			p.Failed = append(p.Failed, e.Test)
		}
	}
}

// state is the outcome with the tests that fail.
func (p *result) state() string {
	if len(p.Failed) == 0 {
		return p.Outcome
	}
	return p.Outcome + ": " + strings.Join(p.Failed, ", ")
}

// short is a package's path in the module.
func short(name string) string {
	_, s, _ := strings.Cut(name, "/kelvin/")
	return s
}
