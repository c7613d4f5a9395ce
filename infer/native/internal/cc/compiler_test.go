package cc

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir/irtest"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/vm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fake makes a compiler of a shell script, which answers to --version.
func fake(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "compiler")
	text := "#!/bin/sh\n[ \"$1\" = --version ] && { echo fake 1.0; exit; }\n" + script
	require.NoError(t, os.WriteFile(path, []byte(text), 0o700))
	t.Setenv("KELVIN_CC", path)
	return path
}

func TestNoCompiler(t *testing.T) {
	t.Setenv("KELVIN_CC", "")
	t.Setenv("CC", "")
	t.Setenv("PATH", t.TempDir())
	_, _, err := Compile(tiny(1).Plan, Options{CacheDir: NoCache})
	assert.ErrorIs(t, err, ErrNoCompiler)
	t.Setenv("CC", "no-such-compiler -m64")
	_, err = Find()
	assert.ErrorContains(t, err, "CC names")
	assert.ErrorContains(t, err, "no-such-compiler")
}

func TestCompilerThatFails(t *testing.T) {
	for script, want := range map[string]string{
		"echo 'something is wrong' >&2; exit 3": "something is wrong",
		"exit 0":                                "made no object",
		"for a; do [ $next ] && out=$a && next=; [ $a = -o ] && next=1; done; echo nonsense > $out": "does not load",
		"kill -9 $$": "killed",
	} {
		fake(t, script)
		dir := filepath.Join(t.TempDir(), "cache")
		_, info, err := Compile(tiny(1).Plan, Options{CacheDir: dir})
		assert.ErrorContains(t, err, want)
		assert.Equal(t, "fake 1.0", info.Compiler.Version)
		assert.Empty(t, entries(t, dir), "an object that does not load is not stored")
	}
}

// A compiler that hangs is killed with all that it started.
func TestCompilerThatHangs(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	fake(t, "sleep 1000 & echo $! > "+pid+"; wait")
	_, _, err := Compile(tiny(1).Plan, Options{CacheDir: NoCache, Timeout: 2 * time.Second})
	assert.ErrorContains(t, err, "took longer than 2s")
	data, err := os.ReadFile(pid)
	require.NoError(t, err)
	gone := func() bool {
		status, err := os.ReadFile("/proc/" + strings.TrimSpace(string(data)) + "/stat")
		return err != nil || strings.Contains(string(status), ") Z ")
	}
	assert.Eventually(t, gone, 10*time.Second, 10*time.Millisecond)
}

// An object of another interface is refused.
func TestOtherInterface(t *testing.T) {
	needsCompiler(t)
	c, err := Find()
	require.NoError(t, err)
	text, err := Emit(tiny(1).Plan)
	require.NoError(t, err)
	other := strings.Replace(text, "#define KELVIN_ABI "+strconv.Itoa(Version), "#define KELVIN_ABI 99", 1)
	object, err := c.object(other, time.Minute)
	require.NoError(t, err)
	_, err = load(object)
	assert.ErrorContains(t, err, "interface 99")
	object, err = c.object("int x;", time.Minute)
	require.NoError(t, err)
	_, err = load(object)
	assert.ErrorContains(t, err, "kelvin_abi")
	_, err = load(nil)
	assert.ErrorContains(t, err, "empty")
}

// A text without a vector library, and for a compiler without barriers, gives the same numbers.
func TestOtherFlags(t *testing.T) {
	needsCompiler(t)
	c, err := Find()
	require.NoError(t, err)
	c.Barrier = false
	old := []string{"-UKELVIN_LIBMVEC", "-DKELVIN_LIBMVEC=222"}
	for _, flags := range [][]string{{"-UKELVIN_LIBMVEC"}, old, {"-march=x86-64", "-O1"}} {
		for _, k := range []irtest.Case{irtest.EightSchools(), irtest.Logistic(70, 5), irtest.Random(3)} {
			text, err := Emit(k.Plan)
			require.NoError(t, err)
			object, err := c.object(text, time.Minute, flags...)
			require.NoError(t, err)
			p, err := load(object)
			require.NoError(t, err)
			got, err := irtest.Run(irtest.Entry{Prologue: p.Prologue, Main: p.Main, Dense: vm.Dense()}, k)
			require.NoError(t, err)
			want, err := irtest.Reference(k)
			require.NoError(t, err)
			assert.NoError(t, irtest.Differ(got, want, 1e-11), "%s %v", k.Name, flags)
			require.NoError(t, p.Close())
		}
	}
}
