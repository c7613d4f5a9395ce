package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// writes lists where files are opened for writing by other means than internal/atomicfile, which follows no link and
// leaves devices and folders alone. os.CreateTemp is not among them: its names are free. Tests are not looked at.
func writes(root string) error {
	stray := 0
	err := sources(root, parser.SkipObjectResolution, func(dir string, set *token.FileSet, f *ast.File) error {
		if strings.HasPrefix(dir+"/", "internal/atomicfile/") {
			return nil
		}
		for _, at := range strayWrites(f) {
			fmt.Printf("%s: a file is opened for writing: use internal/atomicfile\n", set.Position(at))
			stray++
		}
		return nil
	})
	if err == nil && stray > 0 {
		err = fmt.Errorf("%d files are opened for writing past internal/atomicfile", stray)
	}
	return err
}

// writers are the functions that open a file for writing, by the path of their package; OpenFile may.
var writers = map[string][]string{"os": {"Create", "OpenFile", "Truncate", "WriteFile"}, "io/ioutil": {"WriteFile"},
	"syscall": {"Creat", "Open", "Truncate"}, "golang.org/x/sys/unix": {"Creat", "Open", "Openat", "Truncate"}}

// strayWrites are the places of a file that name such functions, called or handed on, whatever name the package has.
func strayWrites(f *ast.File) (places []token.Pos) {
	packages := map[string][]string{}
	for _, i := range f.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		name := path[strings.LastIndexByte(path, '/')+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		if functions, ok := writers[path]; ok {
			packages[name] = functions
			if name == "." {
				places = append(places, i.Pos()) // its functions would have no package before them
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && reads(call) {
			return false
		}
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && slices.Contains(packages[x.Name], s.Sel.Name) {
			places = append(places, s.Pos())
		}
		return true
	})
	return places
}

// reads says whether a call is one of OpenFile whose flag has O_RDONLY, and none that writes.
func reads(call *ast.CallExpr) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "OpenFile" || len(call.Args) != 3 {
		return false
	}
	found := false
	ast.Inspect(call.Args[1], func(n ast.Node) bool {
		switch s, _ := n.(*ast.SelectorExpr); {
		case s == nil:
		case s.Sel.Name == "O_RDONLY":
			found = true
		case strings.HasPrefix(s.Sel.Name, "O_"):
			ok = ok && slices.Contains([]string{"O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_DIRECTORY"}, s.Sel.Name)
		}
		return true
	})
	return ok && found
}
