package formula

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// token is a word of a formula.
type token struct {
	kind  tokenKind
	text  string
	value float64
	at    int // from 1
}

type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenName
	tokenNumber
	tokenText
	tokenSign
)

// describe is a token for a message.
func (t token) describe() string {
	if t.kind == tokenEnd {
		return "the end of the formula"
	}
	return fmt.Sprintf("%q", short(t.text))
}

// signs are the signs of formulas, each before those that it begins with.
var signs = []string{"%in%", "||", "**", "|", "+", "-", "*", "/", "^", ":", "(", ")", ",", "=", "~"}

// tokens splits a formula.
func tokens(text string) ([]token, *Error) {
	runes := []rune(text)
	var out []token
	for i := 0; i < len(runes); {
		r, start := runes[i], i
		t := token{at: i + 1}
		var problem string
		switch {
		case unicode.IsSpace(r):
			i++
			continue
		case unicode.IsDigit(r) || r == '.' && i+1 < len(runes) && unicode.IsDigit(runes[i+1]):
			i, t.value, problem = lexNumber(runes, i)
			t.kind, t.text = tokenNumber, string(runes[start:i])
		case inName(r, true):
			for i < len(runes) && inName(runes[i], false) {
				i++
			}
			t.kind, t.text = tokenName, string(runes[start:i])
		case r == '`' || r == '"' || r == '\'':
			i, t.text, problem = lexQuoted(runes, i)
			if t.kind = tokenText; r == '`' {
				t.kind = tokenName
				t.value = 1 // a name in backquotes is a column, whatever it is
			}
		default:
			rest := string(runes[i:min(i+4, len(runes))])
			at := slices.IndexFunc(signs, func(s string) bool { return strings.HasPrefix(rest, s) })
			if at < 0 {
				return nil, &Error{text, i + 1, strange(r)}
			}
			t.kind, t.text = tokenSign, signs[at]
			if i += len(t.text); t.text == "**" {
				t.text = "^"
			}
		}
		if problem != "" {
			return nil, &Error{text, start + 1, problem}
		}
		out = append(out, t)
	}
	return append(out, token{at: len(runes) + 1}), nil
}

// strange says what to write in place of a rune that no formula has.
func strange(r rune) string {
	switch r {
	case '<', '>', '!', '&':
		return fmt.Sprintf("%q is no sign of a formula: put a comparison into a column of the table", r)
	case '[', ']', '{', '}', '$', '@':
		return fmt.Sprintf("%q is no sign of a formula: name a column, in backquotes where it has other characters "+
			"than letters, digits, _ and .", r)
	case '%':
		return "the only sign with % is %in%"
	}
	return fmt.Sprintf("%q is no sign of a formula: write a name with it in backquotes", r)
}

// lexNumber reads a decimal number.
func lexNumber(runes []rune, i int) (end int, v float64, problem string) {
	start := i
	digits := func() {
		for i < len(runes) && runes[i] >= '0' && runes[i] <= '9' {
			i++
		}
	}
	digits()
	if i < len(runes) && runes[i] == '.' {
		i++
		digits()
	}
	if i < len(runes) && (runes[i] == 'e' || runes[i] == 'E') {
		j := i + 1
		if j < len(runes) && (runes[j] == '+' || runes[j] == '-') {
			j++
		}
		if j < len(runes) && runes[j] >= '0' && runes[j] <= '9' {
			i = j
			digits()
		}
	}
	v, err := strconv.ParseFloat(string(runes[start:i]), 64)
	if err != nil || i < len(runes) && inName(runes[i], false) {
		return i, 0, "it is no number that is written as 2, 0.5 or 1e-3 and at most 1.8e308; a name that begins " +
			"with a digit stands in backquotes"
	}
	return i, v, ""
}

// lexQuoted reads a name in backquotes, or a text in quotes. A backslash takes the next rune as it is.
func lexQuoted(runes []rune, i int) (end int, text, problem string) {
	quote := runes[i]
	var b strings.Builder
	for i++; i < len(runes) && runes[i] != quote; i++ {
		if runes[i] == '\\' && i+1 < len(runes) {
			i++
		}
		b.WriteRune(runes[i])
	}
	if i >= len(runes) {
		return i, "", fmt.Sprintf("the quotation has no end: it needs another %c", quote)
	}
	if b.Len() == 0 && quote == '`' {
		return i, "", "a name must not be empty"
	}
	return i + 1, b.String(), ""
}
