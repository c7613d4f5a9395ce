package data

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const notNumber = "expected a number, such as -1.5 or 2e3"

// notation is how a file writes numbers, and a column its dates.
type notation struct {
	decimal, thousands string // "" is a point, and none
	layout             string // of dates; "" for numbers
}

// number reads a decimal number and says what is wrong with it.
func (n notation) number(s string) (v float64, problem string) {
	if n.layout != "" {
		t, err := time.Parse(n.layout, s)
		if err != nil {
			return 0, fmt.Sprintf("it is no date of the layout %q, which CSV.Dates states", n.layout)
		}
		return (float64(t.Unix()) + float64(t.Nanosecond())/1e9) / 86400, ""
	}
	if n.thousands != "" && strings.Contains(s, n.thousands) {
		whole, _, _ := strings.Cut(s, n.point())
		groups := strings.Split(strings.TrimLeft(whole, "+-"), n.thousands)
		for i, g := range groups {
			if len(g) != 3 && (i > 0 || len(g) == 0 || len(g) > 3) {
				return 0, notNumber
			}
		}
		s = strings.ReplaceAll(whole, n.thousands, "") + s[len(whole):]
	}
	if n.point() != "." {
		if strings.Contains(s, ".") {
			return 0, notNumber
		}
		s = strings.Replace(s, n.decimal, ".", 1)
	}
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

func (n notation) point() string {
	if n.decimal == "" {
		return "."
	}
	return n.decimal
}

// separators are the marks of numbers, and what is wrong with them of a CSV.
func (c CSV) separators() (n notation, problem string) {
	if c.Decimal != 0 {
		n.decimal = string(c.Decimal)
	}
	if c.Thousands != 0 {
		n.thousands = string(c.Thousands)
	}
	if strings.ContainsAny(n.decimal+n.thousands, "0123456789+-eExX\"\r\n") || n.point() == n.thousands {
		problem = fmt.Sprintf("CSV.Decimal is %q and CSV.Thousands %q: expected two marks that are not in numbers otherwise",
			n.decimal, n.thousands)
	}
	return n, problem
}

var (
	grouped = regexp.MustCompile(`^[+-]?\d{1,3}(?:([.,' \x{a0}\x{202f}\x{2019}])\d{3})+(?:([.,])\d+)?$`)
	decimal = regexp.MustCompile(`^[+-]?\d*,\d+(?:[eE][+-]?\d+)?$`)
	digits  = regexp.MustCompile(`^[+-]?0*(\d+)$`)
)

// layouts are those of dates that are recognised.
var layouts = []string{"2006-01-02", "2006/01/02", "2.1.2006", "1/2/2006", "2/1/2006", "2006-01-02 15:04",
	"2006-01-02 15:04:05", "2006-01-02T15:04:05", time.RFC3339}

// looksLike says what a value seems to be that is no number in this notation, and how to read it; "" for a word.
func (n notation) looksLike(s string) string {
	var fit []string
	for _, l := range layouts {
		if _, err := time.Parse(l, s); err == nil {
			fit = append(fit, strconv.Quote(l))
		}
	}
	if fit != nil {
		return "it looks like a date: state its layout in CSV.Dates (" + strings.Join(fit, " or ") +
			"), to have days since 1970-01-01"
	}
	if m := grouped.FindStringSubmatch(s); m != nil && m[1] != m[2] {
		point := "."
		if m[1] == "." {
			point = ","
		}
		if m[2] != "" {
			point = m[2]
		}
		out := fmt.Sprintf("it looks like a number with %q between thousands: set CSV.Thousands", m[1])
		if point != "." {
			out += fmt.Sprintf(", and CSV.Decimal to %q", point)
		}
		if decimal.MatchString(s) {
			out += `, or, where the comma is the decimal mark, CSV.Decimal`
		}
		return out
	}
	if decimal.MatchString(s) {
		return "it looks like a number with a decimal comma: set CSV.Decimal to ','"
	}
	return ""
}

// rounded says that a whole number is none that float64 has; "" where it is.
func rounded(s string, v float64) string {
	m := digits.FindStringSubmatch(s)
	if m == nil || math.Abs(v) < 1<<53 {
		return ""
	}
	if exact := strconv.FormatFloat(math.Abs(v), 'f', 0, 64); exact != m[1] {
		return "it is beyond 2^53 and would be rounded to " + exact + ": state the column in CSV.Factors where it has " +
			"codes, or in CSV.Numbers to have it rounded"
	}
	return ""
}
