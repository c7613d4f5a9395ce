package main

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Aligned columns become tables; a line of one cell ends a table, and a row of another number of cells begins one.
func TestTables(t *testing.T) {
	require.Equal(t, `A machine.

| case | µs |
|---|---|
| add of 10 | 0.9 |
| a b c | -1 |

| x | y | z |
|---|---|---|
`, tables("A machine.\n\n      case    µs\n add of 10   0.9\n     a b c    -1\n\nx  y  z\n"))
}

// What fill gives takes the place of a block and of nothing else; the other blocks and the page stay.
func TestRewritten(t *testing.T) {
	page := "# Results\n\n<!-- results: go run ./bench/a -n 3 -->\nold\n<!-- end of results -->\nbetween\n" +
		"<!-- results: POSTERIORDB go run ./bench/b -->\nold\n<!-- end of results -->\n" +
		"<!-- results: GPU go run ./bench/c -->\nold\n<!-- end of results -->\nend\n"
	next, err := rewritten(page, func(b benchmark) (string, error) {
		require.Equal(t, map[string]string{"a": "", "b": "POSTERIORDB", "c": "GPU"}[b.name()], b.needs)
		if b.name() != "a" {
			return "", nil
		}
		return strings.Join(b.words, "+") + "\n", nil
	})
	require.NoError(t, err)
	require.Equal(t, strings.Replace(page, "old", "go+run+./bench/a+-n+3", 1), next)
	boom := errors.New("boom")
	_, err = rewritten(page, func(benchmark) (string, error) { return "", boom })
	require.ErrorIs(t, err, boom)
	_, err = rewritten("<!-- results: go run ./bench/a -->\n", nil)
	require.ErrorContains(t, err, "no end")
}

// Every block of the page is of a benchmark that is there.
func TestBlocksOfThePage(t *testing.T) {
	text, err := os.ReadFile("../../docs/results.md")
	require.NoError(t, err)
	found := 0
	_, err = rewritten(string(text), func(b benchmark) (string, error) {
		found++
		_, err := os.Stat("../" + b.name())
		return "", err
	})
	require.NoError(t, err)
	require.GreaterOrEqual(t, found, 5)
}
