// Package visible makes text safe to show: in a terminal, a page or a log, characters that nobody sees could move the
// cursor or turn the order of what follows, so that one name looks like another. It changes nothing that is stored,
// only what is shown.
package visible

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// hidden is true of control characters, except line ends and tabs, and of the bidirectional controls of Unicode
// (Standard Annex 9: U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069).
func hidden(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// Text is s with hidden characters written out, as \u202e. Bytes that are no UTF-8 stay.
func Text(s string) string {
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for i, size := 0, 0; i < len(s); i += size {
		var r rune
		if r, size = utf8.DecodeRuneInString(s[i:]); hidden(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteString(s[i : i+size])
		}
	}
	return b.String()
}

// Writer passes on what is written to it as [Text]. JSON stays the same JSON.
func Writer(w io.Writer) io.Writer { return writer{w} }

type writer struct{ to io.Writer }

func (w writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.to, Text(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
