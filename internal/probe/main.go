// Command probe prints what the libtorch in use can do, as one JSON object. `kelvin doctor` runs it, since the kelvin
// command itself builds without libtorch.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/kelvin-ppl/kelvin/internal/cuda"
	"github.com/kelvin-ppl/kelvin/torch"
)

// report is the output.
type report struct {
	Version      string   `json:"version"`
	CudaDevices  int      `json:"cuda_devices"`
	NoKernels    []string `json:"no_kernels"` // why devices draw random numbers by operations
	BLAS         string   `json:"blas"`
	Threads      int      `json:"threads"`
	ParallelInfo string   `json:"parallel_info"`
	GradientUS   float64  `json:"gradient_us"` // one value and gradient of a 1000 x 25 logistic regression
	Tiers        []tier   `json:"tiers"`       // the same, compiled
	MissingOps   []string `json:"missing_ops"`
}

func main() {
	gradient, tiers, err := timeGradients()
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
	lib := torch.Library()
	var reasons []string
	for i := range lib.CudaDevices {
		if _, err := cuda.Load(i); err != nil {
			reasons = append(reasons, err.Error())
		}
	}
	err = json.NewEncoder(os.Stdout).Encode(report{Version: lib.Version, CudaDevices: lib.CudaDevices,
		NoKernels: reasons,
		BLAS:      blas(lib.Config),
		Threads:   lib.Threads, ParallelInfo: lib.ParallelInfo, GradientUS: gradient, Tiers: tiers,
		MissingOps: torch.Missing()})
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

var blasFile = regexp.MustCompile(`/[^\s]*lib(openblas|mkl_rt|mkl_core|blas|cblas|Accelerate)[^\s/]*`)

// blas names the linear-algebra library that this process has loaded; where the system does not tell, the one that
// libtorch was built with.
func blas(config string) string {
	maps, err := os.ReadFile("/proc/self/maps")
	if err == nil {
		found := ""
		for _, m := range blasFile.FindAllStringSubmatch(string(maps), -1) {
			path := m[0]
			if strings.Contains(path, "openblas") || strings.Contains(path, "mkl") {
				return filepath.Base(path) + " (" + filepath.Dir(path) + ")"
			}
			found = filepath.Base(path) + " (" + filepath.Dir(path) + ")"
		}
		if found != "" {
			return found
		}
	}
	if i := strings.Index(config, "BLAS_INFO="); i >= 0 {
		return strings.SplitN(config[i+len("BLAS_INFO="):], ",", 2)[0]
	}
	return "unknown"
}
