package cc

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir/irtest"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/vm"
	"github.com/kelvin-ppl/kelvin/internal/ccompiler"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is linked is used on a machine without a compiler, and gives the right numbers.
func TestLinked(t *testing.T) {
	needsCompiler(t)
	compiler, err := Find()
	require.NoError(t, err)
	c := irtest.Logistic(50, 3)
	dir := filepath.Join(t.TempDir(), "den-sities")
	require.NoError(t, Write(dir, c.Plan))
	require.NoError(t, Write(dir, c.Plan))
	names, err := ccompiler.Files(dir)
	require.NoError(t, err)
	require.Len(t, names, 2, "equal plans are written once")
	files := map[string]string{}
	for i, path := range names {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		names[i] = filepath.Base(path)
		files[names[i]] = string(data)
	}
	require.Equal(t, ccompiler.GoFile, names[0])
	assert.Contains(t, files[names[0]], "\npackage densities\n")
	object, err := compiler.object(files[names[1]]+"const int kelvin_abi = KELVIN_ABI, kelvin_prologue, kelvin_main;\n",
		time.Minute, "-DKELVIN_PORTABLE", "-UKELVIN_BARRIER", "-UKELVIN_LIBMVEC")
	require.NoError(t, err)
	p, err := load(object)
	require.NoError(t, err)
	id := strings.TrimSuffix(strings.TrimPrefix(names[1], strings.TrimSuffix(ccompiler.Prefix, "_")), ".c")
	prologue, err := p.symbol("kelvin_prologue" + id)
	require.NoError(t, err)
	main, err := p.symbol("kelvin_main" + id)
	require.NoError(t, err)
	emitted, err := Emit(c.Plan)
	require.NoError(t, err)
	assert.Contains(t, files[ccompiler.GoFile], digest(emitted))

	t.Setenv("KELVIN_CC", "no-such-compiler")
	_, _, err = Compile(c.Plan, Options{CacheDir: NoCache})
	require.Error(t, err)
	Register(digest(emitted), prologue, main)
	defer registered.Delete(digest(emitted))
	program, info, err := Compile(c.Plan, Options{CacheDir: NoCache})
	require.NoError(t, err)
	assert.True(t, info.Linked)
	got, err := irtest.Run(irtest.Entry{Prologue: program.Prologue, Main: program.Main, Dense: vm.Dense()}, c)
	require.NoError(t, err)
	want, err := irtest.Reference(c)
	require.NoError(t, err)
	assert.NoError(t, irtest.Differ(got, want, 1e-11))
	require.NoError(t, program.Close())
	assert.NotNil(t, program.Main, "what is linked cannot be unloaded")
}

// Packages of a program and the program itself hold the same functions, and build with the go command, which takes few
// flags for C.
func TestSourcesBuild(t *testing.T) {
	needsCompiler(t)
	dir := t.TempDir()
	put := func(name, text string) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	const module = "github.com/kelvin-ppl/kelvin"
	put("go.mod", "module program\n\ngo 1.25.0\n\nrequire "+module+" v0.0.0\n\nreplace "+module+" => ./kelvin\n")
	put("kelvin/go.mod", "module "+module+"\n\ngo 1.25.0\n")
	put("kelvin/infer/native/native.go", `package native

import "unsafe"

func Register(digest string, prologue, main unsafe.Pointer) {
	if prologue == nil || main == nil {
		panic(digest)
	}
	println("registered", len(digest))
}
`)
	put("main.go", "package main\n\nimport _ \"program/densities\"\n\nfunc main() {}\n")
	for _, folder := range []string{".", "densities"} {
		for _, p := range []*ir.Plan{irtest.EightSchools().Plan, irtest.LogLinear(20).Plan} {
			require.NoError(t, Write(filepath.Join(dir, folder), p))
		}
	}
	run := exec.Command("go", "run", ".")
	run.Dir, run.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "CGO_ENABLED=1")
	out, err := run.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, strings.Repeat("registered 64\n", 4), string(out))
}

// Processes that write at the same time lose nothing of each other's. Files of others are left alone.
func TestWriteAtOnce(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte("package service\n"), 0o644))
	other := filepath.Join(dir, ccompiler.Prefix+"mine.c")
	require.NoError(t, os.WriteFile(other, []byte("int mine;\n"), 0o644))
	var wg sync.WaitGroup
	for k := range 12 {
		wg.Go(func() { assert.NoError(t, Write(dir, tiny(float64(k)).Plan)) })
	}
	wg.Wait()
	data, err := os.ReadFile(filepath.Join(dir, ccompiler.GoFile))
	require.NoError(t, err)
	assert.Equal(t, 12, strings.Count(string(data), "native.Register("))
	assert.Contains(t, string(data), "\npackage service\n")
	assert.NotContains(t, string(data), "mine")
	assert.FileExists(t, other)
}
