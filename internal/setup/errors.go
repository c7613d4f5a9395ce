package setup

import (
	"fmt"
	"strings"
)

// Error is a failure of set-up that says what is wrong and what to do about it.
type Error struct {
	Problem string // what is wrong, and where
	Remedy  string // what to do
	Err     error  // the cause; may be nil
}

// Error returns the problem, its cause and the remedy.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Problem)
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(strings.TrimRight(e.Err.Error(), "\n"))
	}
	if e.Remedy != "" {
		b.WriteString("\n  what to do: ")
		b.WriteString(e.Remedy)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// fail makes an Error from a cause, which may be nil, a remedy and a formatted problem.
func fail(cause error, remedy, problem string, args ...any) error {
	return &Error{Problem: fmt.Sprintf(problem, args...), Remedy: remedy, Err: cause}
}
