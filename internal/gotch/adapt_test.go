package gotch

import (
	"crypto/sha256"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// digest is the content of a folder: names, modes and texts.
func digest(t testing.TB, dir string) string {
	t.Helper()
	h := sha256.New()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(h, path, info.Mode())
		if !d.IsDir() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			h.Write(text)
		}
		return nil
	}))
	return fmt.Sprintf("%x", h.Sum(nil))
}

// sources parses the Go files of a folder of the copy.
func sources(t testing.TB, dir string) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err, "adapted files are valid Go")
		files[filepath.Base(name)] = file
	}
	return files
}

// calls counts the calls of a function, written pkg.name or name, in a file.
func calls(file *ast.File, name string) int {
	n := 0
	ast.Inspect(file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch f := call.Fun.(type) {
		case *ast.Ident:
			if f.Name == name {
				n++
			}
		case *ast.SelectorExpr:
			if x, ok := f.X.(*ast.Ident); ok && x.Name+"."+f.Sel.Name == name {
				n++
			}
		}
		return true
	})
	return n
}

// Adapting the published source gives a copy without the defects that the edits are for, and leaves the
// source as it was.
func TestAdaptThePublishedSource(t *testing.T) {
	src, dst := source(t), filepath.Join(t.TempDir(), "made", "by", "adapt")
	before := digest(t, src)
	flags := Flags{CXXFLAGS: []string{"-I/opt/lib torch/include", "-D_GLIBCXX_USE_CXX11_ABI=1"},
		LDFLAGS: []string{"-L/opt/lib torch/lib", "-ltorch", "-lc10"}}
	require.NoError(t, Adapt(src, dst, flags))
	assert.Equal(t, before, digest(t, src), "the source is untouched")

	t.Run("failures are errors", func(t *testing.T) {
		for _, pkg := range []string{"ts", "nn"} {
			for name, file := range sources(t, filepath.Join(dst, pkg)) {
				for _, f := range []string{"log.Fatal", "log.Fatalf", "log.Fatalln", "os.Exit"} {
					assert.Zerof(t, calls(file, f), "%s/%s calls %s", pkg, name, f)
				}
			}
		}
		device := sources(t, dst)["device.go"]
		assert.Zero(t, calls(device, "log.Fatal")+calls(device, "log.Fatalf"))
		assert.Equal(t, fatalsInMust, calls(sources(t, filepath.Join(dst, "ts"))["must-tensor-generated.go"],
			"KelvinFatal"))
	})

	t.Run("no memory of size 0", func(t *testing.T) {
		for _, name := range []string{"tensor-generated.go", "tensor.go", "patch.go"} {
			for _, line := range strings.Split(read(t, dst, "ts", name), "\n") {
				code, _, _ := strings.Cut(line, "//")
				if !strings.HasPrefix(strings.TrimSpace(code), "*") { // inside a comment of several lines
					assert.NotContains(t, code, "malloc(0)", name)
				}
			}
		}
	})

	// Whoever uses a handle has begun a use before, and ends it.
	t.Run("freed tensors are refused", func(t *testing.T) {
		uses := 0
		for name, file := range sources(t, filepath.Join(dst, "ts")) {
			if strings.HasPrefix(name, "kelvin_") {
				continue
			}
			for _, d := range file.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || fn.Body == nil {
					continue
				}
				begun, ended := map[string]bool{}, map[string]bool{}
				ast.Inspect(fn.Body, func(n ast.Node) bool {
					sel, ok := n.(*ast.SelectorExpr)
					if !ok {
						return true
					}
					x := fmt.Sprintf("%T", sel.X)
					if id, ok := sel.X.(*ast.Ident); ok {
						x = id.Name
					}
					switch sel.Sel.Name {
					case "begin":
						begun[x] = true
					case "end":
						ended[x] = true
					case "ctensor", "cscalar":
						uses++
						assert.Truef(t, begun[x], "%s: %s uses the handle of %s and has not begun", name, fn.Name.Name, x)
					}
					return true
				})
				assert.Equal(t, begun, ended, "%s: %s", name, fn.Name.Name)
			}
		}
		assert.Greater(t, uses, 3000)
		generated := sources(t, filepath.Join(dst, "ts"))["tensor-generated.go"]
		assert.Equal(t, 60, calls(generated, "beginAll"), "operations on lists")
		assert.GreaterOrEqual(t, calls(generated, "endAll"), 60)
		assert.Zero(t, calls(generated, "TorchErr"))
		assert.Zero(t, calls(generated, "newTensor"))
	})

	t.Run("wrappers report in their buffer", func(t *testing.T) {
		c := read(t, dst, "libtch", generatedC)
		assert.Equal(t, wrappersC, strings.Count(c, "KELVIN_OP("))
		assert.NotContains(t, c, "at::ScalarType(dtype)")
		assert.Equal(t, typesC, strings.Count(c, "kelvin_type("))
		assert.Equal(t, divisionsC, strings.Count(c, "    kelvin_divides("))
		for _, check := range cChecks {
			assert.GreaterOrEqual(t, strings.Count(c, "\n    "+check.check+";\n"), check.count, check.check)
		}
	})

	// A C++ function with n results fills n+1 places: the last names the scope. Every Go method gives it as many.
	t.Run("buffers are long enough", func(t *testing.T) {
		fills := map[string]int{}
		cOp := regexp.MustCompile(`(?m)^void (atg_\w+)\(tensor \*out__[^\n]*\n\s*KELVIN_OP\((\d+),`)
		for _, m := range cOp.FindAllStringSubmatch(read(t, dst, "libtch", generatedC), -1) {
			fills[m[1]], _ = strconv.Atoi(m[2])
		}
		require.Len(t, fills, wrappersC)
		goOp := regexp.MustCompile(`(?ms)^func (\w+)\([^\n]*\n(?:[^}].*?\n)??[^\n]*C\.(atg_\w+)\(`)
		named := map[string]string{} // the C++ function behind a Go name
		for _, name := range []string{"c-generated.go", "patch.go", "tensor.go"} {
			for _, m := range goOp.FindAllStringSubmatch(read(t, dst, "libtch", name), -1) {
				named[m[1]] = m[2]
			}
		}
		met := 0
		for _, name := range []string{"tensor-generated.go", "patch.go"} {
			for _, f := range strings.Split(read(t, dst, "ts", name), "\nfunc")[1:] {
				call := regexp.MustCompile(`lib\.(Atg\w+)\((?:ptr|ctensorPtr[01]),`).FindStringSubmatch(f)
				if call == nil || fills[named[call[1]]] == 0 {
					continue
				}
				slot := regexp.MustCompile(`var slot \[(\d+)\]`).FindStringSubmatch(f)
				if strings.Contains(f, "made, ptr := newResult()") {
					slot = []string{"", "2"} // the first two words of a Tensor
				}
				if !assert.NotNil(t, slot, call[1]) {
					continue
				}
				n, _ := strconv.Atoi(slot[1])
				assert.Greater(t, n, fills[named[call[1]]], call[1])
				met++
			}
		}
		assert.GreaterOrEqual(t, met, wrappersGo)
	})

	t.Run("empty slices", func(t *testing.T) {
		for _, name := range []string{"c-generated.go", "patch.go"} {
			assert.NotRegexp(t, regexp.MustCompile(`&\w+\[0\]`), read(t, dst, "libtch", name))
		}
	})

	t.Run("flags", func(t *testing.T) {
		lib := read(t, dst, "libtch", "lib.go")
		assert.Contains(t, lib, `"-I/opt/lib torch/include" -D_GLIBCXX_USE_CXX11_ABI=1`)
		assert.Contains(t, lib, `#cgo LDFLAGS: "-L/opt/lib torch/lib" -ltorch -lc10`)
		assert.Regexp(t, `#cgo CXXFLAGS: -I\$\{SRCDIR\} -std=c\+\+\d\d .*-DNDEBUG`, lib)
		assert.Equal(t, 3, strings.Count(lib, "#cgo"))
		assert.NotContains(t, lib, "cuda")
	})

	t.Run("files", func(t *testing.T) {
		for from, to := range nativeFiles {
			text, err := native.ReadFile("native/" + from)
			require.NoError(t, err)
			assert.Equal(t, string(text), read(t, dst, filepath.FromSlash(to)))
		}
		entries, err := native.ReadDir("native")
		require.NoError(t, err)
		assert.Len(t, nativeFiles, len(entries), "every embedded file has its place")
		assert.NoDirExists(t, filepath.Join(dst, "example"))
		assert.NoDirExists(t, filepath.Join(dst, "gen"))
		require.NoError(t, filepath.WalkDir(dst, func(path string, d fs.DirEntry, err error) error {
			assert.False(t, strings.HasSuffix(path, "_test.go"), path)
			return err
		}))
		assert.Regexp(t, `(?m)^go 1\.24$`, read(t, dst, "go.mod"))
		assert.Contains(t, read(t, dst, "ts", "kelvin_missing.go"), "var KelvinMissing = []string{\n}")
		sources(t, filepath.Join(dst, "libtch"))
		sources(t, filepath.Join(dst, "half"))
	})

	t.Run("not twice", func(t *testing.T) {
		var e *AnchorError
		assert.ErrorAs(t, Adapt(dst, filepath.Join(t.TempDir(), "again"), flags), &e,
			"a copy is not the published source")
	})
}

