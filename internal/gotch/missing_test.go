package gotch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wrappers is a small generated file. Lines are counted from 1: atg_abs is on lines 3 to 8, atg_add on 10 to 15,
// atg_add_ on 17 to 22, atg_dim on 24 to 29, atg_squeeze_dims on 31 to 36.
const wrappers = `#include "kelvin.h"

void atg_abs(tensor *out__, tensor self) {
  KELVIN_OP(1, 
    auto outputs__ = torch::abs(*self);
    out__[0] = new torch::Tensor(outputs__);
  )
}

void atg_add(tensor *out__, tensor self, tensor other) {
  KELVIN_OP(1, 
    auto outputs__ = torch::add(*self, *other);
    out__[0] = new torch::Tensor(outputs__);
  )
}

void atg_add_(tensor *out__, tensor self, tensor other) {
  KELVIN_OP(1, 
    auto outputs__ = self->add_(*other);
    out__[0] = new torch::Tensor(outputs__);
  )
}

int64_t atg_dim(tensor self) {
  PROTECT(
    return self->dim();
  )
  return 0;
}

void atg_squeeze_dims(tensor *out__, tensor self, int64_t *dim_data, int dim_len) {
  KELVIN_OP(1, 
    auto outputs__ = torch::squeeze(*self, torch::IntArrayRef(dim_data, dim_len));
    out__[0] = new torch::Tensor(outputs__);
  )
}
`

// Each line belongs to the function that it is in, and those between functions to none.
func TestOwners(t *testing.T) {
	owner := owners(wrappers)
	for line, want := range map[int]string{
		1: "", 2: "", 3: "atg_abs", 5: "atg_abs", 8: "atg_abs", 9: "", 10: "atg_add", 14: "atg_add", 16: "",
		17: "atg_add_", 22: "atg_add_", 23: "", 24: "atg_dim", 28: "atg_dim", 29: "atg_dim", 30: "",
		31: "atg_squeeze_dims",
		36: "atg_squeeze_dims",
	} {
		assert.Equal(t, want, owner[line], "line %d", line)
	}
}

// A body is replaced in the function of exactly that name, and nothing else is.
func TestReplaceBody(t *testing.T) {
	for op, old := range map[string]string{
		"atg_abs":  "    auto outputs__ = torch::abs(*self);\n    out__[0] = new torch::Tensor(outputs__);",
		"atg_add":  "    auto outputs__ = torch::add(*self, *other);\n    out__[0] = new torch::Tensor(outputs__);",
		"atg_add_": "    auto outputs__ = self->add_(*other);\n    out__[0] = new torch::Tensor(outputs__);",
		"atg_dim":  "    return self->dim();",
	} {
		got, ok := replaceBody(wrappers, op, "NEW $1;")
		require.True(t, ok, op)
		assert.Equal(t, strings.Replace(wrappers, old, "    NEW $1;", 1), got)
		again, ok := replaceBody(got, op, strings.TrimSpace(old))
		require.True(t, ok)
		assert.Equal(t, wrappers, again)
	}
	for _, op := range []string{"atg_ad", "atg_sub", "add"} {
		got, ok := replaceBody(wrappers, op, "NEW;")
		assert.False(t, ok, op)
		assert.Equal(t, wrappers, got)
	}
}

