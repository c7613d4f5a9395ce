package main

import (
	"go/parser"
	"go/token"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each exported name needs a comment that begins with it; names of a group may share that of the group.
// Fields and methods of interfaces need any comment: their own, that of those above them, or that of the type.
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

// S has an Inside.
type S struct {
	// First is told of, and Second with it.
	First int
	Second int

	Third int
	Fourth int // this one is told of
	fifth int
	Inside int
}

// I is an interface.
type I interface {
	Do()

	Go() // goes
}

type hidden struct{ Field int }
`
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "", source, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	var names []string
	for _, d := range f.Decls {
		for _, name := range undocumented(set, d) {
			names = append(names, name.Name)
		}
	}
	assert.Equal(t, []string{"Bare", "Other", "Hidden", "Alone", "Lone", "Third", "Do"}, names)
}
