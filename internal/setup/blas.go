package setup

import (
	"path/filepath"
	"slices"
	"strings"
)

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
