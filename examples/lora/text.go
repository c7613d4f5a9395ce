package main

import (
	"embed"
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// files are works in the public domain; see texts/README.md.
//
//go:embed texts/*.txt
var files embed.FS

// The text of the base, and that which is foreign to it.
const (
	baseText = "opticks"
	latin    = "latin"
)

// episodes are texts in the order in which they are learned, and languages what they are in. Latin is to be told from
// english.
var (
	episodes  = []string{"werther", "bovary", "trafalgar", "casmurro"}
	languages = []string{"German", "French", "Spanish", "Portuguese"}
	english   = []string{"raven", "declaration", "sonnets"}
)

// text are tokens to train on, a tenth to choose settings on, and the last fifth to test on.
type text struct{ train, validation, test []int }

// vocab is the number of characters: the printable ones of ASCII, and the line feed.
const vocab = 96

// tokens are the characters as numbers from 0.
func tokens(s string) ([]int, error) {
	out := make([]int, 0, len(s))
	for i, c := range []byte(s) {
		switch {
		case c == '\n':
			out = append(out, vocab-1)
		case c >= ' ' && c <= '~':
			out = append(out, int(c-' '))
		default:
			return nil, fmt.Errorf("byte %d is %#x: expected printable characters of ASCII and line feeds", i, c)
		}
	}
	return out, nil
}

// readTexts are all of them by name, cut to a length.
func readTexts(s settings) (map[string]text, error) {
	all := map[string]text{}
	for _, name := range slices.Concat([]string{baseText, latin}, episodes, english) {
		raw, err := files.ReadFile("texts/" + name + ".txt")
		if err != nil {
			return nil, err
		}
		raw = raw[:min(len(raw), s.Text)]
		t, err := tokens(string(raw))
		if err != nil {
			return nil, fmt.Errorf("texts/%s.txt: %w", name, err)
		}
		a, b := len(t)*7/10, len(t)*4/5
		all[name] = text{train: t[:a], validation: t[a:b], test: t[b:]}
	}
	return all, nil
}

// windows are pieces of a text, "x", [n, length], and the characters after each of theirs, "y"; pieces begin every
// stride characters.
func windows(t []int, length, stride int) (infer.Batch, error) {
	var x, y []int
	n := 0
	for from := 0; from+length < len(t); from += stride {
		x, y = append(x, t[from:from+length]...), append(y, t[from+1:from+length+1]...)
		n++
	}
	if n == 0 {
		return nil, fmt.Errorf("a text of %d characters is shorter than a window of %d", len(t), length)
	}
	xs, err := torch.FromSlice(x, n, length)
	if err != nil {
		return nil, err
	}
	ys, err := torch.FromSlice(y, n, length)
	return infer.Batch{"x": xs, "y": ys}, err
}
