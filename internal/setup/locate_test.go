package setup

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// locate looks on a fake machine.
func locate(t *testing.T, m *fakeMachine, want Request) (*LibTorch, error) {
	t.Helper()
	return Locate(context.Background(), m.System, want)
}

// python makes python3 answer that its torch package is in dir.
func (m *fakeMachine) python(dir string) {
	m.programs["python3"] = func(Command) (string, error) {
		return fmt.Sprintf("a line from a site hook\n{\"dirs\": [%q], \"prefix\": %q}\n", dir, m.path("usr")), nil
	}
}

func TestLocateOrder(t *testing.T) {
	m := machine(t)
	cache := &Cache{Dir: t.TempDir()}
	flag, env, pip := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "torch")
	want := Request{Dir: flag, Cache: cache}
	for _, dir := range []string{flag, env, pip, filepath.Join(cache.Dir, "libtorch/2.6.0-cpu")} {
		plant(t, dir, tree{})
	}
	m.withSystemTorch(t, tree{version: "1.13.0"})
	m.env["LIBTORCH"] = env
	m.python(pip)

	// One place after the other is taken away, and the next one comes.
	steps := []struct {
		dir    string
		source Source
		take   func()
	}{
		{flag, FromFlag, func() { want.Dir = "" }},
		{env, FromEnvironment, func() { delete(m.env, "LIBTORCH") }},
		{pip, FromPython, func() { delete(m.programs, "python3") }},
		{m.path("usr"), FromSystem, func() { require.NoError(t, os.RemoveAll(m.path("usr"))) }},
		{filepath.Join(cache.Dir, "libtorch/2.6.0-cpu"), FromDownload,
			func() { require.NoError(t, os.RemoveAll(cache.Dir)) }},
	}
	for _, s := range steps {
		l, err := locate(t, m, want)
		require.NoError(t, err)
		assert.Equal(t, s.dir, l.Dir)
		assert.Equal(t, s.source, l.Source)
		s.take()
	}
	_, err := locate(t, m, want)
	var none *NotFound
	require.ErrorAs(t, err, &none)
	assert.Equal(t, "no libtorch was found", none.Error())
}

func TestLocateNamedButWrong(t *testing.T) {
	m := machine(t).withSystemTorch(t, tree{}) // a good one, which must not be taken silently
	old, empty, above, headers, libs, noVmap := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir(),
		t.TempDir()
	plant(t, old, tree{version: "1.12.1"})
	plant(t, filepath.Join(above, "libtorch"), tree{})
	plant(t, headers, tree{lib: "elsewhere"})
	plant(t, libs, tree{noHeaders: true})
	plant(t, noVmap, tree{noVmap: true})
	cases := map[string]string{
		filepath.Join(empty, "absent"): "no such file or directory",
		empty:                          "neither libtorch's headers",
		old:                            "it is libtorch 1.12.1, and Kelvin needs 1.13 or later",
		above:                          "did you mean " + filepath.Join(above, "libtorch") + "?",
		headers: "it has libtorch's headers, but no libtorch_cpu.so in " +
			"lib, lib64 or lib/x86_64-linux-gnu",
		libs:   "a development package is missing",
		noVmap: "the header ATen/functorch/BatchedTensorImpl.h is missing",
	}
	for dir, message := range cases {
		_, err := locate(t, m, Request{Dir: dir})
		require.ErrorContains(t, err, "--libtorch cannot be used")
		assert.ErrorContains(t, err, dir)
		assert.ErrorContains(t, err, message)
		assert.Contains(t, remedyOf(t, err), "give --libtorch the folder")

		m.env["LIBTORCH"] = dir
		_, err = locate(t, m, Request{})
		require.ErrorContains(t, err, "$LIBTORCH cannot be used")
		assert.ErrorContains(t, err, message)
		assert.Contains(t, remedyOf(t, err), "unset it")
		delete(m.env, "LIBTORCH")
	}
}

func TestLocateRefusesForeignLibraries(t *testing.T) {
	m := machine(t)
	dir := t.TempDir()
	plant(t, dir, tree{})
	m.library.Arch = "arm64"
	_, err := locate(t, m, Request{Dir: dir})
	assert.ErrorContains(t, err, "its libraries are for arm64, and Go builds for amd64 here")

	m.library = Library{Arch: "amd64"}
	_, err = locate(t, m, Request{Dir: dir})
	assert.ErrorContains(t, err, "its C++ ABI cannot be told")
}

func TestLocatePassesOverWhatItFindsByItself(t *testing.T) {
	m := machine(t)
	pip := filepath.Join(t.TempDir(), "torch")
	plant(t, pip, tree{version: "1.10.0"})
	m.python(pip)
	_, err := locate(t, m, Request{})
	require.ErrorContains(t, err, "no libtorch was found")
	assert.ErrorContains(t, err, pip+": it is libtorch 1.10.0, and Kelvin needs 1.13 or later")

	m.withSystemTorch(t, tree{})
	l, err := locate(t, m, Request{})
	require.NoError(t, err)
	assert.Equal(t, FromSystem, l.Source)
}

