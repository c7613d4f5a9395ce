package setup

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Source says where a libtorch comes from.
type Source string

// The places where set-up looks, in this order.
const (
	FromFlag        Source = "flag"
	FromEnvironment Source = "environment"
	FromPython      Source = "python"
	FromSystem      Source = "system"
	FromDownload    Source = "download"
)

// The oldest libtorch that Kelvin runs on: the first that carries vmap in C++.
const minMajor, minMinor = 1, 13

// LibTorch is a libtorch that Kelvin can use.
type LibTorch struct {
	Dir         string   `json:"dir"`
	Include     []string `json:"include"`   // folders of headers
	Lib         string   `json:"lib"`       // folder of libtorch_cpu
	LinkDirs    []string `json:"link_dirs"` // folders of the libraries that its libraries need, for the linker
	Version     string   `json:"version"`
	Source      Source   `json:"source"`
	CUDA        bool     `json:"cuda"`
	CUDAVersion string   `json:"cuda_version,omitempty"` // empty when not known
	CXX11ABI    bool     `json:"cxx11_abi"`
	BLAS        string   `json:"blas,omitempty"` // empty when it is inside libtorch
}

// String returns a line such as "libtorch 1.13.1 (CPU, OpenBLAS) in /usr".
func (l *LibTorch) String() string {
	kind := "CPU"
	if l.CUDA {
		kind = strings.TrimSpace("CUDA " + l.CUDAVersion)
	}
	if l.BLAS != "" {
		kind += ", " + l.BLAS
	}
	return fmt.Sprintf("libtorch %s (%s) in %s", l.Version, kind, l.Dir)
}

// Unusable is a folder that was looked at for a libtorch, and why it does not do.
type Unusable struct {
	Dir    string
	Source Source
	Reason string
	Absent bool // there is no libtorch at all
}

// Error returns the folder and the reason.
func (u *Unusable) Error() string {
	return fmt.Sprintf("no usable libtorch in %s: %s", u.Dir, u.Reason)
}

// versionHeaders are the headers that have held the version macros, newest first.
var versionHeaders = []string{
	"torch/headeronly/version.h",
	"torch/csrc/api/include/torch/version.h",
	"torch/version.h",
}

// vmapHeader is where libtorch declares the part of functorch that Kelvin uses.
const vmapHeader = "ATen/functorch/BatchedTensorImpl.h"

// inspect checks that dir holds a libtorch that Kelvin can use. The error is an *Unusable.
func inspect(sys *System, dir string, source Source) (*LibTorch, error) {
	no := func(format string, args ...any) (*LibTorch, error) {
		return nil, &Unusable{Dir: dir, Source: source, Reason: fmt.Sprintf(format, args...)}
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, &Unusable{Dir: dir, Source: source, Absent: true, Reason: "the folder cannot be read: " + reason(err)}
	}
	lib := libFolder(sys, dir)
	include := filepath.Join(dir, "include")
	version, known, err := headerVersion(include)
	if lib == "" || errors.Is(err, fs.ErrNotExist) {
		u := &Unusable{Dir: dir, Source: source, Absent: lib == "" && err != nil}
		switch {
		case lib == "" && err != nil:
			u.Reason = "it has neither libtorch's headers (include/torch/csrc/api/include/torch/version.h) nor its library (" +
				sys.library("torch_cpu") + ")"
			u.Reason += nested(sys, dir)
		case lib == "":
			u.Reason = fmt.Sprintf("it has libtorch's headers, but no %s in lib, lib64 or lib/%s", sys.library("torch_cpu"),
				triplet(sys.GOARCH))
		default:
			u.Reason = fmt.Sprintf("it has %s, but not the headers (include/torch/csrc/api/include/torch/version.h): a "+
				"development package is missing", sys.library("torch_cpu"))
		}
		return nil, u
	}
	if err != nil {
		return no("%v", err)
	}
	if !known.atLeast(minMajor, minMinor) {
		return no("it is libtorch %s, and Kelvin needs %d.%d or later", version, minMajor, minMinor)
	}
	if !exists(filepath.Join(lib, sys.library("c10"))) {
		return no("%s is missing beside %s", sys.library("c10"), filepath.Join(lib, sys.library("torch_cpu")))
	}
	if !exists(filepath.Join(include, vmapHeader)) {
		return no("the header %s is missing, which Kelvin needs for its vmap", vmapHeader)
	}
	l := &LibTorch{Dir: dir, Lib: lib, Version: version, Source: source}
	l.Include = []string{include}
	if api := filepath.Join(include, "torch/csrc/api/include"); exists(api) {
		l.Include = append(l.Include, api)
	}
	l.CUDA = exists(filepath.Join(lib, sys.library("torch_cuda"))) && exists(filepath.Join(lib, sys.library("c10_cuda")))
	readBuildVersion(l)
	l.LinkDirs = nvidiaFolders(dir)
	if sys.GOOS == "darwin" {
		return l, nil
	}
	return readLibraries(sys, l)
}

