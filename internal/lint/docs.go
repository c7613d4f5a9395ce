package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"unicode"
)

// docs lists the exported names of public packages whose doc comment is missing, or does not begin with the name.
func docs(root string) error {
	bare := 0
	mode := parser.ParseComments | parser.SkipObjectResolution
	err := sources(root, mode, func(dir string, set *token.FileSet, f *ast.File) error {
		if private(dir) || f.Name.Name == "main" {
			return nil
		}
		for _, d := range f.Decls {
			for _, name := range undocumented(set, d) {
				fmt.Printf("%s: %s has no doc comment of its own\n", set.Position(name.Pos()), name.Name)
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
func undocumented(set *token.FileSet, d ast.Decl) (names []*ast.Ident) {
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
				if s.Name.IsExported() {
					names = append(names, members(set, s.Type, s.Doc.Text()+d.Doc.Text())...)
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

// members finds the exported fields of a struct, and methods of an interface, that nothing tells of: neither a comment
// of their own, nor that of a member before them without an empty line between, nor that of the type, by their names.
func members(set *token.FileSet, t ast.Expr, about string) (names []*ast.Ident) {
	var list *ast.FieldList
	switch t := t.(type) {
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		if len(t.Methods.List) == 1 {
			return nil // the comment of the type is that of its method
		}
		list = t.Methods
	default:
		return nil
	}
	words := strings.FieldsFunc(about, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	shared, last := false, token.NoPos
	for _, f := range list.List {
		start := f.Pos()
		if f.Doc != nil {
			start = f.Doc.Pos()
		}
		shared = f.Doc != nil || f.Comment != nil || shared && set.Position(start).Line-set.Position(last).Line <= 1
		last = f.End()
		if f.Comment != nil {
			last = f.Comment.End()
		}
		for _, name := range f.Names {
			if name.IsExported() && !shared && !slices.Contains(words, name.Name) {
				names = append(names, name)
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
