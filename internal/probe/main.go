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
	"time"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// report is the output.
type report struct {
	Version      string   `json:"version"`
	CudaDevices  int      `json:"cuda_devices"`
	BLAS         string   `json:"blas"`
	Threads      int      `json:"threads"`
	ParallelInfo string   `json:"parallel_info"`
	GradientUS   float64  `json:"gradient_us"` // one value and gradient of a 1000 x 25 logistic regression
	MissingOps   []string `json:"missing_ops"`
}

func main() {
	gradient, err := timeGradient()
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
	lib := torch.Library()
	err = json.NewEncoder(os.Stdout).Encode(report{Version: lib.Version, CudaDevices: lib.CudaDevices,
		BLAS:    blas(lib.Config),
		Threads: lib.Threads, ParallelInfo: lib.ParallelInfo, GradientUS: gradient, MissingOps: torch.Missing()})
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

// timeGradient returns the microseconds of one value and gradient: the best of several rounds, since other work only
// adds to it.
func timeGradient() (float64, error) {
	const n, d, rounds, calls = 1000, 25, 9, 50
	streams := torch.NewStreams(1, 1)
	best := 0.0
	err := torch.Do(func(*torch.Scope) error {
		x := torch.Must(torch.Must(streams.Normal([]int64{n, d}, gotch.Double, torch.CPU)).Squeeze(false))
		y := torch.Must(torch.Must(streams.Normal([]int64{n}, gotch.Double, torch.CPU)).Squeeze(false)).MustSign(false)
		w := torch.Must(torch.Must(streams.Normal([]int64{d}, gotch.Double, torch.CPU)).Squeeze(false))
		logp := func(w *ts.Tensor) *ts.Tensor {
			return x.MustMv(w, false).MustMul(y, false).MustLogSigmoid(false).MustSum(gotch.Double, false).
				MustSub(w.MustDot(w, false), false)
		}
		for r := range rounds {
			began := time.Now()
			for range calls {
				v, g, err := torch.ValueAndGrad(logp, w)
				if err != nil {
					return err
				}
				torch.Free(v, g)
			}
			if us := float64(time.Since(began).Microseconds()) / calls; r == 0 || us < best {
				best = us
			}
		}
		return nil
	})
	return best, err
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
