package formula

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/kelvin-ppl/kelvin/internal/visible"
)

// Error is a mistake in a formula: in how it is written, or in what a table makes of it.
type Error struct {
	Text    string // the formula
	Column  int    // place of the mistake in Text, in runes, from 1
	Problem string // what is wrong there, and what would be right
}

// Error says what is wrong, and shows the formula with a caret below the place. Of a long formula it shows what is
// near.
func (e *Error) Error() string {
	const around = 60
	text := []rune(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, e.Text))
	at := min(max(e.Column-1, 0), len(text))
	from, to := max(0, at-around), min(len(text), at+around)
	shown, caret := string(text[from:to]), at-from
	if from > 0 {
		shown, caret = "…"+shown, caret+1
	}
	if to < len(text) {
		shown += "…"
	}
	return visible.Text(fmt.Sprintf("formula, column %d: %s\n  %s\n  %s^", e.Column, e.Problem, shown,
		strings.Repeat(" ", caret)))
}

// list writes names for a message, the first of many.
func list(names []string) string {
	const most = 12
	var quoted []string
	for i, n := range names {
		if i == most {
			quoted = append(quoted, fmt.Sprintf("and %d more", len(names)-most))
			break
		}
		quoted = append(quoted, fmt.Sprintf("%q", short(n)))
	}
	return strings.Join(quoted, ", ")
}

// short is a text that fits into a message.
func short(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}

// Nearest says which of the names that exist are like one that does not, by edit distance; all of them, where none is.
func Nearest(name string, names []string) string {
	type candidate struct {
		name     string
		distance int
	}
	var near []candidate
	for _, n := range names {
		d := distance(strings.ToLower(name), strings.ToLower(n))
		if d <= max(1, len([]rune(name))/2) {
			near = append(near, candidate{n, d})
		}
	}
	if near == nil {
		return "there are " + list(names)
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var best []string
	for _, c := range near[:min(3, len(near))] {
		best = append(best, c.name)
	}
	if len(best) == 1 {
		return "the nearest is " + list(best)
	}
	return "the nearest are " + list(best)
}

// distance is the least number of runes to insert, delete, replace, or swap with a neighbour, that makes b of a
// (optimal string alignment).
func distance(a, b string) int {
	x, y := []rune(short(a)), []rune(short(b))
	before, last := []int(nil), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := range x {
		row := make([]int, len(y)+1)
		row[0] = i + 1
		for j := range y {
			replace := last[j]
			if x[i] != y[j] {
				replace++
			}
			row[j+1] = min(replace, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(y)]
}
