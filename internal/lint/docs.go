package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
)

// docs lists the exported names of public packages whose doc comment is missing, or does not begin with the name.
func docs(root string) error {
	bare := 0
	err := walk(root, func(path string) error {
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") ||
			private(filepath.ToSlash(filepath.Dir(path))) {
			return nil
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || f.Name.Name == "main" {
			return err
		}
		for _, d := range f.Decls {
			for _, name := range undocumented(d) {
				fmt.Printf("%s: %s has no doc comment that begins with its name\n", set.Position(name.Pos()), name.Name)
				bare++
			}
		}
		return nil
	})
	if err == nil && bare > 0 {
		err = fmt.Errorf("%d exported names without their doc comment", bare)
	}
	return err
}

// undocumented finds such names in a declaration. Names in a group may be told of by the comment of the group, or
// behind them on their line.
func undocumented(d ast.Decl) (names []*ast.Ident) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && public(d.Recv) && !begins(d.Doc, d.Name.Name) {
			names = append(names, d.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && !begins(s.Doc, s.Name.Name) && !begins(d.Doc, s.Name.Name) {
					names = append(names, s.Name)
				}
			case *ast.ValueSpec:
				for _, name := range s.Names {
					told := d.Lparen.IsValid() && (d.Doc != nil || s.Doc != nil || s.Comment != nil)
					if name.IsExported() && !told && !begins(s.Doc, name.Name) && !begins(d.Doc, name.Name) {
						names = append(names, name)
					}
				}
			}
		}
	}
	return names
}

// public says whether a receiver is that of a function, or an exported type.
func public(recv *ast.FieldList) bool {
	if recv == nil {
		return true
	}
	t := recv.List[0].Type
	for {
		switch u := t.(type) {
		case *ast.StarExpr:
			t = u.X
		case *ast.IndexExpr:
			t = u.X
		case *ast.IndexListExpr:
			t = u.X
		case *ast.Ident:
			return u.IsExported()
		default:
			return false
		}
	}
}

// begins says whether a comment begins with a name.
func begins(c *ast.CommentGroup, name string) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(c.Text()), " ")
	return strings.TrimRight(first, ",:;.\n") == name || strings.HasPrefix(c.Text(), name+" ") ||
		strings.HasPrefix(c.Text(), name+",") || strings.HasPrefix(c.Text(), name+"\n")
}
