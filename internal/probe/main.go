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
	"github.com/kelvin-ppl/kelvin/internal/setup"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

func main() {
	gradient, tiers, err := timeGradients()
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
	lib := torch.Library()
	r := setup.Runtime{Version: lib.Version, CUDADevices: []string{}, BLAS: blas(lib.Config), Threads: lib.Threads,
		ParallelInfo: lib.ParallelInfo, GradientUS: gradient, Tiers: tiers}
	for i := range lib.CudaDevices {
		r.CUDADevices = append(r.CUDADevices, fmt.Sprintf("cuda:%d", i))
		if err := tryKernel(i); err != nil {
			r.NoKernels = append(r.NoKernels, err.Error())
		}
	}
	err = json.NewEncoder(os.Stdout).Encode(r)
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

// tryKernel lets the kernel of a device draw two numbers.
func tryKernel(device int) error {
	k, err := cuda.Load(device)
	if err != nil {
		return err
	}
	err = torch.Do(func(*torch.Scope) error {
		out, err := ts.Empty([]int64{2}, gotch.Double, gotch.CudaBuilder(uint(device)))
		if err != nil {
			return err
		}
		if err := k.Fill(cuda.Draw{Rows: 1, N: 2}, torch.Must(out.DataPtr()), nil); err != nil {
			return err
		}
		return torch.Synchronize()
	})
	if err != nil {
		return fmt.Errorf("the kernel for random numbers does not run on device %d: %w", device, err)
	}
	return nil
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
