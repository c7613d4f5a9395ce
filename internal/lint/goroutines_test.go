package main

import (
	"go/parser"
	"go/token"
	"testing"

	"github.com/stretchr/testify/require"
)

// Goroutines that recover pass, those that do not are found, in each form.
func TestGoroutines(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
func good() { defer func() { if v := recover(); v != nil { note(v) } }(); work() }
func bad() { work() }
type s struct { wait sync.WaitGroup; own parallel.Group }
func start(x *s) {
	go good()
	go func() { defer func() { _ = recover() }(); work() }()
	x.own.Go(bad)
	var others sync.WaitGroup
	others.Go(good)
	go bad()
	go func() { work() }()
	go elsewhere.Run()
	x.wait.Go(func() { work() })
	others.Go(bad)
}`, parser.SkipObjectResolution)
	require.NoError(t, err)
	require.Len(t, unrecovered(f), 5)
	require.NoError(t, goroutines("../.."))
}
