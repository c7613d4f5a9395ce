// Command lint checks what no other tool does: `lint columns` fails where a line of the repository is longer than 120
// characters or a file larger than 2 MiB, `lint docs` where an exported name of a public package has no doc comment
// that begins with the name, or a field none at all, `lint names` prints how many names each public package exports and
// fails above the limit, or where a signature of one has gotch's tensor in the place of torch.Tensor, `lint goroutines`
// fails where the library starts a goroutine whose panic would end the process, and `lint writes` where a file is
// opened for writing by other means than internal/atomicfile. `lint rooms` draws the public packages and what they
// need, `lint size` prints how large the rooms are, and `lint slowest` passes on what go test prints, with the five
// packages that took longest.
package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxColumns = 120
	maxNames   = 1010    // of all public packages; survival and services took the last ten
	maxBytes   = 2 << 20 // of a file: a built program is more
)

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
	case "size":
		err = size(".")
	case "rooms":
		err = writeRooms(".")
	case "slowest":
		err = slowest(os.Stdin, os.Stdout)
	default:
		err = fmt.Errorf("usage: lint columns|docs|goroutines|names|rooms|size|slowest|writes, not %q", arg)
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

// sources visits the Go files of the repository that are no tests, parsed, with their folder below the root.
func sources(root string, mode parser.Mode, visit func(dir string, set *token.FileSet, f *ast.File) error) error {
	return walk(root, func(path string) error {
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, mode)
		if err != nil {
			return err
		}
		return visit(filepath.ToSlash(dir), set, f)
	})
}

// ignored are the files that git ignores, as the folders of fits and reports beside them; none where git is not there.
func ignored(root string) map[string]bool {
	list := exec.Command("git", "ls-files", "-z", "--others", "--ignored", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	names := map[string]bool{}
	if err == nil {
		for _, name := range strings.Split(string(out), "\x00") {
			names[filepath.Join(root, filepath.FromSlash(name))] = true
		}
	}
	return names
}

// columns lists the lines that are too long in code and documents.
func columns(root string) error {
	long, skipped := 0, ignored(root)
	err := walk(root, func(path string) error {
		if skipped[path] {
			return nil
		}
		if info, err := os.Stat(path); err != nil {
			return err
		} else if info.Size() > maxBytes {
			return fmt.Errorf("%s has %d bytes, and a file of the repository at most %d: is it a built program?", path,
				info.Size(), maxBytes)
		}
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
			command := strings.HasPrefix(lines.Text(), "<!-- results: ") // which a program reads, on one line
			if width := utf8.RuneCount(lines.Bytes()); width > maxColumns && !command {
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

// count counts the exported types, functions, variables and constants of the public packages.
func count(root string) (counts map[string]int, err error) {
	counts = map[string]int{}
	err = sources(root, parser.SkipObjectResolution, func(dir string, _ *token.FileSet, f *ast.File) error {
		if private(dir) || f.Name.Name == "main" {
			return nil
		}
		for _, d := range f.Decls {
			if n := len(exported(d)); n > 0 {
				counts[dir] += n
			}
		}
		return nil
	})
	return counts, err
}

// names prints how many names each package exports, and their sum, which has a limit.
func names(root string) error {
	counts, err := count(root)
	if err != nil {
		return err
	}
	total := 0
	for _, dir := range slices.Sorted(maps.Keys(counts)) {
		fmt.Printf("%4d %s\n", counts[dir], dir)
		total += counts[dir]
	}
	fmt.Printf("%4d exported names, of at most %d\n", total, maxNames)
	if total > maxNames {
		return fmt.Errorf("%d exported names: unexport what nobody outside its package needs", total)
	}
	return oneTensor(root)
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
