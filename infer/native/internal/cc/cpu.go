package cc

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// cpu describes the processor: its model and features as the system tells them, "" where it does not. Code is made for
// this very processor.
var cpu = sync.OnceValue(func() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		switch name = strings.TrimSpace(name); name {
		case "model name", "vendor_id", "cpu family", "model", "stepping", "flags", "Features", "isa", "CPU implementer",
			"CPU architecture", "CPU variant", "CPU part", "CPU revision":
			lines = append(lines, name+": "+strings.TrimSpace(value))
		}
	}
	slices.Sort(lines)
	return runtime.GOARCH + "\n" + strings.Join(slices.Compact(lines), "\n")
})

// native are the flags for this processor and its libraries.
func native() []string {
	f := []string{"-march=native"}
	if runtime.GOARCH == "amd64" && strings.Contains(cpu(), "avx512f") {
		f = append(f, "-mprefer-vector-width=512")
	}
	if v := libmvec(); v > 0 {
		f = append(f, fmt.Sprintf("-DKELVIN_LIBMVEC=%d", v))
	}
	return f
}
