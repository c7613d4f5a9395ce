package main

import (
	"os"
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
	text, err := os.ReadFile("../../" + page)
	require.NoError(t, err)
	want, err := parse(string(text))
	require.NoError(t, err)
	require.Greater(t, len(want), 15)
	for _, c := range want {
		assert.LessOrEqual(t, utf8.RuneCountInString(c.promise), 50, c.name)
		for _, command := range c.commands {
			assert.Regexp(t, `^go test -tags slow (-run '[^']+' )?\./\S+( \./\S+)*$`, command)
		}
		c.seen = strings.TrimSpace(strings.Repeat("12 kills of "+c.name+"; ", 9))
	}
	want[1].seen = failed
	written := render(string(text), want)
	for line := range strings.Lines(written) {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), columns+1, line)
	}
	got, err := parse(written)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	head, _, _ := strings.Cut(string(text), begin)
	_, tail, _ := strings.Cut(string(text), end)
	assert.True(t, strings.HasPrefix(written, head) && strings.HasSuffix(written, tail), "the rest stays")
	for wrong, why := range map[string]string{
		"nothing":                             "lacks the lines",
		begin + "\n| a | b | c | 1 |\n" + end: "no command for a",
		begin + end + "\n- **a**: b\n":        "no row for a",
	} {
		_, err = parse(wrong)
		assert.ErrorContains(t, err, why)
	}
}
