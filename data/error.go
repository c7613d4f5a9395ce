package data

import (
	"fmt"
	"strings"
)

// Error is a cell, a line or a column that is wrong.
type Error struct {
	Source  string // name of the file; "" without a name
	Line    int    // line of the source, from 1; 0 where none is to blame or there is no source
	Row     int    // row of the table, from 0; -1 where none is to blame
	Column  string // name of the column; "" where none is to blame
	Value   string // the value as it is written; "" where it is missing, or none is to blame
	Problem string // what is wrong, and what would be right
}

// Error names the place, the value and what would be right.
func (e *Error) Error() string {
	var place []string
	if e.Source != "" {
		place = append(place, e.Source)
	}
	if e.Line > 0 {
		place = append(place, fmt.Sprintf("line %d", e.Line))
	} else if e.Row >= 0 {
		place = append(place, fmt.Sprintf("row %d", e.Row))
	}
	if e.Column != "" {
		place = append(place, fmt.Sprintf("column %q", e.Column))
	}
	if e.Value != "" {
		place = append(place, fmt.Sprintf("value %q", short(e.Value)))
	}
	if len(place) == 0 {
		return "data: " + e.Problem
	}
	return "data: " + strings.Join(place, ", ") + ": " + e.Problem
}

// short is a text that fits into a message.
func short(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}

// list writes names for a message, the first of many.
func list(names []string) string {
	const most = 12
	quoted := make([]string, 0, min(len(names), most)+1)
	for i, n := range names {
		if i == most {
			quoted = append(quoted, fmt.Sprintf("and %d more", len(names)-most))
			break
		}
		quoted = append(quoted, fmt.Sprintf("%q", short(n)))
	}
	return strings.Join(quoted, ", ")
}
