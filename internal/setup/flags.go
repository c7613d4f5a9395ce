package setup

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/internal/gotch"
)

// triplets are the names that Debian and its relatives give to architectures.
var triplets = map[string]string{
	"386":     "i386-linux-gnu",
	"amd64":   "x86_64-linux-gnu",
	"arm":     "arm-linux-gnueabihf",
	"arm64":   "aarch64-linux-gnu",
	"loong64": "loongarch64-linux-gnu",
	"ppc64le": "powerpc64le-linux-gnu",
	"riscv64": "riscv64-linux-gnu",
	"s390x":   "s390x-linux-gnu",
}

// triplet returns Debian's name of an architecture.
func triplet(goarch string) string {
	if t, ok := triplets[goarch]; ok {
		return t
	}
	return goarch + "-linux-gnu"
}

// library returns the file name of a shared library.
func (s *System) library(name string) string {
	if s.GOOS == "darwin" {
		return "lib" + name + ".dylib"
	}
	return "lib" + name + ".so"
}

// Flags returns the compiler's and the linker's flags for a libtorch. Folders that compiler and loader search anyway
// are left out: -I/usr/include would come before the compiler's own headers.
func (l *LibTorch) Flags(goos string) gotch.Flags {
	var f gotch.Flags
	for _, dir := range l.Include {
		if dir != "/usr/include" {
			f.CXXFLAGS = append(f.CXXFLAGS, "-I"+dir)
		}
	}
	if goos != "darwin" {
		abi := 0
		if l.CXX11ABI {
			abi = 1
		}
		f.CXXFLAGS = append(f.CXXFLAGS, fmt.Sprintf("-D_GLIBCXX_USE_CXX11_ABI=%d", abi))
	}
	f.LDFLAGS = append(f.LDFLAGS, "-L"+l.Lib)
	if !isStandard(l.Lib) {
		f.LDFLAGS = append(f.LDFLAGS, "-Wl,-rpath,"+l.Lib)
	}
	if goos != "darwin" {
		for _, dir := range l.LinkDirs {
			f.LDFLAGS = append(f.LDFLAGS, "-Wl,-rpath-link,"+dir)
		}
	}
	if l.CUDA {
		// Nothing refers to the CUDA libraries by a symbol: they register themselves when they are loaded.
		f.LDFLAGS = append(f.LDFLAGS, "-Wl,--no-as-needed", "-ltorch_cuda", "-lc10_cuda")
	}
	// libtorch itself is left out: it has no functions, and in a CUDA build it needs all of CUDA's libraries, which a
	// machine that uses the CPU alone may not have.
	f.LDFLAGS = append(f.LDFLAGS, "-ltorch_cpu", "-lc10")
	if goos == "darwin" {
		f.LDFLAGS = append(f.LDFLAGS, "-lc++")
	} else {
		f.LDFLAGS = append(f.LDFLAGS, "-lstdc++")
	}
	return f
}

// isStandard says whether the loader searches a folder by itself.
func isStandard(lib string) bool {
	standard := []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64"}
	for _, t := range triplets {
		standard = append(standard, "/lib/"+t, "/usr/lib/"+t)
	}
	return slices.Contains(standard, filepath.Clean(lib))
}

// plainPath says whether cgo and the linker take a path as it is, without quotes.
func plainPath(path string) bool {
	const plain = "+-./:=@^_"
	return !strings.ContainsFunc(path, func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letter && !strings.ContainsRune(plain, r)
	})
}

// withPlainPaths returns l with paths that cgo takes: a folder whose name has a space, say, is reached through a link
// in the cache.
func withPlainPaths(l *LibTorch, c *Cache) (*LibTorch, error) {
	// The folder of pip's CUDA libraries lies beside the package, so that the link must be above both.
	base := l.Dir
	if len(l.LinkDirs) > 0 {
		base = filepath.Dir(l.Dir)
	}
	if plainPath(l.Lib) && !slices.ContainsFunc(append(l.Include, l.LinkDirs...),
		func(p string) bool { return !plainPath(p) }) {
		return l, nil
	}
	sum := sha256.Sum256([]byte(base))
	link := filepath.Join(c.Dir, "links", hex.EncodeToString(sum[:6]))
	if !plainPath(link) {
		return nil, fail(nil,
			"name another cache folder with --cache DIR or $KELVIN_CACHE, without spaces or special characters",
			"cgo does not take the folder %q of libtorch, and the cache folder %q has such characters too", l.Dir, c.Dir)
	}
	if got, err := os.Readlink(link); err != nil || got != base {
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			return nil, c.unwritable(err)
		}
		_ = os.Remove(link)
		if err := os.Symlink(base, link); err != nil {
			return nil, c.unwritable(err)
		}
	}
	moved := *l
	move := func(path string) string {
		rest, inside := strings.CutPrefix(path, base)
		if !inside {
			return path
		}
		return link + rest
	}
	moved.Lib = move(l.Lib)
	moved.Include, moved.LinkDirs = slices.Clone(l.Include), slices.Clone(l.LinkDirs)
	for i := range moved.Include {
		moved.Include[i] = move(moved.Include[i])
	}
	for i := range moved.LinkDirs {
		moved.LinkDirs[i] = move(moved.LinkDirs[i])
	}
	return &moved, nil
}
