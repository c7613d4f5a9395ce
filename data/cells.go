package data

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// cells are the values of one column while a file is read. The kind is stated, or that of the first value.
type cells struct {
	name     string
	missing  []string
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
	v, bad := number(value)
	if !c.isNumber && c.factor == nil {
		c.found, c.first = true, line
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
	state := "state the kind of the column in CSV.Numbers or CSV.Factors, or the word of a missing value in CSV.Missing"
	switch {
	case c.isNumber && bad == notNumber && c.found:
		return fmt.Sprintf("expected a number, as in line %d: %s", c.first, state)
	case c.isNumber && bad != "":
		return bad
	case c.isNumber:
		c.numbers = append(c.numbers, v)
		return ""
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

const notNumber = "expected a number, such as -1.5 or 2e3"

// number reads a decimal number and says what is wrong with it.
func number(s string) (v float64, problem string) {
	if strings.ContainsAny(s, "xX_") { // Go reads hexadecimal numbers
		return 0, notNumber
	}
	v, err := strconv.ParseFloat(s, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, "it is beyond the largest number, 1.8e308"
	case err != nil:
		return 0, notNumber
	case math.IsInf(v, 0):
		return 0, "a number must be finite"
	case math.IsNaN(v):
		return 0, "it is no number: where it means a missing value, name it in CSV.Missing"
	}
	return v, ""
}
