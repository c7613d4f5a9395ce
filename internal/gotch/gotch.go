// Package gotch makes a copy of the gotch module fit for sampling.
//
// The published module binds libtorch to Go, and Kelvin uses its tensors and its 2,500 operations as they are. What a
// sampler cannot live with is changed in a copy, never in Go's module cache: see docs/libtorch.md for the
// list of defects and what is done about each. The changes are edits that name their anchor and fail loudly when it is
// not there, and a few hundred lines of Kelvin's own C++ and Go, which are added as extra files (the native folder).
package gotch

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

const (
	// Module is the path of the module that is adapted.
	Module = "github.com/sugarme/gotch"
	// Version is the one release that the edits are written for.
	Version = "v0.9.1"
	// revision is raised when the edits change in a way that the embedded files do not show.
	revision = "3"
)

//go:embed native
var native embed.FS

// Flags are what the copy's cgo lines say about the libtorch in use. Adapt adds the flags that never differ.
type Flags struct {
	CXXFLAGS []string // include folders, and the C++ ABI where it must be named
	LDFLAGS  []string // library folders, libraries and run paths
}

// fixedCXX are the compiler flags of every copy. Without NDEBUG some structs of libtorch's headers have another layout
// than in the release library. Optimising more than -O1 buys nothing: the code only forwards to the library.
var fixedCXX = []string{"-O1", "-g0", "-DNDEBUG", "-w"}

