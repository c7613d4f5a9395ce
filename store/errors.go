package store

import (
	"errors"
	"fmt"
	"strings"
)

// ErrFormat is wrapped by the error of a file that is not what its format asks for.
var ErrFormat = errors.New("bad format")

// ErrUnsupported is wrapped by the error of a file that is right, but uses a part of its format that Kelvin does not
// read: a compressor, a kind of number.
var ErrUnsupported = errors.New("unsupported")

// ErrLayout is wrapped by the error of sites, statistics or chains that do not fit together, or not into the file.
var ErrLayout = errors.New("wrong layout")

// ErrExists is wrapped by the error of a directory that is there already and will not be overwritten.
var ErrExists = errors.New("exists already")

// ErrRange is wrapped by the error of an argument outside its range.
var ErrRange = errors.New("out of range")

// ErrClosed is the error of a writer that is used after Close.
var ErrClosed = errors.New("store: the writer is closed")

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

func failf(kind error, format string, args ...any) error {
	return because(kind, "store: "+format, args...)
}

// during names what was being done where an error comes from elsewhere; Kelvin's own say it themselves.
func during(doing string, err error) error {
	var own *failure
	var at *ParseError
	if err == nil || errors.As(err, &at) || errors.As(err, &own) && strings.HasPrefix(err.Error(), "store: ") {
		return err
	}
	return fmt.Errorf("store: %s: %w", doing, err)
}
