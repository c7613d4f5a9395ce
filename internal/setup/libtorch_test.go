package setup

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFlags(t *testing.T) {
	system := &LibTorch{
		Include: []string{"/usr/include", "/usr/include/torch/csrc/api/include"}, Lib: "/usr/lib/x86_64-linux-gnu",
		CXX11ABI: true,
	}
	f := system.Flags("linux")
	assert.Equal(t, []string{"-I/usr/include/torch/csrc/api/include", "-D_GLIBCXX_USE_CXX11_ABI=1"}, f.CXXFLAGS)
	assert.Equal(t, []string{"-L/usr/lib/x86_64-linux-gnu", "-ltorch_cpu", "-lc10", "-lstdc++"}, f.LDFLAGS)

	pip := &LibTorch{
		Include: []string{"/p/torch/include"}, Lib: "/p/torch/lib", CUDA: true, LinkDirs: []string{"/p/nvidia/cublas/lib"},
	}
	f = pip.Flags("linux")
	assert.Equal(t, []string{"-I/p/torch/include", "-D_GLIBCXX_USE_CXX11_ABI=0"}, f.CXXFLAGS)
	assert.Equal(t, "-L/p/torch/lib -Wl,-rpath,/p/torch/lib -Wl,-rpath-link,/p/nvidia/cublas/lib "+
		"-Wl,--no-as-needed -ltorch_cuda -lc10_cuda -ltorch_cpu -lc10 -lstdc++", strings.Join(f.LDFLAGS, " "))

	mac := &LibTorch{Include: []string{"/opt/x/include"}, Lib: "/opt/x/lib"}
	f = mac.Flags("darwin")
	assert.Equal(t, []string{"-I/opt/x/include"}, f.CXXFLAGS)
	assert.Equal(t, []string{"-L/opt/x/lib", "-Wl,-rpath,/opt/x/lib", "-ltorch_cpu", "-lc10", "-lc++"},
		f.LDFLAGS)
}

func TestPathsThatCgoDoesNotTake(t *testing.T) {
	m := machine(t)
	site := filepath.Join(t.TempDir(), "my site's packages")
	dir := filepath.Join(site, "torch")
	plant(t, dir, tree{cuda: true})
	write(t, filepath.Join(site, "nvidia/cublas/lib/libcublas.so.12"), "")
	l, err := locate(t, m, Request{Dir: dir})
	require.NoError(t, err)

	cache := &Cache{Dir: t.TempDir()}
	for range 2 { // the second finds the link
		plain, err := withPlainPaths(l, cache)
		require.NoError(t, err)
		for _, path := range append(append([]string{plain.Lib}, plain.Include...), plain.LinkDirs...) {
			assert.True(t, plainPath(path), path)
			assert.DirExists(t, path)
		}
		assert.FileExists(t, filepath.Join(plain.Lib, "libtorch_cpu.so"))
		assert.Equal(t, dir, plain.Dir)
		assert.Contains(t, l.Lib, " ", "the libtorch itself is not changed")
	}

	_, err = withPlainPaths(l, &Cache{Dir: filepath.Join(t.TempDir(), "a b")})
	require.ErrorContains(t, err, "cgo does not take the folder")
	assert.Contains(t, remedyOf(t, err), "--cache DIR")
}

func TestBLAS(t *testing.T) {
	for file, want := range map[string]string{
		"/usr/lib/x86_64-linux-gnu/openblas-pthread/libblas.so.3": openBLAS,
		"/usr/lib/x86_64-linux-gnu/blas/libblas.so.3.11.0":        referenceBLAS,
		"/usr/lib/x86_64-linux-gnu/atlas/libblas.so.3":            "ATLAS",
		"/usr/lib/x86_64-linux-gnu/libmkl_rt.so":                  "MKL",
		"/usr/lib/x86_64-linux-gnu/blis-openmp/libblas.so.3":      "BLIS",
	} {
		assert.Equal(t, want, blasName(file))
	}

	m := machine(t).withSystemTorch(t, tree{})
	m.library.Needed = []string{"libgomp.so.1", "libblas.so.3"}
	lib := m.path("usr/lib/x86_64-linux-gnu")
	write(t, filepath.Join(lib, "openblas-pthread/libblas.so.3"), "")
	require.NoError(t, os.MkdirAll(m.path("etc/alternatives"), 0o755))
	require.NoError(t, os.Symlink(filepath.Join(lib, "openblas-pthread/libblas.so.3"),
		m.path("etc/alternatives/libblas.so.3")))
	require.NoError(t, os.Symlink(m.path("etc/alternatives/libblas.so.3"), filepath.Join(lib, "libblas.so.3")))
	l, err := locate(t, m, Request{})
	require.NoError(t, err)
	assert.Equal(t, openBLAS, l.BLAS, "through two links, as Debian's alternatives have them")

	m.library.Needed = []string{"libopenblas.so.0"}
	assert.Equal(t, openBLAS, blasOf(m.System, l, m.library.Needed))
	assert.Equal(t, "FlexiBLAS", blasOf(m.System, l, []string{"libflexiblas.so.3"}))
	assert.Equal(t, "", blasOf(m.System, l, []string{"libc.so.6"}), "inside libtorch")
}

// TestReadELF builds libraries like c10 with both ABIs, so that the compiler itself says what the symbols look like.
func TestReadELF(t *testing.T) {
	cxx, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("g++ is not on the PATH")
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "c10.cc")
	write(t, source, `#include <string>
#include <sstream>
namespace c10 {
struct Error { Error(std::string message, std::string where); std::string text; };
Error::Error(std::string message, std::string where) : text(message + where) {
  std::ostringstream s;
  s << text;
  text = s.str();
}
}
// What a static libstdc++ leaves in a library: functions with strings of the new ABI, whatever libtorch's own are.
extern "C" void standard() __asm__("_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6appendEPKc");
extern "C" void standard() {}
extern "C" void locale() __asm__("_ZNKSt8messagesIcE8do_closeENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");
extern "C" void locale() {}
`)
	for abi, want := range map[string]bool{"0": false, "1": true} {
		out := filepath.Join(dir, "libc10-"+abi+".so")
		_, err := runCommand(context.Background(), Command{Name: cxx, Args: []string{
			"-std=c++17", "-shared", "-fPIC", "-D_GLIBCXX_USE_CXX11_ABI=" + abi, source, "-o", out,
		}})
		require.NoError(t, err)
		lib, err := ReadELF(out)
		require.NoError(t, err)
		assert.True(t, lib.ABIKnown)
		assert.Equal(t, want, lib.CXX11ABI, "_GLIBCXX_USE_CXX11_ABI=%s", abi)
		assert.Contains(t, lib.Needed, "libstdc++.so.6")
		assert.Equal(t, Host(false).GOARCH, lib.Arch)
	}
	_, err = ReadELF(source)
	assert.ErrorContains(t, err, "is not a shared library of this system")
}