// readLibraries learns the C++ ABI and the BLAS from the libraries of l.
func readLibraries(sys *System, l *LibTorch) (*LibTorch, error) {
	no := func(format string, args ...any) (*LibTorch, error) {
		return nil, &Unusable{Dir: l.Dir, Source: l.Source, Reason: fmt.Sprintf(format, args...)}
	}
	c10, err := sys.ReadLibrary(filepath.Join(l.Lib, sys.library("c10")))
	if err != nil {
		return no("%v", err)
	}
	if c10.Arch != "" && c10.Arch != sys.GOARCH {
		return no("its libraries are for %s, and Go builds for %s here", c10.Arch, sys.GOARCH)
	}
	cpu, err := sys.ReadLibrary(filepath.Join(l.Lib, sys.library("torch_cpu")))
	if err != nil {
		return no("%v", err)
	}
	switch {
	case c10.ABIKnown:
		l.CXX11ABI = c10.CXX11ABI
	case cpu.ABIKnown:
		l.CXX11ABI = cpu.CXX11ABI
	default:
		return no("its C++ ABI cannot be told: neither %s nor %s defines a function that takes a std::string",
			sys.library("c10"), sys.library("torch_cpu"))
	}
	l.BLAS = blasOf(sys, l, cpu.Needed)
	return l, nil
}

// libFolder returns the folder under dir that holds libtorch_cpu, or nothing.
func libFolder(sys *System, dir string) string {
	for _, sub := range []string{"lib", "lib64", filepath.Join("lib", triplet(sys.GOARCH))} {
		if exists(filepath.Join(dir, sub, sys.library("torch_cpu"))) {
			return filepath.Join(dir, sub)
		}
	}
	return ""
}

// nested helps a user who named the folder above the right one.
func nested(sys *System, dir string) string {
	for _, sub := range []string{"libtorch", "torch"} {
		if libFolder(sys, filepath.Join(dir, sub)) != "" {
			return "; did you mean " + filepath.Join(dir, sub) + "?"
		}
	}
	return ""
}

// numbers is a version's major and minor number.
type numbers struct{ major, minor int }

func (n numbers) atLeast(major, minor int) bool {
	return cmp.Or(cmp.Compare(n.major, major), cmp.Compare(n.minor, minor)) >= 0
}

var versionMacro = regexp.MustCompile(`(?m)^\s*#\s*define\s+TORCH_VERSION_(MAJOR|MINOR|PATCH)\s+(\d+)\s*$`)

// headerVersion reads the version from the headers in include. Without such headers the error is fs.ErrNotExist.
func headerVersion(include string) (string, numbers, error) {
	found := error(fs.ErrNotExist)
	for _, name := range versionHeaders {
		text, err := os.ReadFile(filepath.Join(include, name))
		if err != nil {
			continue
		}
		got := map[string]int{}
		for _, m := range versionMacro.FindAllStringSubmatch(string(text), -1) {
			got[m[1]], _ = strconv.Atoi(m[2])
		}
		if len(got) == 3 {
			n := numbers{got["MAJOR"], got["MINOR"]}
			return fmt.Sprintf("%d.%d.%d", n.major, n.minor, got["PATCH"]), n, nil
		}
		found = fmt.Errorf("the header %s does not define TORCH_VERSION_MAJOR, _MINOR and _PATCH",
			filepath.Join(include, name))
	}
	return "", numbers{}, found
}

var versionText = regexp.MustCompile(`^v?(\d+)\.(\d+)(\.\d+)?`)

// parseVersion reads a version such as 2.6.0+cu124 or 1:1.13.1+dfsg-4 and returns its first three numbers.
func parseVersion(text string) (string, numbers, bool) {
	text = strings.TrimSpace(text)
	if _, after, epoch := strings.Cut(text, ":"); epoch {
		text = after
	}
	m := versionText.FindStringSubmatch(text)
	if m == nil {
		return "", numbers{}, false
	}
	var n numbers
	n.major, _ = strconv.Atoi(m[1])
	n.minor, _ = strconv.Atoi(m[2])
	return strings.TrimPrefix(m[0], "v"), n, true
}

var pythonVersion = regexp.MustCompile(`(?m)^(__version__|cuda)[^=\n]*=\s*['"]([^'"]+)['"]`)

// readBuildVersion takes the exact version and CUDA's from the files that PyTorch's builds carry: version.py of a
// Python package, build-version of an archive.
func readBuildVersion(l *LibTorch) {
	var full string
	if text, err := os.ReadFile(filepath.Join(l.Dir, "version.py")); err == nil {
		for _, m := range pythonVersion.FindAllStringSubmatch(string(text), -1) {
			if m[1] == "cuda" && l.CUDA {
				l.CUDAVersion = m[2]
			} else if m[1] == "__version__" {
				full = m[2]
			}
		}
	} else if text, err := os.ReadFile(filepath.Join(l.Dir, "build-version")); err == nil {
		full = strings.TrimSpace(string(text))
	}
	useVersion(l, full)
	_, build, _ := strings.Cut(full, "+")
	if digits, ok := strings.CutPrefix(build, "cu"); ok && l.CUDA && l.CUDAVersion == "" && len(digits) >= 2 {
		l.CUDAVersion = digits[:len(digits)-1] + "." + digits[len(digits)-1:]
	}
}

// useVersion takes over a version that is more exact than the header's, if the two agree in major and minor number.
func useVersion(l *LibTorch, text string) {
	_, header, _ := parseVersion(l.Version)
	if version, n, ok := parseVersion(text); ok && n == header {
		l.Version = version
	}
}

// nvidiaFolders returns the folders in which pip keeps the CUDA libraries of a Python package in dir.
func nvidiaFolders(dir string) []string {
	found := []string{}
	for _, pattern := range []string{"nvidia/*/lib", "nvidia/*/lib64"} {
		got, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), pattern))
		found = append(found, got...)
	}
	slices.Sort(found)
	return found
}