// The messages of both compilers lead to the functions: an error in the function itself, and one in a header that the
// function brought up.
func TestFailingOps(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{generatedC: wrappers})
	path := filepath.Join(dir, generatedC)
	for name, c := range map[string]struct {
		out string
		ops []string
	}{
		"gcc, in the function": {`In file included from torch_api.cpp:700:
torch_api_generated.cpp.h: In function 'void atg_abs(torch::Tensor**, tensor)':
torch_api_generated.cpp.h:5:29: error: 'abs' is not a member of 'torch'; did you mean 'abc'?
    5 |     auto outputs__ = torch::abs(*self);
      |                             ^~~
torch_api.h:34:5: note: in definition of macro 'KELVIN_OP'
torch_api_generated.cpp.h: In function 'int64_t atg_dim(tensor)':
/copy/libtch/torch_api_generated.cpp.h:26:18: error: 'class at::Tensor' has no member named 'dim'
`, []string{"atg_abs", "atg_dim"}},
		"gcc, in a header": {`In file included from /usr/include/ATen/Tensor.h:3,
                 from torch_api.cpp:1:
/usr/include/c10/util/Optional.h: In instantiation of 'constexpr c10::optional<T>::optional(U&&) [with U = int]':
torch_api_generated.cpp.h:12:45:   required from here
/usr/include/c10/util/Optional.h:446:9: error: no matching function for call to 'f(int)'
`, []string{"atg_add"}},
		"gcc, two errors of one function": {`torch_api_generated.cpp.h:19:31: error: first
torch_api_generated.cpp.h:20:31: error: second
`, []string{"atg_add_"}},
		"clang, in the function": {`In file included from torch_api.cpp:700:
./torch_api_generated.cpp.h:19:31: error: no member named 'add_' in 'at::Tensor'; did you mean 'sub_'?
    auto outputs__ = self->add_(*other);
                           ^~~~
`, []string{"atg_add_"}},
		"clang, in a header": {`/usr/include/c10/util/Optional.h:446:9: error: no viable conversion from 'int' to 'Scalar'
        f(x);
        ^
./torch_api_generated.cpp.h:33:22: note: in instantiation of function template specialization ` +
			`'torch::squeeze<int>' requested here
    auto outputs__ = torch::squeeze(*self);
                     ^
`, []string{"atg_squeeze_dims"}},
		"a warning before": {`torch_api_generated.cpp.h:5:29: warning: 'abs' is deprecated
torch_api_generated.cpp.h:26:18: error: no
`, []string{"atg_dim"}},
	} {
		ops, err := failingOps(path, c.out)
		require.NoError(t, err, name)
		assert.Equal(t, c.ops, ops, name)
	}

	for name, c := range map[string]struct{ out, says string }{
		"a missing header": {"torch_api.h:7:10: fatal error: torch/torch.h: No such file or directory\n" +
			"compilation terminated.\n", "torch/torch.h: No such file or directory"},
		"outside of the ops": {"kelvin.h:12:3: error: 'Philox' was not declared in this scope\n",
			"'Philox' was not declared"},
		"between the ops":    {"torch_api_generated.cpp.h:1:10: error: stray text\n", "stray text"},
		"a line beyond":      {"torch_api_generated.cpp.h:9999:10: error: out of the file\n", "out of the file"},
		"nothing recognised": {"cc1plus: out of memory\n", "cc1plus: out of memory"},
		"only notes of an op": {"torch_api.cpp:70:3: error: real\ntorch_api_generated.cpp.h:5:29: note: candidate\n",
			"real"},
	} {
		_, err := failingOps(path, c.out)
		assert.ErrorContains(t, err, "does not compile against this libtorch", name)
		assert.ErrorContains(t, err, c.says, name)
	}
	_, err := failingOps(filepath.Join(dir, "absent"), "")
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// compiler writes a program that stands for a C++ compiler: it complains about the lines of the generated file in which
// a word occurs.
func compiler(t *testing.T, name, body string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for a compiler is a shell script")
	}
	path := filepath.Join(t.TempDir(), name)
	script := "#!/bin/sh\nfor last; do :; done\ndir=$(dirname \"$last\")\n" + body
	require.NoError(t, os.WriteFile(path, []byte(script), 0o755))
	return path
}

// grumble is the body of a compiler that knows neither of the words.
func grumble(words string) string {
	return `grep -nE '` + words + `' "$dir/` + generatedC + `" |
	sed -E 's/^([0-9]+):.*/` + generatedC + `:\1:5: error: unknown/' > "$dir/found"
cat "$dir/found" >&2
test ! -s "$dir/found"
`
}

