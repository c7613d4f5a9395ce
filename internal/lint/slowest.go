package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// slowest passes on what `go test` prints, and then prints the five packages whose tests took longest. The error says
// that a package failed.
func slowest(in io.Reader, out io.Writer) error {
	type timed struct {
		name string
		took time.Duration
	}
	var all []timed
	failed := 0
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		if _, err := fmt.Fprintln(out, lines.Text()); err != nil {
			return err
		}
		words := strings.Split(lines.Text(), "\t")
		if words[0] == "FAIL" {
			failed++
		}
		if len(words) > 2 && (words[0] == "ok  " || words[0] == "FAIL") {
			if took, err := time.ParseDuration(words[2]); err == nil {
				all = append(all, timed{words[1], took})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b timed) int { return cmp.Compare(b.took, a.took) })
	for _, t := range all[:min(5, len(all))] {
		if _, err := fmt.Fprintf(out, "%8.1f s  %s\n", t.took.Seconds(), t.name); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil || failed == 0 {
		return err
	}
	return fmt.Errorf("tests failed")
}
