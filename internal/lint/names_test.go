package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Methods, fields, unexported names, tests, programs and private folders do not count.
func TestNames(t *testing.T) {
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
	counts, err := count(root)
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"ppl": 2, "ode": 3}, counts)
}
