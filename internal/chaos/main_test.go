package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFigures(t *testing.T) {
	log := "=== RUN   TestX\n    x_test.go:12: seen: 200 kills\n        x_test.go:14: SEEN: no\nseen: 3 flips\n--- PASS\n"
	assert.Equal(t, []string{"200 kills", "3 flips"}, seen([]byte(log)))
}

// What is written is read back, so that a run of one check keeps the lines of the others; no line is too long.
func TestPageIsReadBack(t *testing.T) {
	want := map[string]result{}
	for _, c := range checks {
		assert.LessOrEqual(t, utf8.RuneCountInString(c.promise), 50, c.name)
		want[c.name] = result{seen: strings.TrimSpace(strings.Repeat("12 kills of "+c.name+"; ", 9)), seconds: 7}
	}
	want["kills"] = result{seen: "FAILED", failed: true}
	text, err := render("# Title\n\n"+begin+"\nstale text\n"+end+"\nmore\n", want)
	require.NoError(t, err)
	for line := range strings.Lines(text) {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), columns+1, line)
	}
	assert.Equal(t, want, parse(text))
	assert.NotContains(t, text, "stale text")
	assert.True(t, strings.HasSuffix(text, end+"\nmore\n"))
	_, err = render("nothing", want)
	assert.ErrorContains(t, err, "lacks the lines")
}
