package ppl

import (
	"fmt"
	"strings"
)

// SiteError is a mistake at a site of a model.
type SiteError struct {
	Site         string // name of the site; empty when the mistake is the model's
	Plates       []string
	Distribution string
	Message      string
	Cause        error // the error behind it; nil where there is none
}

// Error names the site, its plates and distribution, and what is wrong.
func (e *SiteError) Error() string {
	var b strings.Builder
	b.WriteString("model")
	if e.Site != "" {
		fmt.Fprintf(&b, ", site %q", e.Site)
	}
	if len(e.Plates) > 0 {
		fmt.Fprintf(&b, " in plate %s", strings.Join(e.Plates, ", "))
	}
	if e.Distribution != "" {
		fmt.Fprintf(&b, " (%s)", e.Distribution)
	}
	b.WriteString(": " + e.Message)
	return b.String()
}

// Unwrap is the cause.
func (e *SiteError) Unwrap() error { return e.Cause }

// RecoverAsError makes the panic of a model an error of the function that called it.
func (e *SiteError) RecoverAsError() {}