func TestLocateSystems(t *testing.T) {
	header := "torch/version.h" // some packages move the API's headers up
	for name, c := range map[string]struct {
		dir  string
		tree tree
	}{
		"debian":        {"usr", tree{lib: "lib/x86_64-linux-gnu", version: "1.13.0"}},
		"fedora":        {"usr", tree{lib: "lib64", header: header}},
		"arch":          {"usr", tree{lib: "lib"}},
		"local":         {"usr/local", tree{}},
		"brew":          {"opt/homebrew/opt/pytorch", tree{}},
		"brew libtorch": {"usr/local/opt/libtorch", tree{}},
		"linuxbrew": {"home/linuxbrew/.linuxbrew/opt/pytorch/libexec/lib/python3.12/site-packages/torch",
			tree{header: "torch/headeronly/version.h", version: "2.10.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine(t)
			plant(t, m.path(c.dir), c.tree)
			l, err := locate(t, m, Request{})
			require.NoError(t, err)
			assert.Equal(t, m.path(c.dir), l.Dir)
			assert.Equal(t, FromSystem, l.Source)
			assert.FileExists(t, filepath.Join(l.Lib, "libtorch_cpu.so"))
		})
	}
}

func TestLocateDebianVersion(t *testing.T) {
	m := machine(t).withSystemTorch(t, tree{version: "1.13.0"})
	m.programs["dpkg-query"] = func(Command) (string, error) { return "1.13.1+dfsg-4", nil }
	l, err := locate(t, m, Request{})
	require.NoError(t, err)
	assert.Equal(t, "1.13.1", l.Version, "the header of Debian's 1.13.1 says 1.13.0")

	m.programs["dpkg-query"] = func(Command) (string, error) { return "2.6.0+dfsg-7", nil }
	l, err = locate(t, m, Request{})
	require.NoError(t, err)
	assert.Equal(t, "1.13.0", l.Version, "a package of another series is not the one with these headers")
}

func TestLocateCUDA(t *testing.T) {
	m := machine(t).withSystemTorch(t, tree{})
	site := t.TempDir()
	pip := filepath.Join(site, "torch")
	plant(t, pip, tree{cuda: true})
	write(t, filepath.Join(pip, "version.py"),
		"from typing import Optional\n__version__ = '2.6.0+cu124'\ndebug = False\ncuda: Optional[str] = "+
			"'12.4'\ngit_version = 'abc'\n")
	write(t, filepath.Join(site, "nvidia/cublas/lib/libcublas.so.12"), "")
	write(t, filepath.Join(site, "nvidia/cuda_runtime/lib/libcudart.so.12"), "")

	_, err := locate(t, m, Request{CUDA: true})
	require.ErrorContains(t, err, "no libtorch was found that has CUDA")
	assert.ErrorContains(t, err, "it is libtorch 2.6.0 for the CPU only, and --cuda was given")

	m.python(pip)
	l, err := locate(t, m, Request{CUDA: true})
	require.NoError(t, err)
	assert.True(t, l.CUDA)
	assert.Equal(t, "2.6.0", l.Version)
	assert.Equal(t, "12.4", l.CUDAVersion)
	assert.Equal(t, []string{filepath.Join(site, "nvidia/cublas/lib"), filepath.Join(site, "nvidia/cuda_runtime/lib")},
		l.LinkDirs)
	assert.Equal(t, "libtorch 2.6.0 (CUDA 12.4) in "+pip, l.String())
}

func TestLocateArchiveVersion(t *testing.T) {
	m := machine(t)
	dir := t.TempDir()
	plant(t, dir, tree{cuda: true})
	write(t, filepath.Join(dir, "build-version"), "2.6.0+cu126\n")
	l, err := locate(t, m, Request{Dir: dir})
	require.NoError(t, err)
	assert.Equal(t, "2.6.0", l.Version)
	assert.Equal(t, "12.6", l.CUDAVersion)
}

func TestLocateDownloads(t *testing.T) {
	m := machine(t)
	cache := &Cache{Dir: t.TempDir()}
	for _, name := range []string{"2.6.0-cpu", "2.6.0-cu124", "2.10.0-cpu", "2.11.0-cpu" + temporary + "17"} {
		plant(t, filepath.Join(cache.Dir, "libtorch", name), tree{})
	}
	l, err := locate(t, m, Request{Cache: cache})
	require.NoError(t, err)
	assert.Equal(t, "2.10.0-cpu", filepath.Base(l.Dir), "the newest that is complete")
}

// TestPythonIsAsked runs a real Python on a package that cannot be imported, and on a folder that is no package.
func TestPythonIsAsked(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not on the PATH")
	}
	m := machine(t)
	m.programs["python3"] = func(c Command) (string, error) { return runCommand(context.Background(), c) }
	site := t.TempDir()
	t.Setenv("PYTHONPATH", site)
	require.NoError(t, os.MkdirAll(filepath.Join(site, "torch"), 0o755))
	for _, p := range pythonPlaces(context.Background(), m.System) {
		assert.NotContains(t, p.dir, site, "a folder named torch is not the package")
	}

	write(t, filepath.Join(site, "torch/__init__.py"), "raise RuntimeError('torch must not be imported')\n")
	places := pythonPlaces(context.Background(), m.System)
	require.NotEmpty(t, places)
	assert.Equal(t, place{filepath.Join(site, "torch"), FromPython}, places[0])
}

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]string{
		"2.6.0+cu124": "2.6.0", "1:1.13.1+dfsg-4": "1.13.1", "2.5.1-3": "2.5.1", "v2.1": "2.1", "2.10.0a0+git": "2.10.0",
	} {
		got, _, ok := parseVersion(text)
		assert.True(t, ok, text)
		assert.Equal(t, want, got)
	}
	for _, text := range []string{"", "(none)", "two"} {
		_, _, ok := parseVersion(text)
		assert.False(t, ok, text)
	}
	assert.True(t, numbers{2, 0}.atLeast(1, 13))
	assert.True(t, numbers{1, 13}.atLeast(1, 13))
	assert.False(t, numbers{1, 12}.atLeast(1, 13))
}