// Every edit notices a file in which its anchor is missing, or is there once too often, and names both.
func TestEveryEditChecksItsAnchor(t *testing.T) {
	src := source(t)
	pristine, adapted := writable(t, src), writable(t, src)
	for _, e := range edits() {
		want := max(e.count, 1)
		whole := read(t, adapted, filepath.FromSlash(e.file)) // as the edits before have left it
		var without string
		switch e.kind {
		case text:
			without = strings.ReplaceAll(whole, e.anchor, "")
		case function:
			without = strings.ReplaceAll(whole, "\n"+e.anchor, "\n// ")
		case pattern:
			without = regexp.MustCompile(e.anchor).ReplaceAllLiteralString(whole, "")
		}
		for changed, found := range map[string]int{without: 0, whole + "\n" + whole: 2 * want} {
			dir := t.TempDir()
			write(t, dir, map[string]string{e.file: changed})
			var anchor *AnchorError
			err := e.apply(dir)
			if !assert.ErrorAs(t, err, &anchor, "%s: %s", e.file, e.what) {
				continue
			}
			assert.Equal(t, AnchorError{File: e.file, Edit: e.what, Anchor: e.anchor, Found: found, Want: want},
				*anchor)
			for _, part := range []string{e.file, fmt.Sprintf("%q", e.what),
				fmt.Sprintf("found the anchor %q %d times, expected %d", e.anchor, found, want), "go clean -modcache",
				Module, Version} {
				assert.ErrorContains(t, err, part)
			}
			assert.Equal(t, changed, read(t, dir, filepath.FromSlash(e.file)), "a file that does not fit is left alone")
		}
		require.NoError(t, e.apply(adapted))
		assert.NotEqual(t, whole, read(t, adapted, filepath.FromSlash(e.file)), "%s: %s changes something",
			e.file, e.what)
	}
	assert.NotEqual(t, digest(t, pristine), digest(t, adapted))
}

