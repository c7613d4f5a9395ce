package nntest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/models/nn"
)

// AllLayers checks that each type of the tested package with a method Plan is a layer of one of the cases, at any
// depth.
func AllLayers(t *testing.T, cases []Case) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	used := map[string]bool{}
	for _, c := range cases {
		find(reflect.ValueOf(c.Layers), used)
	}
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		for _, d := range parsed.Decls {
			method, ok := d.(*ast.FuncDecl)
			if !ok || method.Recv == nil || method.Name.Name != "Plan" {
				continue
			}
			receiver := method.Recv.List[0].Type
			if star, ok := receiver.(*ast.StarExpr); ok {
				receiver = star.X
			}
			name := receiver.(*ast.Ident).Name
			require.True(t, used[parsed.Name.Name+"."+name], "the layer %s is in none of the cases", name)
			found++
		}
	}
	require.Positive(t, found, "types with a method Plan")
}

var layer = reflect.TypeFor[nn.Layer]()

// find adds the types of layers that are in a value.
func find(v reflect.Value, used map[string]bool) {
	if v.Type().Implements(layer) && v.Kind() != reflect.Interface {
		used[v.Type().String()] = true
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			find(v.Elem(), used)
		}
	case reflect.Slice:
		for i := range v.Len() {
			find(v.Index(i), used)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			find(v.Field(i), used)
		}
	}
}
