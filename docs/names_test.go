package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNamesExist finds every name that a document mentions as `package.Name`, `package.Type.Member` or
// `package.Type{Field: ...}` in a public package of that name. A variable may have the name of a package, so members of
// its types count too. Blocks of Go are compared with programs above.
func TestNamesExist(t *testing.T) {
	names := exported(t, "..")
	mention := regexp.MustCompile(`(?:^|[^\w./"-])([a-z]\w*)\.([A-Z]\w*)(?:\.([A-Z]\w*))?(?:\{([A-Z]\w*):)?`)
	found := 0
	for _, pattern := range []string{"../*.md", "*.md", "tutorials/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no documents %s: %v", pattern, err)
		}
		for _, file := range files {
			if filepath.Base(file) == "CHANGELOG.md" { // it names what has gone
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			prose := string(text)
			for _, b := range blocks(prose) {
				prose = strings.Replace(prose, b, "", 1)
			}
			for _, m := range mention.FindAllStringSubmatch(prose, -1) {
				pkg := names[m[1]]
				if pkg == nil {
					continue
				}
				found++
				if !pkg[m[2]] && !pkg["."+m[2]] {
					t.Errorf("%s: there is no %s.%s", file, m[1], m[2])
				}
				for _, member := range m[3:] {
					if member != "" && pkg[m[2]] && !pkg["."+member] {
						t.Errorf("%s: %s.%s has no %s", file, m[1], m[2], member)
					}
				}
			}
		}
	}
	if found < 300 {
		t.Errorf("only %d names were found", found)
	}
}

// exported are the exported names of public packages by package name, with a dot before fields and methods. Embedded
// fields and the members of types that are another's may come from any package, so those of all count.
func exported(t *testing.T, root string) map[string]map[string]bool {
	t.Helper()
	names, members := map[string]map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata" ||
			name == "out" || name == "internal" || name == "examples" || name == "bench") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if names[f.Name.Name] == nil {
			names[f.Name.Name] = map[string]bool{}
		}
		own := names[f.Name.Name]
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil {
					own[n.Name.Name] = true
				} else {
					own["."+n.Name.Name], members["."+n.Name.Name] = true, true
				}
				return false
			case *ast.TypeSpec:
				own[n.Name.Name] = true
				if n.Assign.IsValid() {
					own["="] = true
				}
			case *ast.ValueSpec:
				for _, name := range n.Names {
					own[name.Name] = true
				}
			case *ast.Field:
				for _, name := range n.Names {
					own["."+name.Name], members["."+name.Name] = true, true
				}
				if len(n.Names) == 0 {
					own["="] = true // embedded
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, own := range names {
		if own["="] {
			for m := range members {
				own[m] = true
			}
		}
	}
	return names
}
