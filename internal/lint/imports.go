package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/kelvin-ppl/kelvin/"

// imports are those of every package of a repository, without its tests: folders for packages of the module.
func imports(root string) (all map[string][]string, err error) {
	all = map[string][]string{}
	err = sources(root, parser.ImportsOnly, func(dir string, _ *token.FileSet, f *ast.File) error {
		for _, spec := range f.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if name = strings.TrimPrefix(name, module); !slices.Contains(all[dir], name) {
				all[dir] = append(all[dir], name)
			}
		}
		return nil
	})
	return all, err
}
