package main

import (
	"bytes"
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
	var log, table bytes.Buffer
	r, err := read(strings.NewReader(events), &log)
	require.NoError(t, err)
	assert.Equal(t, "ok example.com/kelvin/a 2 s\n1 is not 2\nd.go:1: no\n", log.String())
	r.table(&table, "9.9.9")
	assert.Equal(t, "| package | libtorch 9.9.9 | tests | s |\n|---|---|---:|---:|\n"+
		"| `a` | ok | 1 | 2 |\n| `b/c` | FAIL: TestX/deep, TestXY | 0 | 8 |\n| `d` | FAIL | 0 | 0 |\n"+
		"\n1 of 3 packages pass with libtorch 9.9.9.\n", table.String())

	_, err = read(strings.NewReader("panic: no JSON\n"), &log)
	assert.ErrorContains(t, err, "panic: no JSON")
}

func TestVersionIsRequired(t *testing.T) {
	assert.ErrorContains(t, run(t.Context(), nil), "make test-libtorch VERSION=")
}
