package store

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Errors of this package wrap one of these, or an error of the system.
var (
	// ErrFormat is wrapped by the error of a file that is not what its format asks for, or is damaged.
	ErrFormat = errors.New("bad format")
	// ErrUnsupported is wrapped by the error of a file that is right, but uses a part of its format that Kelvin does not
	// read, such as a compressor or a type of numbers.
	ErrUnsupported = errors.New("unsupported")
	// ErrLayout is wrapped by the error of sites, statistics or chains that do not fit together, or not into the file.
	ErrLayout = errors.New("wrong layout")
	// ErrExists is wrapped by the error of a file or directory that is there already and will not be overwritten.
	ErrExists = errors.New("exists already")
	// ErrRange is wrapped by the error of an argument outside its range.
	ErrRange = errors.New("out of range")
	// ErrLimit is wrapped by the error of a file that asks for more than its reader's [Limits].
	ErrLimit = errors.New("over a limit")

	errClosed = errors.New("store: the writer is closed")
)

// ParseError says where a file is wrong. It wraps [ErrFormat] or what else was wrong, such as a number.
type ParseError struct {
	// File is the path as given; it is empty where a reader was given.
	File string
	// Line counts from 1. Column counts from 1 too: values in a CSV file, bytes in JSON. 0 is the whole line or file.
	Line, Column int
	// What is the column's name in a CSV file, or the place in JSON such as posterior.theta; it may be empty.
	What string
	Err  error
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

// because is an error without the name of the package, to be wrapped.
func because(kind error, format string, args ...any) error {
	return &failure{kind, fmt.Sprintf(format, args...)}
}

// failf is an error that names the package.
func failf(kind error, format string, args ...any) error {
	return because(kind, "store: "+format, args...)
}

// during names what was being done when an error came from elsewhere; errors of this module say it themselves.
func during(doing string, err error) error {
	var own *failure
	var at *ParseError
	if err == nil || errors.As(err, &at) || errors.As(err, &own) && strings.HasPrefix(err.Error(), "store: ") {
		return err
	}
	return fmt.Errorf("store: %s: %w", doing, err)
}

// notNumber is the error of a text that is no float64.
func notNumber(text string, err error) error {
	if len(text) > 40 {
		text = text[:40] + "..."
	}
	if errors.Is(err, strconv.ErrRange) {
		return because(ErrFormat, "%q is too large for a float64", text)
	}
	return because(ErrFormat, "%q is not a number", text)
}
