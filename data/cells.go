package data

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/text/unicode/norm"
)

// cells are the values of one column while a file is read. The kind is stated, or that of the first value.
type cells struct {
	name     string
	missing  []string
	written  notation
	nfc      bool // text is brought to this form
	isNumber bool
	numbers  []float64
	factor   *factor
	found    bool // whether the kind is that of the first value, not stated
	first    int  // line of the first value
	skipped  int  // missing values before the kind is known
}

// add takes the next value and says what is wrong with it.
func (c *cells) add(value string, line int) (problem string) {
	if value == "" || slices.Contains(c.missing, value) {
		switch {
		case c.isNumber:
			c.numbers = append(c.numbers, math.NaN())
		case c.factor != nil:
			return c.factor.add("")
		default:
			c.skipped++
		}
		return ""
	}
	if c.nfc {
		value = norm.NFC.String(value)
	}
	v, bad := c.written.number(value)
	state := "state the kind of the column in CSV.Numbers or CSV.Factors, or the word of a missing value in CSV.Missing"
	seems := ""
	if bad == notNumber && c.factor == nil {
		seems = c.written.looksLike(value)
	}
	if !c.isNumber && c.factor == nil {
		c.found, c.first = true, line
		if seems != "" {
			return seems + "; or state the column in CSV.Factors"
		}
		if bad != notNumber {
			c.isNumber = true
			for range c.skipped {
				c.numbers = append(c.numbers, math.NaN())
			}
		} else {
			c.factor, _ = newFactor(c.name, nil)
			c.factor.codes = slices.Repeat([]int{-1}, c.skipped)
		}
	}
	switch {
	case c.isNumber && seems != "":
		return notNumber + "; " + seems
	case c.isNumber && bad == notNumber && c.found:
		return fmt.Sprintf("expected a number, as in line %d: %s", c.first, state)
	case c.isNumber && bad != "":
		return bad
	case c.isNumber:
		if c.found {
			bad = rounded(value, v)
		}
		c.numbers = append(c.numbers, v)
		return bad
	case c.found && bad == "":
		return fmt.Sprintf("it is a number, and %q in line %d is not: %s", short(c.factor.levels[0]), c.first, state)
	}
	return c.factor.add(value)
}

// column is the finished column; without any value it is one of numbers.
func (c *cells) column() column {
	if c.factor != nil {
		return c.factor.column()
	}
	if !c.isNumber {
		c.numbers = slices.Repeat([]float64{math.NaN()}, c.skipped)
	}
	return column{name: c.name, numbers: c.numbers}
}
