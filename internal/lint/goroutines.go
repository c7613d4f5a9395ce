package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// goroutines lists the goroutines of the library that do not recover: a panic in one ends the process. A goroutine is
// one of a parallel.Group, or a function of its file that defers a function which recovers. Programs of users, examples
// and benches, are not looked at.
func goroutines(root string) error {
	bare := 0
	err := sources(root, parser.SkipObjectResolution, func(dir string, set *token.FileSet, f *ast.File) error {
		dir += "/"
		if strings.HasPrefix(dir, "examples/") || strings.HasPrefix(dir, "bench/") ||
			strings.HasPrefix(dir, "internal/gotch/") || f.Name.Name == "main" {
			return nil
		}
		for _, at := range unrecovered(f) {
			fmt.Printf("%s: a goroutine that does not recover: use internal/parallel\n", set.Position(at))
			bare++
		}
		return nil
	})
	if err == nil && bare > 0 {
		err = fmt.Errorf("%d goroutines do not recover", bare)
	}
	return err
}

// unrecovered are the places where a file starts such goroutines, by go or by Go of a sync.WaitGroup.
func unrecovered(f *ast.File) (places []token.Pos) {
	bodies, groups := map[string]*ast.BlockStmt{}, map[string]bool{}
	isGroup := func(t ast.Expr) bool {
		s, ok := t.(*ast.SelectorExpr)
		return ok && s.Sel.Name == "WaitGroup"
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			bodies[n.Name.Name] = n.Body
		case *ast.Field:
			for _, name := range n.Names {
				groups[name.Name] = groups[name.Name] || isGroup(n.Type)
			}
		case *ast.ValueSpec:
			for _, name := range n.Names {
				groups[name.Name] = groups[name.Name] || isGroup(n.Type)
			}
		}
		return true
	})
	check := func(at token.Pos, function ast.Expr) {
		var body *ast.BlockStmt
		switch g := function.(type) {
		case *ast.FuncLit:
			body = g.Body
		case *ast.Ident:
			body = bodies[g.Name]
		case *ast.SelectorExpr:
			body = bodies[g.Sel.Name]
		}
		if body == nil || !recovers(body) {
			places = append(places, at)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			check(n.Pos(), n.Call.Fun)
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Go" && len(n.Args) == 1 && groups[last(s.X)] {
				check(n.Pos(), n.Args[0])
			}
		}
		return true
	})
	return places
}

// last is the last name of an expression such as c.workers.
func last(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}

// recovers says whether a function defers one that recovers.
func recovers(body *ast.BlockStmt) bool {
	found := false
	for _, statement := range body.List {
		d, ok := statement.(*ast.DeferStmt)
		if !ok {
			continue
		}
		ast.Inspect(d, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if name, ok := call.Fun.(*ast.Ident); ok && name.Name == "recover" {
					found = true
				}
			}
			return true
		})
	}
	return found
}