// So do the rules for the generated files and for the fatal calls, through Adapt itself.
func TestAdaptNoticesAChangedSource(t *testing.T) {
	src := source(t)
	for _, c := range []struct {
		file, from, to string
		edit           string
	}{
		{"libtch/torch_api_generated.cpp.h", "void atg_abs(tensor *out__", "void atg_abs(tensor *out",
			"errors in the output buffer"},
		{"libtch/torch_api_generated.cpp.h", "at::ScalarType(dtype)", "c10::ScalarType(dtype)",
			"element types are checked"},
		{"ts/tensor-generated.go", "lib.AtgAbs(ptr, ", "lib.AtgAbs(out, ", "output buffers"},
		{"ts/must-tensor-generated.go", "log.Fatal(err)", "panic(err)", "failures panic"},
		{"nn/varstore.go", "log.Fatal(err)", "panic(err)", "failures panic"},
		{"ts/jit.go", "iv.value.(*Tensor).ctensor", "nil", "uses of handles"},
		{"libtch/torch_api.h", "thread_local char *torch_last_err = nullptr;", "",
			"one error slot per thread, for both C++ files"},
		{"go.mod", "go 1.20\n", "go 1.99\n", "Go version"},
	} {
		t.Run(c.edit+" in "+filepath.Base(c.file), func(t *testing.T) {
			changed := writable(t, src)
			text := read(t, changed, filepath.FromSlash(c.file))
			require.Contains(t, text, c.from)
			write(t, changed, map[string]string{c.file: strings.Replace(text, c.from, c.to, 1)})
			err := Adapt(changed, filepath.Join(t.TempDir(), "copy"), Flags{})
			var anchor *AnchorError
			require.ErrorAs(t, err, &anchor)
			assert.Equal(t, c.file, anchor.File)
			assert.Equal(t, c.edit, anchor.Edit)
		})
	}
}

// A folder that is not gotch, or not there, or no place to write to.
func TestAdaptErrors(t *testing.T) {
	dst := filepath.Join(t.TempDir(), "copy")
	for _, wrong := range []string{t.TempDir(), filepath.Join(t.TempDir(), "absent")} {
		err := Adapt(wrong, dst, Flags{})
		assert.ErrorContains(t, err, "this is not the source of github.com/sugarme/gotch v0.9.1")
		assert.ErrorContains(t, err, wrong)
		assert.ErrorIs(t, err, fs.ErrNotExist)
	}
	// The error of a source that lacks a file names the file.
	partial := t.TempDir()
	write(t, partial, map[string]string{"ts/tensor.go": "package ts\n"})
	err := Adapt(partial, dst, Flags{})
	assert.ErrorContains(t, err, "adapting github.com/sugarme/gotch v0.9.1")
	assert.ErrorContains(t, err, "torch_api.h")
	assert.ErrorIs(t, err, fs.ErrNotExist)
	// The copy's folder is a file.
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	assert.ErrorContains(t, Adapt(partial, file, Flags{}), "copying github.com/sugarme/gotch")
}

// The fingerprint is the same each time, and another for another fallback, flag or edit.
func TestFingerprint(t *testing.T) {
	print := Fingerprint()
	assert.Regexp(t, `^[0-9a-f]{16}$`, print)
	assert.Equal(t, print, Fingerprint())
	change := func(s *string) {
		old := *s
		*s += " "
		assert.NotEqual(t, print, Fingerprint())
		*s = old
		assert.Equal(t, print, Fingerprint())
	}
	change(&fallbacks[0].body)
	change(&fallbacks[3].op)
	change(&fixedCXX[1])
}
