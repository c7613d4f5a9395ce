package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The sum is over all rooms: those with a limit of their own, the others, and names that were added. Methods, fields,
// unexported names, tests, programs and private folders do not count.
func TestNamesInAll(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"ppl/ppl.go":        "package ppl\n\nfunc Enumerate() {}\n\nfunc Sample() {}\n\nfunc hidden() {}\n",
		"ppl/ppl_test.go":   "package ppl\n\nfunc Tested() {}\n",
		"ode/ode.go":        "package ode\n\ntype T struct{ Field int }\n\nfunc (T) Method() {}\n\nvar A, B = 1, 2\n",
		"cmd/x/main.go":     "package main\n\nfunc Run() {}\n",
		"ppl/internal/i.go": "package internal\n\nfunc Inner() {}\n",
	} {
		file := filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	counts, extra, err := count(root)
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"ppl": 1, "ode": 3}, counts)
	assert.Equal(t, map[string][]string{"ppl": {"Enumerate"}}, extra)
	assert.Equal(t, 5, inAll(counts, extra))
}

// docs/design.md states the figures that `lint names` prints.
func TestDesignStatesTheSum(t *testing.T) {
	counts, extra, err := count("../..")
	require.NoError(t, err)
	first, apart, listed := 0, 0, 0
	for dir, n := range counts {
		if _, ok := later[dir]; ok {
			apart += n
		} else {
			first += n
		}
	}
	for _, names := range extra {
		listed += len(names)
	}
	text, err := os.ReadFile("../../docs/design.md")
	require.NoError(t, err)
	assert.Contains(t, strings.Join(strings.Fields(string(text)), " "), fmt.Sprintf("%d names of the first rooms, %d of "+
		"later ones and %d that were added are %d in all", first, apart, listed, inAll(counts, extra)))
}
