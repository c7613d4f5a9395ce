package main

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The table stands between these of the page.
const (
	begin = "\nLast run: "
	end   = "\n## How each is tested"
)

const columns = 120

// check is a promise, the commands that hold it, and what they saw. The page is where it is written.
type check struct {
	name, promise, seen string
	seconds             string
	commands            []string
}

var (
	section   = regexp.MustCompile(`(?m)^- \*\*(\w+)\*\*: `)
	command   = regexp.MustCompile(`(?m)^      (go test (?:.*\\\n)*.*)$`)
	continued = regexp.MustCompile(`\s*\\\n\s*`)
)

// parse reads the checks of a page: a row | name | promise | seen | seconds | for each, whose text may go on in further
// rows, and their commands in the section that begins with the name.
func parse(text string) (checks []*check, err error) {
	_, table, ok := strings.Cut(text, begin)
	table, rest, ok2 := strings.Cut(table, end)
	if !ok || !ok2 {
		return nil, errors.New(page + " lacks the lines between which the table stands")
	}
	named := map[string]*check{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 || strings.HasPrefix(line, "| check |") || strings.HasPrefix(line, "|---") {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if cells[1] == "" && len(checks) > 0 {
			checks[len(checks)-1].seen += " " + cells[3]
			continue
		}
		c := &check{name: cells[1], promise: cells[2], seen: cells[3], seconds: cells[4]}
		checks, named[c.name] = append(checks, c), c
	}
	starts := section.FindAllStringSubmatchIndex(rest, -1)
	for i, at := range starts {
		next := len(rest)
		if i+1 < len(starts) {
			next = starts[i+1][0]
		}
		c := named[rest[at[2]:at[3]]]
		if c == nil {
			return nil, fmt.Errorf("%s has no row for %s", page, rest[at[2]:at[3]])
		}
		for _, m := range command.FindAllStringSubmatch(rest[at[0]:next], -1) {
			c.commands = append(c.commands, continued.ReplaceAllString(m[1], " "))
		}
	}
	for _, c := range checks {
		if len(c.commands) == 0 {
			return nil, fmt.Errorf("%s has no command for %s", page, c.name)
		}
	}
	return checks, nil
}

// render puts the table into the page that the checks are of.
func render(text string, checks []*check) string {
	head, rest, _ := strings.Cut(text, begin)
	_, tail, _ := strings.Cut(rest, end)
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s%s, %s/%s, %d processors, %s.\n\n", head, begin, time.Now().UTC().Format("2 January 2006"),
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	b.WriteString("| check | promise | seen | seconds |\n|---|---|---|---|\n")
	for _, c := range checks {
		room := columns - utf8.RuneCountInString(c.name+c.promise+c.seconds) - len("|  |  |  |  |")
		for i, part := range wrap(c.seen, max(room, 24)) {
			if i == 0 {
				fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.name, c.promise, part, c.seconds)
			} else {
				fmt.Fprintf(&b, "| | | %s | |\n", part)
			}
		}
	}
	return b.String() + end + tail
}

// saw takes over what the commands told.
func (c *check) saw(figures []string, took time.Duration, err error) {
	c.seen, c.seconds = strings.Join(figures, "; "), strconv.Itoa(int(took.Seconds()+0.5))
	switch {
	case err != nil:
		c.seen = failed
	case len(figures) == 0:
		c.seen = failed + ": no figure was told"
	}
}

// wrap breaks a text between words.
func wrap(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}
