package main

import (
	"go/parser"
	"go/token"
	"testing"

	"github.com/stretchr/testify/require"
)

// Files that are opened for writing are found, under whatever name of the package and where the function is handed on;
// what reads, makes names that are free, or goes through internal/atomicfile passes.
func TestWrites(t *testing.T) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "x.go", `package x
import ("os"; file "os"; "io/ioutil"; "syscall"; "kelvin/internal/atomicfile")
func good() {
	os.Open("a")
	os.OpenFile("a", os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	os.OpenFile("a", os.O_RDONLY|noFollow, 0)
	os.CreateTemp("", "a")
	os.Rename("a", "b")
	atomicfile.Open("a", os.O_RDWR|os.O_CREATE, 0o600)
	own.Create("a")
}
func bad() {
	os.Create("a")
	file.WriteFile("a", nil, 0)
	ioutil.WriteFile("a", nil, 0)
	os.OpenFile("a", os.O_WRONLY, 0)
	os.OpenFile("a", os.O_RDONLY|os.O_CREATE, 0)
	os.OpenFile("a", flag, 0)
	os.Truncate("a", 0)
	hand(os.Create)
	syscall.Open("a", 0, 0)
}`, parser.SkipObjectResolution)
	require.NoError(t, err)
	var lines []int
	for _, at := range strayWrites(f) {
		lines = append(lines, set.Position(at).Line)
	}
	require.Equal(t, []int{13, 14, 15, 16, 17, 18, 19, 20, 21}, lines)
	require.NoError(t, writes("../.."))
}
