package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Events as go test prints them become a table of the packages that have tests, with the innermost tests that fail.
func TestTable(t *testing.T) {
	const events = `{"Action":"start","Package":"example.com/kelvin/a"}
{"Action":"run","Package":"example.com/kelvin/a","Test":"TestOne"}
{"Action":"output","Package":"example.com/kelvin/a","Test":"TestOne","Output":"quiet\n"}
{"Action":"pass","Package":"example.com/kelvin/a","Test":"TestOne","Elapsed":0.1}
{"Action":"skip","Package":"example.com/kelvin/a","Test":"TestTwo","Elapsed":0}
{"Action":"pass","Package":"example.com/kelvin/a","Elapsed":2.4}
{"Action":"skip","Package":"example.com/kelvin/none","Elapsed":0}
{"Action":"output","Package":"example.com/kelvin/b/c","Test":"TestX/deep","Output":"1 is not 2\n"}
{"Action":"fail","Package":"example.com/kelvin/b/c","Test":"TestX/deep","Elapsed":0}
{"Action":"fail","Package":"example.com/kelvin/b/c","Test":"TestX","Elapsed":0}
{"Action":"fail","Package":"example.com/kelvin/b/c","Test":"TestXY","Elapsed":0}
{"Action":"fail","Package":"example.com/kelvin/b/c","Elapsed":7.6}
{"ImportPath":"example.com/kelvin/d","Action":"build-output","Output":"d.go:1: no\n"}
{"ImportPath":"example.com/kelvin/d","Action":"build-fail"}
{"Action":"fail","Package":"example.com/kelvin/d","Elapsed":0,"FailedBuild":"example.com/kelvin/d"}
`
	var log bytes.Buffer
	r, err := read(strings.NewReader(events), &log)
	require.NoError(t, err)
	assert.Equal(t, "ok example.com/kelvin/a 2 s\n1 is not 2\nd.go:1: no\n", log.String())
	assert.Equal(t, "| libtorch | 9.9.9 |\n| --- | ---: |\n| commit | abc |\n| day | today |\n"+
		"| packages that pass | 1 of 3 |\n| `a` | 1 |\n| `b/c` | FAIL: TestX/deep, TestXY |\n| `d` | FAIL |\n",
		table([]saved{{Version: "9.9.9", Commit: "abc", Date: "today", Packages: r}}))

	_, err = read(strings.NewReader("panic: no JSON\n"), &log)
	assert.ErrorContains(t, err, "panic: no JSON")
}

func TestVersionIsRequired(t *testing.T) {
	assert.ErrorContains(t, run(t.Context(), nil), "make test-libtorch VERSION=")
}

// The page has the versions in their order, the tests that pass, and the names of those that fail. A second run of a
// commit adds its packages, and one of another commit begins anew.
func TestPage(t *testing.T) {
	dir := t.TempDir()
	run := func(version, commit, name string, r result) {
		at := place(filepath.Join(dir, version))
		require.NoError(t, os.MkdirAll(string(at), 0o755))
		require.NoError(t, at.save(saved{Version: version, Commit: commit, Date: "2026-11-23",
			Packages: results{"example.com/kelvin/" + name: &r}}))
	}
	run("2.15.0", "old", "gone", result{Outcome: "ok", Passed: 9})
	run("2.15.0", "new", "a", result{Outcome: "ok", Passed: 3})
	run("2.15.0", "new", "b", result{Outcome: "FAIL", Passed: 1, Failed: []string{"TestX"}})
	run("2.5.1", "new", "a", result{Outcome: "ok", Passed: 4})
	path := filepath.Join(dir, "page.md")
	require.NoError(t, page(dir, path))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(data), "| libtorch")
	assert.Equal(t, " | 2.5.1 | 2.15.0 |\n| --- | ---: | ---: |\n| commit | new | new |\n"+
		"| day | 2026-11-23 | 2026-11-23 |\n"+
		"| packages that pass | 1 of 1 | 1 of 2 |\n| `a` | 4 | 3 |\n| `b` |  | FAIL: TestX |\n", table)

	assert.ErrorContains(t, page(t.TempDir(), path), "has no results")
}
