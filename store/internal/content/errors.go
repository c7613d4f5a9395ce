// Package content holds what the formats of stored draws have in common: groups of variables, names, the layout of
// draws, limits of readers, errors, the text of JSON, and InferenceData, which JSON and Zarr files have. It reads and
// writes no files: each format has a package of its own.
package content

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The kinds of errors; package store shows them to the user.
var (
	ErrFormat      = errors.New("bad format")
	ErrUnsupported = errors.New("unsupported")
	ErrLayout      = errors.New("wrong layout")
	ErrExists      = errors.New("exists already")
	ErrRange       = errors.New("out of range")
	ErrLimit       = errors.New("over a limit")
	ErrClosed      = errors.New("store: the writer is closed")
)

// ParseError says where a file is wrong. It has the fields of store.ParseError.
type ParseError struct {
	File         string
	Line, Column int
	What         string
	Err          error
}

// Error is "store: FILE: line 3, column 2 (theta.1): what is wrong".
func (e *ParseError) Error() string {
	var b strings.Builder
	b.WriteString("store: ")
	if e.File != "" {
		b.WriteString(e.File + ": ")
	}
	place := ""
	switch {
	case e.Line > 0 && e.Column > 0:
		place = fmt.Sprintf("line %d, column %d", e.Line, e.Column)
	case e.Line > 0:
		place = fmt.Sprintf("line %d", e.Line)
	}
	switch {
	case place != "" && e.What != "":
		place += " (" + e.What + ")"
	case e.What != "":
		place = e.What
	}
	if place != "" {
		b.WriteString(place + ": ")
	}
	b.WriteString(e.Err.Error())
	return b.String()
}

// Unwrap is Err.
func (e *ParseError) Unwrap() error { return e.Err }

// failure is an error with its own text, of one of the kinds above.
type failure struct {
	kind error
	text string
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.kind }

// Because is an error without the name of the package, to be wrapped.
func Because(kind error, format string, args ...any) error {
	return &failure{kind, fmt.Sprintf(format, args...)}
}

// Failf is an error that names the package.
func Failf(kind error, format string, args ...any) error {
	return Because(kind, "store: "+format, args...)
}

// During names what was being done when an error came from elsewhere; errors of this module say it themselves.
func During(doing string, err error) error {
	var own *failure
	var at *ParseError
	if err == nil || errors.As(err, &at) || errors.As(err, &own) && strings.HasPrefix(err.Error(), "store: ") {
		return err
	}
	return fmt.Errorf("store: %s: %w", doing, err)
}

// NotNumber is the error of a text that is no float64.
func NotNumber(text string, err error) error {
	if len(text) > 40 {
		text = text[:40] + "..."
	}
	if errors.Is(err, strconv.ErrRange) {
		return Because(ErrFormat, "%q is too large for a float64", text)
	}
	return Because(ErrFormat, "%q is not a number", text)
}
