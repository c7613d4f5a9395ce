package main

import (
	"go/parser"
	"go/token"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each exported name needs a comment that begins with it; names of a group may share that of the group.
func TestUndocumented(t *testing.T) {
	const source = `package p

// Told is told of.
func Told() {}

func Bare() {}

// This one begins with another word.
func Other() {}

// T is a type.
type T[E any] struct{}

// Method is of T.
func (t *T[E]) Method() {}

func (t *T[E]) Hidden() {}

type private struct{}

func (private) Anything() {}

// The kinds.
const (
	One = iota
	Two
)

const Alone = 1

var (
	Lone = 2
	Lined = 3 // what it is
)
`
	f, err := parser.ParseFile(token.NewFileSet(), "", source, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	var names []string
	for _, d := range f.Decls {
		for _, name := range undocumented(d) {
			names = append(names, name.Name)
		}
	}
	assert.Equal(t, []string{"Bare", "Other", "Hidden", "Alone", "Lone"}, names)
}
