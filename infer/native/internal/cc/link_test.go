package cc

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir/irtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is linked is used on a machine without a compiler, and gives the right numbers.
func TestLinked(t *testing.T) {
	needsCompiler(t)
	compiler, err := Find()
	require.NoError(t, err)
	c := irtest.Logistic(50, 3)
	files, err := Sources("densities", c.Plan, c.Plan)
	require.NoError(t, err)
	names := slices.Sorted(maps.Keys(files))
	require.Len(t, names, 2, "equal plans are written once")
	text := string(files[names[1]])
	object, err := compiler.object(strings.Replace(text, "static const int kelvin_abi", "const int kelvin_abi", 1)+
		"const int kelvin_prologue = 0, kelvin_main = 0;\n", time.Minute, "-DKELVIN_PORTABLE", "-UKELVIN_BARRIER")
	require.NoError(t, err)
	p, err := load(object)
	require.NoError(t, err)
	id := strings.TrimSuffix(strings.TrimPrefix(names[1], "kelvin"), ".c")
	prologue, err := p.symbol("kelvin_prologue" + id)
	require.NoError(t, err)
	main, err := p.symbol("kelvin_main" + id)
	require.NoError(t, err)
	emitted, err := Emit(c.Plan)
	require.NoError(t, err)
	assert.Contains(t, string(files["kelvin.go"]), Digest(emitted))

	t.Setenv("KELVIN_CC", "no-such-compiler")
	_, _, err = Compile(c.Plan, Options{CacheDir: NoCache})
	require.Error(t, err)
	Register(Digest(emitted), prologue, main)
	defer linked.Delete(Digest(emitted))
	program, info, err := Compile(c.Plan, Options{CacheDir: NoCache})
	require.NoError(t, err)
	assert.True(t, info.Linked)
	got, err := irtest.Run(irtest.Entry{Prologue: program.Prologue, Main: program.Main}, c)
	require.NoError(t, err)
	want, err := irtest.Reference(c)
	require.NoError(t, err)
	assert.NoError(t, irtest.Differ(got, want, 1e-11))
	require.NoError(t, program.Close())
	assert.NotNil(t, program.Main, "what is linked cannot be unloaded")
}

// The package builds with the go command, which takes few flags for C.
func TestSourcesBuild(t *testing.T) {
	needsCompiler(t)
	files, err := Sources("densities", irtest.EightSchools().Plan, irtest.LogLinear(20).Plan)
	require.NoError(t, err)
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
	for name, text := range files {
		put(filepath.Join("densities", name), string(text))
	}
	run := exec.Command("go", "run", ".")
	run.Dir, run.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "CGO_ENABLED=1")
	out, err := run.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, "registered 64\nregistered 64\n", string(out))
}
