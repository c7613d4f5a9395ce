package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
)

// border is the one exported declaration that has gotch's tensor; torch.Of takes any value.
const border = "torch: T"

// oneTensor fails where an exported declaration of a public package has gotch's tensor in the place of torch.Tensor.
func oneTensor(root string) error {
	found, err := gotchTensors(root)
	for _, at := range found {
		fmt.Println(at)
	}
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("%d exported declarations have gotch's tensor: use torch.Tensor", len(found))
	}
	return err
}

// gotchTensors are the places of such declarations.
func gotchTensors(root string) (found []string, err error) {
	mode := parser.SkipObjectResolution
	err = sources(root, mode, func(dir string, set *token.FileSet, f *ast.File) error {
		if private(dir) || f.Name.Name == "main" {
			return nil
		}
		name := importName(f, "github.com/sugarme/gotch/ts")
		for _, d := range f.Decls {
			for _, part := range signatures(d) {
				if at := mentions(part.node, name); at.IsValid() && dir+": "+part.name != border {
					found = append(found, fmt.Sprintf("%s: %s has gotch's tensor", set.Position(at), part.name))
				}
			}
		}
		return nil
	})
	return found, err
}

// importName is what a file calls a package, "" where it does not import it.
func importName(f *ast.File, path string) string {
	for _, i := range f.Imports {
		if p, err := strconv.Unquote(i.Path.Value); err == nil && p == path {
			if i.Name != nil {
				return i.Name.Name
			}
			return filepath.Base(path)
		}
	}
	return ""
}

// signature is a part of a declaration that a user sees.
type signature struct {
	name string
	node ast.Node
}

// signatures are the types of exported functions, methods of exported types, fields, variables and named types.
func signatures(d ast.Decl) (out []signature) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && public(d.Recv) {
			out = append(out, signature{d.Name.Name, d.Type})
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					out = append(out, inside(s)...)
				}
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if n.IsExported() && s.Type != nil {
						out = append(out, signature{n.Name, s.Type})
					}
				}
			}
		}
	}
	return out
}

// inside are the exported fields of a struct, and the whole of another type.
func inside(s *ast.TypeSpec) (out []signature) {
	t, ok := s.Type.(*ast.StructType)
	if !ok {
		return []signature{{s.Name.Name, s.Type}}
	}
	for _, f := range t.Fields.List {
		for _, n := range f.Names {
			if n.IsExported() {
				out = append(out, signature{s.Name.Name + "." + n.Name, f.Type})
			}
		}
		if len(f.Names) == 0 {
			out = append(out, signature{s.Name.Name, f.Type})
		}
	}
	return out
}

// mentions is where a type has the Tensor of the package with that name.
func mentions(n ast.Node, pkg string) (at token.Pos) {
	if pkg == "" {
		return token.NoPos
	}
	ast.Inspect(n, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Tensor" {
			if id, ok := s.X.(*ast.Ident); ok && id.Name == pkg && !at.IsValid() {
				at = s.Pos()
			}
		}
		return true
	})
	return at
}