// Missing replaces what does not compile and leaves the rest: a fallback where there is one, else a body that says so.
// What only shows in a later pass is replaced as well.
func TestMissing(t *testing.T) {
	copyOf := func(text string) string {
		dir := t.TempDir()
		write(t, dir, map[string]string{"libtch/" + generatedC: text, "libtch/torch_api.cpp": "",
			"ts/tensor.go": "package ts\n"})
		return dir
	}
	thrown := func(op string) string {
		return `    throw std::runtime_error("the operation ` + op + ` is not in this libtorch (" TORCH_VERSION ")");`
	}

	t.Run("nothing", func(t *testing.T) {
		dir := copyOf(wrappers)
		ops, err := Missing(context.Background(), dir, compiler(t, "g++", "exit 0\n"), Flags{})
		require.NoError(t, err)
		assert.Empty(t, ops)
		assert.Equal(t, wrappers, read(t, dir, "libtch", generatedC))
		assert.Contains(t, read(t, dir, "ts", "kelvin_missing.go"), "KelvinMissing = []string{\n}")
	})

	t.Run("operations and fallbacks", func(t *testing.T) {
		dir := copyOf(wrappers)
		ops, err := Missing(context.Background(), dir, compiler(t, "g++", grumble("torch::add|torch::squeeze")),
			Flags{})
		require.NoError(t, err)
		assert.Equal(t, []string{"atg_add"}, ops)
		squeeze, _ := fallbackFor("atg_squeeze_dims")
		want, _ := replaceBody(wrappers, "atg_add", strings.TrimSpace(thrown("add")))
		want, _ = replaceBody(want, "atg_squeeze_dims", squeeze)
		assert.Equal(t, want, read(t, dir, "libtch", generatedC))
		assert.Contains(t, read(t, dir, "ts", "kelvin_missing.go"), "KelvinMissing = []string{\n\t\"add\",\n}")
	})

	t.Run("a fallback that does not compile either", func(t *testing.T) {
		dir := copyOf(wrappers)
		ops, err := Missing(context.Background(), dir, compiler(t, "clang++",
			grumble("torch::squeeze|outputs__.squeeze")),
			Flags{})
		require.NoError(t, err)
		assert.Equal(t, []string{"atg_squeeze_dims"}, ops)
		assert.Contains(t, read(t, dir, "libtch", generatedC), thrown("squeeze_dims"))
	})

	t.Run("flags", func(t *testing.T) {
		for name, flag := range map[string]string{"g++": "-fmax-errors=0", "clang++-16": "-ferror-limit=0"} {
			dir := copyOf(wrappers)
			script := compiler(t, name, "for a; do echo \"$a\"; done > \"$dir/args\"\necho $LC_ALL >> \"$dir/args\"\n")
			_, err := Missing(context.Background(), dir, script, Flags{CXXFLAGS: []string{"-I/with a space"}})
			require.NoError(t, err)
			args := strings.Split(read(t, dir, "libtch", "args"), "\n")
			for _, want := range []string{"-I/with a space", "-I" + filepath.Join(dir, "libtch"), "-fsyntax-only",
				"-DNDEBUG", flag, "C", filepath.Join(dir, "libtch", "torch_api.cpp")} {
				assert.Contains(t, args, want, name)
			}
		}
	})

	t.Run("Kelvin's own C++ comes first", func(t *testing.T) {
		dir := copyOf(wrappers)
		write(t, dir, map[string]string{"libtch/kelvin.cpp": "", "record/record.cpp": ""})
		checks := filepath.Join(t.TempDir(), "checks")
		script := compiler(t, "g++", "if [ \"$last\" = - ]; then cat; echo end; else echo $last; fi >> "+checks+"\n")
		_, err := Missing(context.Background(), dir, script, Flags{})
		require.NoError(t, err)
		own := []string{filepath.Join(dir, "libtch", "kelvin.cpp"), filepath.Join(dir, "record", "record.cpp")}
		assert.Equal(t, fmt.Sprintf("#include %q\n#include %q\nend\n%s\n", own[0], own[1],
			filepath.Join(dir, "libtch", "torch_api.cpp")), read(t, checks))

		_, err = Missing(context.Background(), dir, compiler(t, "g++", "test \"$last\" != - && exit 0\n"+
			"echo 'In file included from <stdin>:2:'\necho 'record.cpp:7:9: error: no such operation'\nexit 1\n"), Flags{})
		assert.ErrorContains(t, err, "the C++ of Kelvin does not compile against this libtorch")
		assert.ErrorContains(t, err, "record.cpp:7:9: error: no such operation")
	})

	t.Run("failures", func(t *testing.T) {
		dir := copyOf(wrappers)
		wrong := compiler(t, "g++", "echo 'kelvin.h:3:1: error: not C++' >&2\nexit 1\n")
		_, err := Missing(context.Background(), dir, wrong, Flags{})
		assert.ErrorContains(t, err, "kelvin.h:3:1: error: not C++")
		broken := compiler(t, "g++", "echo 'internal compiler trouble' >&2\nexit 4\n")
		_, err = Missing(context.Background(), dir, broken, Flags{})
		assert.ErrorContains(t, err, "internal compiler trouble")
		assert.ErrorContains(t, err, "exit status 4")
		_, err = Missing(context.Background(), dir, filepath.Join(dir, "no-such-compiler"), Flags{})
		assert.ErrorContains(t, err, "no-such-compiler")
		_, err = Missing(context.Background(), dir, " ", Flags{})
		assert.ErrorContains(t, err, "no C++ compiler was named")
		assert.Equal(t, wrappers, read(t, dir, "libtch", generatedC), "nothing was changed")

		// An operation that never compiles, whatever its body, does not go on for ever.
		_, err = Missing(context.Background(), dir, compiler(t, "g++", grumble("void atg_add_.tensor")), Flags{})
		assert.ErrorContains(t, err, "after 6 passes")
		// A function of another form than the published ones.
		odd := copyOf("\nvoid atg_odd(tensor *out__) {\n  try {\n  } catch (...) {\n  }\n}\n")
		_, err = Missing(context.Background(), odd, compiler(t, "g++", grumble("try")), Flags{})
		assert.ErrorContains(t, err, "no function atg_odd of the expected form")

		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err = Missing(ctx, dir, compiler(t, "g++", "exit 0\n"), Flags{})
		assert.ErrorIs(t, err, context.Canceled)
	})
}

// Every fallback is for a function that the published file has, with the parameters that its body uses.
func TestFallbacksFitThePublishedFile(t *testing.T) {
	text := read(t, source(t), "libtch", generatedC)
	seen := map[string]bool{}
	for _, f := range fallbacks {
		assert.False(t, seen[f.op], "%s is there twice", f.op)
		seen[f.op] = true
		start := strings.Index(text, "void "+f.op+"(")
		if !assert.GreaterOrEqual(t, start, 0, f.op) {
			continue
		}
		signature, _, _ := strings.Cut(text[start:], "{")
		for _, name := range []string{"dim_data", "dim_len", "correction", "keepdim", "(dtype)", "attn_mask",
			"dropout_p", "is_causal", "scale_v", "scale_null", "*out,"} {
			if strings.Contains(f.body, name) {
				assert.Contains(t, signature, strings.Trim(name, "*,()"), f.op)
			}
		}
	}
}
