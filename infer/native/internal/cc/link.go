package cc

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unsafe"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/internal/ccompiler"
)

// registered are the programs that were linked into this binary, by the digest of their texts.
var registered sync.Map

// digest names the text of a plan.
func digest(text string) string {
	d := sha256.Sum256([]byte(text))
	return hex.EncodeToString(d[:])
}

// Register makes the functions of a linked text known, under the digest of what [Emit] gives for its plan. They are
// used in the place of compiling, also on machines without a compiler. It is for init functions.
func Register(digest string, prologue, main unsafe.Pointer) {
	registered.Store(digest, [2]unsafe.Pointer{prologue, main})
}

// Registered is how many programs were linked into this binary.
func Registered() (n int) {
	registered.Range(func(any, any) bool { n++; return true })
	return n
}

// findLinked is the program of a text that was linked into this binary. Closing it does nothing.
func findLinked(text string) (*Program, bool) {
	f, ok := registered.Load(digest(text))
	if !ok {
		return nil, false
	}
	functions := f.([2]unsafe.Pointer)
	return &Program{Prologue: functions[0], Main: functions[1]}, true
}

// Write adds the C of a plan to the Go package in a folder, and writes the Go file of that package anew, whose init
// function registers all C that Write has put there. A binary with this package needs no compiler where it runs.
// Several processes may write to one folder.
func Write(dir string, p *ir.Plan) error {
	text, err := Emit(p)
	if err != nil {
		return err
	}
	id := digest(text)
	body, err := emitPlan(p, "_"+id[:idDigits])
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	name, err := packageName(dir)
	if err != nil {
		return err
	}
	c := []byte(ccompiler.Mark + id + "\n" + common() + body)
	if err := replace(filepath.Join(dir, ccompiler.Prefix+id[:idDigits]+".c"), c); err != nil {
		return err
	}
	// The last process to write the Go file has seen all C: it looks once more after writing.
	for wrote := []string(nil); ; {
		all, err := written(dir)
		if err != nil || slices.Equal(all, wrote) {
			return err
		}
		if err := replace(filepath.Join(dir, ccompiler.GoFile), goFile(name, all)); err != nil {
			return err
		}
		wrote = all
	}
}

// idDigits is how much of a digest tells functions and files apart.
const idDigits = 16

func replace(path string, data []byte) error {
	return atomicfile.Replace(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// written are the digests of the C that is in a folder, in order.
func written(dir string) ([]string, error) {
	paths, err := ccompiler.Files(dir)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, path := range paths {
		if filepath.Ext(path) != ".c" {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		line, err := bufio.NewReader(f).ReadString('\n')
		_ = f.Close()
		if err != nil {
			return nil, err
		}
		all = append(all, strings.TrimSpace(strings.TrimPrefix(line, ccompiler.Mark)))
	}
	slices.Sort(all)
	return all, nil
}

// packageName is the package of the Go files in a folder. For a folder without Go files it is made of the folder's
// name.
func packageName(dir string) (string, error) {
	entries, err := fs.Glob(os.DirFS(dir), "*.go")
	if err != nil {
		return "", err
	}
	for _, name := range entries {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.PackageClauseOnly)
		if err == nil {
			return file.Name.Name, nil
		}
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	name := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, filepath.Base(abs))
	if name == "" || !unicode.IsLetter([]rune(name)[0]) || token.IsKeyword(name) {
		name = "kelvin" + name
	}
	return name, nil
}

// goFile is the Go file of a package with the C of the given digests.
func goFile(name string, digests []string) []byte {
	var declare, register strings.Builder
	for _, d := range digests {
		id := "_" + d[:idDigits]
		fmt.Fprintf(&declare, "int kelvin_prologue%s(const void *);\nint kelvin_main%s(const void *);\n", id, id)
		fmt.Fprintf(&register, "\tnative.Register(%q,\n\t\tunsafe.Pointer(C.kelvin_prologue%s), ", d, id)
		fmt.Fprintf(&register, "unsafe.Pointer(C.kelvin_main%s))\n", id)
	}
	return fmt.Appendf(nil, linkedGo, name, declare.String(), register.String())
}

const linkedGo = ccompiler.GoMark + `
// Compiled gradients, of which the C files beside this one hold the code.

package %s

/*
#cgo CFLAGS: -std=gnu11 -O3 -fopenmp-simd -DKELVIN_PORTABLE
#cgo LDFLAGS: -lm
%s*/
import "C"

import (
	"unsafe"

	"github.com/kelvin-ppl/kelvin/infer/native"
)

func init() {
%s}
`
