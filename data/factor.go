package data

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// factor collects the values of a factor.
type factor struct {
	name   string
	levels []string
	index  map[string]int
	forms  map[string]string // the level of a text in the form NFC
	codes  []int
	stated bool
}

// newFactor begins a factor; levels that are not nil are all that it may have.
func newFactor(name string, levels []string) (*factor, error) {
	b := &factor{name: name, index: map[string]int{}, forms: map[string]string{}, stated: levels != nil}
	for _, l := range levels {
		if _, twice := b.index[l]; twice || l == "" {
			return nil, &Error{Row: -1, Column: name, Value: l, Problem: "a level must not be empty, nor be there twice"}
		}
		b.index[l] = len(b.levels)
		b.forms[norm.NFC.String(l)] = l
		b.levels = append(b.levels, l)
	}
	return b, nil
}

// add takes the next value, "" where it is missing, and says what is wrong with it.
func (b *factor) add(label string) (problem string) {
	code, known := b.index[label]
	same, form := "", ""
	if !known {
		form = norm.NFC.String(label)
		same = b.forms[form]
	}
	switch {
	case label == "":
		code = -1
	case same != "":
		return fmt.Sprintf("it is the level %+q in another Unicode form, %+q: set CSV.NFC, which makes them one, or write "+
			"both alike", same, label)
	case !known && b.stated:
		return "it is not among the stated levels: " + list(b.levels)
	case !known:
		label = strings.Clone(label) // not a part of a line of the file
		code = len(b.levels)
		b.index[label] = code
		b.forms[strings.Clone(form)] = label
		b.levels = append(b.levels, label)
	}
	b.codes = append(b.codes, code)
	return ""
}

// column has the levels that were stated, or those that were found, sorted.
func (b *factor) column() column {
	c := column{name: b.name, factor: true, codes: b.codes, levels: b.levels, stated: b.stated}
	if !b.stated {
		c.levels = sorted(b.levels)
		at := map[string]int{}
		for i, l := range c.levels {
			at[l] = i
		}
		for i, code := range c.codes {
			if code >= 0 {
				c.codes[i] = at[b.levels[code]]
			}
		}
	}
	return c
}

// sorted orders labels as numbers where all of them are, and as text otherwise.
func sorted(labels []string) []string {
	out := slices.Clone(labels)
	numbers := map[string]float64{}
	for _, l := range labels {
		v, problem := notation{}.number(l)
		if problem != "" {
			slices.Sort(out)
			return out
		}
		numbers[l] = v
	}
	slices.SortFunc(out, func(a, b string) int {
		switch {
		case numbers[a] < numbers[b]:
			return -1
		case numbers[a] > numbers[b]:
			return 1
		}
		return strings.Compare(a, b) // 1 and 1.0 are two labels of one number
	})
	return out
}
