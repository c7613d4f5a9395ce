package main

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The tables stand between these lines of the page.
const (
	begin = "<!-- make chaos writes from here -->"
	end   = "<!-- to here -->"
)

const columns = 120

// parse reads the results that stand in a page: rows of | name | promise | seen | seconds |.
func parse(text string) map[string]result {
	found := map[string]result{}
	last := ""
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 {
			continue
		}
		name, seen := strings.TrimSpace(cells[1]), strings.TrimSpace(cells[3])
		if name == "" && last != "" { // a row that goes on
			r := found[last]
			r.seen += " " + seen
			found[last] = r
			continue
		}
		seconds, err := strconv.Atoi(strings.TrimSpace(cells[4]))
		if err != nil {
			last = ""
			continue
		}
		last = name
		found[name] = result{seen: seen, seconds: seconds, failed: strings.HasPrefix(seen, "FAILED")}
	}
	return found
}

// render puts the tables into the page.
func render(text string, results map[string]result) (string, error) {
	head, rest, ok := strings.Cut(text, begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", errors.New(page + " lacks the lines between which the tables stand")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s\n\nLast run: %s, %s/%s, %d processors, %s.\n\n", head, begin,
		time.Now().UTC().Format("2 January 2006"), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	b.WriteString("| check | promise | seen | seconds |\n|---|---|---|---|\n")
	for _, c := range checks {
		r, ok := results[c.name]
		seconds := strconv.Itoa(r.seconds)
		if !ok {
			r.seen, seconds = "not run yet", ""
		}
		room := columns - utf8.RuneCountInString(c.name+c.promise+seconds) - len("|  |  |  |  |")
		for i, part := range wrap(r.seen, max(room, 24)) {
			if i == 0 {
				fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.name, c.promise, part, seconds)
			} else {
				fmt.Fprintf(&b, "| | | %s | |\n", part)
			}
		}
	}
	b.WriteString("\n## How each is tested, and the command\n\n")
	for _, c := range checks {
		for i, part := range wrap("**"+c.name+"**: "+c.how, columns-2) {
			b.WriteString([]string{"- ", "  "}[min(i, 1)] + part + "\n")
		}
		b.WriteString("\n")
		for _, s := range c.suites {
			for i, part := range wrap(s.command(), columns-8) {
				if i > 0 {
					b.WriteString(" \\\n          ")
				} else {
					b.WriteString("      ")
				}
				b.WriteString(part)
			}
			b.WriteString("\n")
		}
		b.WriteString("\n")
	}
	return b.String() + end + tail, nil
}

// wrap breaks a text between words.
func wrap(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
