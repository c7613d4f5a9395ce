package main

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/kelvin-ppl/kelvin/"

// imports are those of every package of a repository, without its tests: folders for packages of the module.
func imports(root string) (all map[string][]string, err error) {
	all = map[string][]string{}
	err = walk(root, func(path string) error {
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		dir = filepath.ToSlash(dir)
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
