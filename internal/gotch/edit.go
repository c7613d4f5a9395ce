package gotch

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// kind says how an edit finds its place.
type kind int

const (
	text     kind = iota // the anchor is literal text, replaced wherever it stands
	function             // the anchor is the start of a top-level function, which is replaced whole
	pattern              // the anchor is a regular expression, the replacement its template
)

// edit is one checked change to one file of the copy.
type edit struct {
	file        string
	what        string // what the edit is for, as errors name it
	kind        kind
	anchor      string
	replacement string
	count       int // how often the anchor must be there; 0 means once
}

// apply makes the edit under the folder dst.
func (e edit) apply(dst string) error {
	return rewrite(dst, e.file, func(s string) (string, error) {
		want := cmp.Or(e.count, 1)
		switch e.kind {
		case function:
			start := strings.Index(s, "\n"+e.anchor)
			if n := strings.Count(s, "\n"+e.anchor); n != want {
				return "", e.changed(n, want)
			}
			end := strings.Index(s[start:], "\n}\n")
			if end < 0 {
				return "", e.changed(0, want)
			}
			return s[:start+1] + e.replacement + s[start+end+3:], nil
		case pattern:
			re := regexp.MustCompile(e.anchor)
			if n := len(re.FindAllStringIndex(s, -1)); n != want {
				return "", e.changed(n, want)
			}
			return re.ReplaceAllString(s, e.replacement), nil
		default:
			if n := strings.Count(s, e.anchor); n != want {
				return "", e.changed(n, want)
			}
			return strings.ReplaceAll(s, e.anchor, e.replacement), nil
		}
	})
}

// changed is the error of an anchor that is not there as expected.
func (e edit) changed(found, want int) error {
	return &AnchorError{File: e.file, Edit: e.what, Anchor: e.anchor, Found: found, Want: want}
}

// AnchorError says that the source of gotch is not the one that the edits are written for.
type AnchorError struct {
	File, Edit, Anchor string
	Found, Want        int
}

// Error names the file, the edit and the anchor, and says what to do.
func (e *AnchorError) Error() string {
	return fmt.Sprintf("adapting %s %s: file %s, edit %q: found the anchor %q %d times, expected %d; "+
		"the module's source is not the published %s (run `go clean -modcache` and set up again)",
		Module, Version, e.File, e.Edit, e.Anchor, e.Found, e.Want, Version)
}

// rewrite passes the text of a file of the copy through f.
func rewrite(dst, file string, f func(string) (string, error)) error {
	path := filepath.Join(dst, filepath.FromSlash(file))
	old, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("adapting %s %s: %w", Module, Version, err)
	}
	changed, err := f(string(old))
	if err != nil {
		return err
	}
	return atomicfile.Write(path, []byte(changed), 0o644)
}
