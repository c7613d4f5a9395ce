package setup

import (
	"debug/elf"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Library is what set-up reads from a shared library.
type Library struct {
	Needed   []string // the libraries that it loads
	CXX11ABI bool     // built with _GLIBCXX_USE_CXX11_ABI=1
	ABIKnown bool     // CXX11ABI could be told from its symbols
	Arch     string   // the GOARCH it is built for; empty when not known
}

// ReadELF reads a shared library of Linux. The C++ ABI is told from the functions of libtorch that the library
// defines: a std::string in a signature is NSt7__cxx1112basic_string with the new ABI and Ss with the old one. No
// other functions count: a library with the old ABI may use functions of libstdc++ that exist in the new one only, and
// one that was linked with a static libstdc++ defines functions of both.
func ReadELF(path string) (Library, error) {
	f, err := elf.Open(path)
	if err != nil {
		return Library{}, fmt.Errorf("%s is not a shared library of this system: %w", path, err)
	}
	defer f.Close()
	lib := Library{Arch: archOf(f)}
	if lib.Needed, err = f.ImportedLibraries(); err != nil {
		return Library{}, fmt.Errorf("%s: cannot read the libraries that it needs: %w", path, err)
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return Library{}, fmt.Errorf("%s: cannot read its symbols: %w", path, err)
	}
	var old bool
	for _, s := range symbols {
		if s.Section == elf.SHN_UNDEF || !isOfLibTorch(s.Name) {
			continue
		}
		switch {
		case strings.Contains(s.Name, "NSt7__cxx1112basic_string"):
			lib.CXX11ABI, lib.ABIKnown = true, true
			return lib, nil
		case isErrorWithOldString(s.Name):
			old = true
		}
	}
	lib.ABIKnown = old
	return lib, nil
}

// isOfLibTorch says whether a symbol is a function of one of libtorch's namespaces: c10, at or torch.
func isOfLibTorch(name string) bool {
	rest, nested := strings.CutPrefix(name, "_ZN")
	rest = strings.TrimPrefix(rest, "K") // a const method
	return nested &&
		(strings.HasPrefix(rest, "3c10") || strings.HasPrefix(rest, "2at") || strings.HasPrefix(rest, "5torch"))
}

// isErrorWithOldString says whether a symbol is a constructor of c10::Error that takes a std::string of the old ABI.
func isErrorWithOldString(name string) bool {
	const constructor = "_ZN3c105ErrorC"
	return strings.HasPrefix(name, constructor) && strings.Contains(name[len(constructor):], "Ss")
}

// machines are the GOARCHs of ELF files; that of PowerPC with the small end first is ppc64le.
var machines = map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64", elf.EM_386: "386",
	elf.EM_ARM: "arm", elf.EM_S390: "s390x", elf.EM_LOONGARCH: "loong64", elf.EM_PPC64: "ppc64", elf.EM_RISCV: "riscv64"}

// archOf returns the GOARCH of an ELF file.
func archOf(f *elf.File) string {
	if f.Machine == elf.EM_PPC64 && f.Data == elf.ELFDATA2LSB {
		return "ppc64le"
	}
	return machines[f.Machine]
}

// Names of the libraries for linear algebra, as doctor shows them.
const (
	openBLAS      = "OpenBLAS"
	referenceBLAS = "reference BLAS"
)

// blasOf returns which BLAS a libtorch on Linux loads, given the libraries that it needs; empty when BLAS is inside
// libtorch. Debian's libtorch needs libblas.so.3, and what that is depends on the packages installed.
func blasOf(sys *System, l *LibTorch, needed []string) string {
	for _, name := range needed {
		switch {
		case strings.HasPrefix(name, "libopenblas"):
			return openBLAS
		case strings.HasPrefix(name, "libflexiblas"):
			return "FlexiBLAS"
		case strings.HasPrefix(name, "libmkl"):
			return "MKL"
		}
	}
	for _, name := range needed {
		if !strings.HasPrefix(name, "libblas.so") && !strings.HasPrefix(name, "libcblas.so") {
			continue
		}
		for _, dir := range []string{l.Lib, sys.path("usr/lib", triplet(sys.GOARCH)), sys.path("usr/lib64"),
			sys.path("usr/lib")} {
			if file, err := filepath.EvalSymlinks(filepath.Join(dir, name)); err == nil {
				return blasName(file)
			}
		}
	}
	return ""
}

// blasName names a BLAS by the file that libblas.so.3 leads to, and the folder of that file.
func blasName(file string) string {
	parts := []string{filepath.Base(filepath.Dir(file)), strings.ToLower(filepath.Base(file))}
	has := func(word string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(p, word) })
	}
	switch {
	case has("openblas"):
		return openBLAS
	case has("mkl"):
		return "MKL"
	case has("blis"):
		return "BLIS"
	case has("atlas"):
		return "ATLAS"
	}
	return referenceBLAS
}