// Fingerprint identifies the adaptations: it changes with the edits and with the embedded files.
func Fingerprint() string {
	h := sha256.New()
	fmt.Fprintln(h, Module, Version, revision, strings.Join(fixedCXX, " "))
	for _, e := range edits() {
		fmt.Fprintf(h, "%s\x00%s\x00%s\x00%s\x00", e.file, e.what, e.anchor, e.replacement)
	}
	for _, f := range fallbacks {
		fmt.Fprintf(h, "%s\x00%s\x00", f.op, f.body)
	}
	names, _ := fs.Glob(native, "native/*")
	sort.Strings(names)
	for _, name := range names {
		text, _ := native.ReadFile(name)
		fmt.Fprintf(h, "%s\x00%s\x00", name, text)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// Adapt copies the module at src, a read-only folder of Go's module cache, into the empty or absent folder dst, and
// applies every adaptation to the copy. An edit whose anchor is not found as often as expected is an error that names
// the file and the edit: the source is then not the pinned version, or was changed.
func Adapt(src, dst string, flags Flags) error {
	if err := copyModule(src, dst); err != nil {
		return fmt.Errorf("copying %s from %s: %w", Module, src, err)
	}
	for _, e := range edits() {
		if err := e.apply(dst); err != nil {
			return err
		}
	}
	for _, step := range []func(string) error{adaptGeneratedC, adaptGeneratedGo, adaptUses, adaptFatal} {
		if err := step(dst); err != nil {
			return err
		}
	}
	// The language version of the copy: empty slices need unsafe.SliceData, scopes typed atomics.
	goVersion := edit{file: "go.mod", what: "Go version", anchor: "go 1.20\n", replacement: "go 1.24\n"}
	if err := goVersion.apply(dst); err != nil {
		return err
	}
	if err := writeNative(dst); err != nil {
		return err
	}
	if err := writeMissing(dst, nil); err != nil {
		return err
	}
	for _, pkg := range []string{"libtch", "record"} {
		if err := atomicfile.Write(filepath.Join(dst, pkg, "lib.go"), []byte(cgoLines(pkg, flags)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// cgoLines is the file that carries a package's cgo flags.
func cgoLines(pkg string, flags Flags) string {
	cxx := compilerFlags(flags)
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n\n", pkg)
	fmt.Fprintf(&b, "// #cgo CFLAGS: -I${SRCDIR} -O1 -g0 -w\n")
	fmt.Fprintf(&b, "// #cgo CXXFLAGS: -I${SRCDIR} %s\n", quoteAll(cxx))
	fmt.Fprintf(&b, "// #cgo LDFLAGS: %s\n", quoteAll(flags.LDFLAGS))
	b.WriteString("import \"C\"\n")
	return b.String()
}

// compilerFlags are all the flags that the copy's C++ is compiled with.
func compilerFlags(flags Flags) []string {
	return append(append([]string{"-std=" + standard(flags)}, fixedCXX...), flags.CXXFLAGS...)
}

var wantsStandard = regexp.MustCompile(`#error C\+\+(\d\d) or later`)

// standard is the version of C++ that libtorch's headers ask for: they refuse an older one, and name the one they want.
func standard(flags Flags) string {
	dirs := []string{"/usr/include/torch/csrc/api/include"}
	for _, f := range flags.CXXFLAGS {
		if dir, ok := strings.CutPrefix(f, "-I"); ok {
			dirs = append([]string{dir}, dirs...)
		}
	}
	for _, dir := range dirs {
		text, err := os.ReadFile(filepath.Join(dir, "torch", "all.h"))
		if err != nil {
			continue
		}
		if m := wantsStandard.FindSubmatch(text); m != nil && string(m[1]) > "17" {
			return "c++" + string(m[1])
		}
		break
	}
	return "c++17"
}

// quoteAll joins flags for a cgo line, which splits at spaces outside quotes.
func quoteAll(flags []string) string {
	out := make([]string, len(flags))
	for i, f := range flags {
		if strings.ContainsAny(f, " \t") {
			f = `"` + f + `"`
		}
		out[i] = f
	}
	return strings.Join(out, " ")
}

// nativeFiles says where each embedded file goes in the copy. The Go files carry another extension here, so that
// Kelvin's own build does not take them for its own.
var nativeFiles = map[string]string{
	"kelvin.h":             "libtch/kelvin.h",
	"kelvin.cpp":           "libtch/kelvin.cpp",
	"kelvin_sample.cpp":    "libtch/kelvin_sample.cpp",
	"kelvin_random.cpp":    "libtch/kelvin_random.cpp",
	"kelvin_combine.cpp":   "libtch/kelvin_combine.cpp",
	"kelvin_check.cpp":     "libtch/kelvin_check.cpp",
	"kelvin_guard.cpp":     "libtch/kelvin_guard.cpp",
	"kelvin_memory.cpp":    "libtch/kelvin_memory.cpp",
	"kelvin_bmm.cpp":       "libtch/kelvin_bmm.cpp",
	"normal_lanes.h":       "libtch/normal_lanes.h",
	"nlohmann_json.h":      "libtch/nlohmann/json.hpp",
	"libtch_kelvin.go.txt": "libtch/kelvin.go",
	"ts_error.go.txt":      "ts/kelvin_error.go",
	"ts_scope.go.txt":      "ts/kelvin_scope.go",
	"ts_look.go.txt":       "ts/kelvin_look.go",
	"ts_use.go.txt":        "ts/kelvin_use.go",
	"ts_tensor.go.txt":     "ts/kelvin_tensor.go",
	"ts_autograd.go.txt":   "ts/kelvin_autograd.go",
	"ts_data.go.txt":       "ts/kelvin_data.go",
	"gotch_kelvin.go.txt":  "kelvin.go",
	"half_kelvin.go.txt":   "half/kelvin.go",
	"probe.go.txt":         "probe/main.go",
	// A package of its own, so that a change of it compiles it alone.
	"record.h":             "record/record.h",
	"record.cpp":           "record/record.cpp",
	"record.go.txt":        "record/record.go",
	"replay.h":             "record/replay.h",
	"replay.cpp":           "record/replay.cpp",
	"replay_program.h":     "record/replay_program.h",
	"replay_program.cpp":   "record/replay_program.cpp",
	"replay_compare.cpp":   "record/replay_compare.cpp",
	"replay_recording.h":   "record/replay_recording.h",
	"replay_recording.cpp": "record/replay_recording.cpp",
	"replay.go.txt":        "record/replay.go",
}

func writeNative(dst string) error {
	for name, to := range nativeFiles {
		text, err := native.ReadFile("native/" + name)
		if err != nil {
			return err
		}
		path := filepath.Join(dst, filepath.FromSlash(to))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := atomicfile.Write(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// copyModule copies the folders that Kelvin and its users can import. The rest (examples, generators, tests) would only
// be built and vetted for nothing.
func copyModule(src, dst string) error {
	if _, err := os.Stat(filepath.Join(src, "ts", "tensor.go")); err != nil {
		return fmt.Errorf("this is not the source of %s %s: %w", Module, Version, err)
	}
	return filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if rel == "example" || rel == "gen" {
				return fs.SkipDir
			}
			return os.MkdirAll(filepath.Join(dst, rel), 0o755)
		}
		if strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return atomicfile.Write(filepath.Join(dst, rel), text, 0o644)
	})
}
