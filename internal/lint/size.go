package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// room is the size of one folder of Go files, in lines of any kind, and how many names it exports.
type room struct {
	code, tests, exported int
	longest               function
	command               bool // it is a program
}

// function is a function and its lines, of the tests apart.
type function struct {
	name  string
	lines int
}

// size prints the lines, the exported names and the longest function of each folder, the totals of the library, of
// examples, benches and commands, and of the pages, and how many packages there are.
func size(root string) error {
	rooms, pages, err := measure(root)
	if err != nil {
		return err
	}
	names, err := count(root)
	if err != nil {
		return err
	}
	fmt.Printf("%-36s %8s %8s %8s  %s\n", "folder", "lines", "tests", "exported", "longest function")
	var total, library, rest room
	packages, commands := 0, 0
	for _, dir := range slices.Sorted(maps.Keys(rooms)) {
		r := rooms[dir]
		fmt.Printf("%-36s %8d %8d %8d  %s %d\n", dir, r.code, r.tests, names[dir], r.longest.name, r.longest.lines)
		part := &library
		if apart(dir) {
			part = &rest
		} else if r.command {
			commands++
		} else if r.code > 0 {
			packages++
		}
		for _, sum := range []*room{part, &total} {
			sum.code, sum.tests, sum.exported = sum.code+r.code, sum.tests+r.tests, sum.exported+names[dir]
			sum.longest = longer(sum.longest, r.longest)
		}
	}
	for _, row := range []struct {
		name string
		room
	}{{"library", library}, {"examples, benches, commands", rest}, {"all", total}} {
		fmt.Printf("%-36s %8d %8d %8d  %s %d\n", row.name, row.code, row.tests, row.exported, row.longest.name,
			row.longest.lines)
	}
	fmt.Printf("%d packages that are not examples, benches or commands, %d commands below internal, %d lines of pages\n",
		packages, commands, pages)
	return nil
}

// apart are the folders of programs: examples, benches and commands.
func apart(dir string) bool {
	first, _, _ := strings.Cut(dir, "/")
	return first == "examples" || first == "bench" || first == "cmd"
}

func longer(a, b function) function {
	if cmp.Compare(a.lines, b.lines) < 0 {
		return b
	}
	return a
}

// measure reads the Go files, without generated ones, and the pages.
func measure(root string) (rooms map[string]*room, pages int, err error) {
	rooms = map[string]*room{}
	err = walk(root, func(path string) error {
		ending := filepath.Ext(path)
		if ending != ".go" && ending != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		lines := bytes.Count(text, []byte("\n"))
		if ending == ".md" {
			pages += lines
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil || ast.IsGenerated(f) {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		dir = filepath.ToSlash(dir)
		if rooms[dir] == nil {
			rooms[dir] = &room{}
		}
		r := rooms[dir]
		if strings.HasSuffix(path, "_test.go") {
			r.tests += lines
			return nil
		}
		r.code += lines
		r.command = f.Name.Name == "main"
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok {
				from, to := fset.Position(d.Pos()), fset.Position(d.End())
				r.longest = longer(r.longest, function{d.Name.Name, to.Line - from.Line + 1})
			}
		}
		return nil
	})
	return rooms, pages, err
}
