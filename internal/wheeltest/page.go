package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// saved is what a run leaves for the page.
type saved struct {
	Version  string  `json:"version"`
	Commit   string  `json:"commit"`
	Date     string  `json:"date"`
	Packages results `json:"packages"`
}

// save writes what a run saw. What another run of the same commit saw of other packages stays.
func (p place) save(now saved) error {
	path := p.in("results.json")
	var before saved
	if data, err := os.ReadFile(path); err == nil && json.Unmarshal(data, &before) == nil && before.Commit == now.Commit {
		maps.Copy(before.Packages, now.Packages)
		now.Packages = before.Packages
	}
	data, err := json.MarshalIndent(now, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(path, data, 0o644)
}

// page writes the table of packages and versions, of all runs that the folder has.
func page(dir, path string) error {
	found, err := filepath.Glob(filepath.Join(dir, "*", "results.json"))
	if err != nil {
		return err
	}
	var runs []saved
	for _, name := range found {
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		var s saved
		if err := json.Unmarshal(data, &s); err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		runs = append(runs, s)
	}
	if len(runs) == 0 {
		return fmt.Errorf("%s has no results: make test-libtorch VERSION=2.5.1 makes them", dir)
	}
	slices.SortFunc(runs, func(a, b saved) int { return slices.Compare(numbers(a.Version), numbers(b.Version)) })
	return atomicfile.Write(path, []byte(text(runs)), 0o644)
}

// numbers are those of a version, which sort 2.5.1 before 2.15.0.
func numbers(version string) []int {
	var n []int
	for _, part := range strings.Split(version, ".") {
		i, _ := strconv.Atoi(part)
		n = append(n, i)
	}
	return n
}

// text is the page.
func text(runs []saved) string {
	var b strings.Builder
	b.WriteString(`# Packages by version of libtorch

How many tests and parts of tests pass in each package, on the CPU of one machine. Tests that fail are named, and a
package that has not run has no number. [setup.md](setup.md#versions-of-libtorch) says what the versions differ in.

    make test-libtorch VERSION=2.5.1
    go run ./internal/wheeltest -own -version 1.13.1    # the libtorch that the checkout is set up with
    go run ./internal/wheeltest -page docs/versions.md  # this page, of all that have run

`)
	b.WriteString(table(runs))
	return b.String()
}

// table has a column for each run.
func table(runs []saved) string {
	var b strings.Builder
	all := map[string]bool{}
	row := func(first string, cell func(s saved) string) {
		b.WriteString("| " + first)
		for _, s := range runs {
			b.WriteString(" | " + cell(s))
		}
		b.WriteString(" |\n")
	}
	row("libtorch", func(s saved) string { return s.Version })
	row("---", func(saved) string { return "---:" })
	row("commit", func(s saved) string { return s.Commit })
	row("day", func(s saved) string { return s.Date })
	row("packages that pass", func(s saved) string {
		good, tested := 0, 0
		for name, p := range s.Packages {
			if p.Outcome != "no tests" {
				all[name] = true
				tested++
			}
			if p.Outcome == "ok" {
				good++
			}
		}
		return fmt.Sprintf("%d of %d", good, tested)
	})
	for _, name := range slices.Sorted(maps.Keys(all)) {
		row("`"+short(name)+"`", func(s saved) string {
			p := s.Packages[name]
			if p == nil {
				return ""
			}
			if p.Outcome == "ok" {
				return strconv.Itoa(p.Passed)
			}
			return p.state()
		})
	}
	return b.String()
}
