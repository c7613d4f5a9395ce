package bench

import (
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/kelvin-ppl/kelvin/internal/sample"
	"github.com/kelvin-ppl/kelvin/torch"
)

// What the comparisons have in common: two sides take turns in one process, and a round is several turns. Each
// side's fastest turn of a round counts, so that what else the machine does is left out.
const (
	WarmUp = 2                    // rounds that are not counted
	Turns  = 8                    // of each side in a round
	Turn   = 3 * time.Millisecond // how long one side runs before the other does
)

// Side makes n calls and returns the nanoseconds of one.
type Side func(n int) (float64, error)

// Calls is the side that calls f.
func Calls(f func() error) Side {
	return func(n int) (float64, error) {
		start := time.Now()
		for range n {
			if err := f(); err != nil {
				return 0, err
			}
		}
		return float64(time.Since(start).Nanoseconds()) / float64(n), nil
	}
}

// PerTurn is how many calls of ns nanoseconds fill a turn: at least one.
func PerTurn(ns float64) int { return max(1, int(float64(Turn.Nanoseconds())/ns)) }

// Round lets two sides take turns, each of calls[i] calls and each first by turns, and returns the nanoseconds of a
// call in the fastest turn of each.
func Round(turns int, sides [2]Side, calls [2]int) (fastest [2]float64, err error) {
	fastest = [2]float64{math.Inf(1), math.Inf(1)}
	for t := range 2 * turns {
		i := (t + t/2) % 2 // 0, 1, 1, 0, ...
		ns, err := sides[i](calls[i])
		if err != nil {
			return fastest, err
		}
		fastest[i] = min(fastest[i], ns)
	}
	return fastest, nil
}

// Quantile is the p-quantile of x, interpolated between the two nearest.
func Quantile(x []float64, p float64) float64 {
	return sample.Quantile(slices.Sorted(slices.Values(x)), p)
}

// Machine is what a measurement was made on.
type Machine struct {
	Processor string `json:"processor"`
	Cores     int    `json:"cores"`
	System    string `json:"system"`
	Libtorch  string `json:"libtorch"`
	Threads   int    `json:"threads"` // that one operation may use
}

// ThisMachine describes the machine that the program runs on.
func ThisMachine() Machine {
	return Machine{Processor: processor(), Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH,
		Libtorch: torch.Version(), Threads: torch.Library().Threads}
}

// processor is the name of the CPU where the system tells it.
func processor() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(info)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				return strings.TrimSpace(value)
			}
		}
	}
	return runtime.GOARCH
}
