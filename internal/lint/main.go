// Command lint checks what no other tool does: `lint columns` fails where a line of the repository is longer than 120
// characters, `lint docs` where an exported name of a public package has no doc comment that begins with the name, or a
// field none at all, `lint names` prints how many names each public package exports and fails above the limit,
// `lint goroutines` fails where the library starts a goroutine whose panic would end the process, and `lint writes`
// where a file is opened for writing by other means than internal/atomicfile.
package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxColumns = 120
	maxNames   = 720
)

// later are the rooms that came after the limit was set, each with a limit of its own.
var later = map[string]int{"infer/path": 12, "infer/evidence": 24, "data": 24, "data/batch": 1, "diag/sbc": 6,
	"infer/pathfinder": 3, "infer/hmc/microcanonical": 2, "infer/svi": 9, "infer/svi/guide": 8,
	"dist/statespace": 10, "models/gp": 13, "cluster": 10,
	"diag/check": 5, "diag/nested": 1, "diag/plot/chains": 8, "diag/plot/predictive": 5,
	"models/nn/augment": 2, "models/nn/layers": 18, "models/nn/networks": 6, "models/nn/kernels": 6,
	"models/nn/safetensors": 8, "models/shrinkage": 2, "models/nn/weights": 8, "models/odes": 4,
	"ode": 10, "data/large": 9, "data/large/loader": 3}

// added are names of rooms that were there when the limit was set, for what the language could not do then. They are
// listed one by one and counted apart; all other names of these rooms have to stay within the limit.
var added = map[string][]string{
	// distributions that Pyro and Stan have
	"dist": {"DirichletMultinomial", "GeneralizedNormal", "InverseGaussian", "InverseWishartCholesky",
		"MultivariateStudentT", "SkewNormal", "WishartCholesky", "ZeroSumNormal"},
	"dist/bijector": {"ZeroSum"}, "dist/support": {"KindZeroSum", "ZeroSum"}, // what ZeroSumNormal lives on
	"ppl": {"Enumerate", "InferDiscrete"}, // discrete latent variables are summed out, and inferred afterwards
}

// texts are the endings of the files whose lines are measured. A tab is one character.
var texts = []string{".go", ".go.txt", ".md", ".c", ".cpp", ".h", ".py", ".stan", ".js", ".css", ".html", ".yaml",
	".service", "Makefile", "Dockerfile"}

func main() {
	var err error
	switch arg := strings.Join(os.Args[1:], " "); arg {
	case "columns":
		err = columns(".")
	case "docs":
		err = docs(".")
	case "names":
		err = names(".")
	case "goroutines":
		err = goroutines(".")
	case "writes":
		err = writes(".")
	default:
		err = fmt.Errorf("usage: lint columns|docs|goroutines|names|writes, not %q", arg)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lint:", err)
		os.Exit(1)
	}
}

// walk visits the files of the repository, without generated, built and hidden ones.
func walk(root string, visit func(path string) error) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != root &&
			(strings.HasPrefix(name, ".") || name == "out" || name == "testdata") {
			return filepath.SkipDir
		}
		if d.Type().IsRegular() {
			return visit(path)
		}
		return nil
	})
}

// columns lists the lines that are too long in code and documents.
func columns(root string) error {
	long := 0
	err := walk(root, func(path string) error {
		if !slices.ContainsFunc(texts, func(ending string) bool { return strings.HasSuffix(path, ending) }) {
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<24)
		for n := 1; lines.Scan(); n++ {
			if width := utf8.RuneCount(lines.Bytes()); width > maxColumns {
				fmt.Printf("%s:%d: %d characters\n", path, n, width)
				long++
			}
		}
		return lines.Err()
	})
	if err == nil && long > 0 {
		err = fmt.Errorf("%d lines are longer than %d characters", long, maxColumns)
	}
	return err
}

// count counts the exported types, functions, variables and constants of the public packages, room by room, and lists
// those that were added apart.
func count(root string) (counts map[string]int, extra map[string][]string, err error) {
	counts, extra = map[string]int{}, map[string][]string{}
	err = walk(root, func(path string) error {
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		dir = filepath.ToSlash(dir)
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || private(dir) {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil || f.Name.Name == "main" {
			return err
		}
		for _, d := range f.Decls {
			for _, name := range exported(d) {
				if slices.Contains(added[dir], name) {
					extra[dir] = append(extra[dir], name)
				} else {
					counts[dir]++
				}
			}
		}
		return nil
	})
	return counts, extra, err
}

// inAll is the sum over all rooms, names that were added included.
func inAll(counts map[string]int, extra map[string][]string) (sum int) {
	for _, n := range counts {
		sum += n
	}
	for _, names := range extra {
		sum += len(names)
	}
	return sum
}

// names prints how many names the rooms export, and their sum. It fails where a room, or the rooms that have no limit
// of their own together, export more than is allowed.
func names(root string) error {
	counts, extra, err := count(root)
	if err != nil {
		return err
	}
	for dir, names := range added {
		for _, name := range names {
			if !slices.Contains(extra[dir], name) {
				return fmt.Errorf("%s has no %s, which is listed as added: take it off the list", dir, name)
			}
		}
	}
	dirs, total := []string{}, 0
	for dir, n := range counts {
		dirs = append(dirs, dir)
		total += n
	}
	slices.Sort(dirs)
	for _, dir := range dirs {
		limit, apart := later[dir]
		if !apart {
			fmt.Printf("%4d %s", counts[dir], dir)
			if n := len(extra[dir]); n > 0 {
				fmt.Printf(", and %d that were added: %s", n, strings.Join(extra[dir], ", "))
			}
			fmt.Println()
			continue
		}
		fmt.Printf("%4d %s, of at most %d\n", counts[dir], dir, limit)
		if total -= counts[dir]; counts[dir] > limit {
			return fmt.Errorf("%s exports %d names, at most %d: unexport what nobody else needs", dir, counts[dir], limit)
		}
	}
	fmt.Printf("%4d exported names elsewhere, of at most %d\n", total, maxNames)
	fmt.Printf("%4d exported names in all rooms\n", inAll(counts, extra))
	if total > maxNames {
		return fmt.Errorf("%d exported names: unexport what nobody outside its package needs", total)
	}
	return nil
}

// private says whether a folder is no public package.
func private(dir string) bool {
	for _, part := range strings.Split(dir, "/") {
		if slices.Contains([]string{"internal", "examples", "bench", "cmd"}, part) {
			return true
		}
	}
	return false
}

// exported are the exported names of a declaration at the top level.
func exported(d ast.Decl) (names []string) {
	add := func(name *ast.Ident) {
		if name.IsExported() {
			names = append(names, name.Name)
		}
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			add(d.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				add(s.Name)
			case *ast.ValueSpec:
				for _, name := range s.Names {
					add(name)
				}
			}
		}
	}
	return names
}
