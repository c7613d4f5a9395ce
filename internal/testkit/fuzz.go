// Package testkit is what tests of packages without libtorch share: samples, fuzz targets, and the memory of a process.
// What tests of methods share is in internal/infertest.
package testkit

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// memory is the variable that bounds the memory of a process, in bytes. Those that a fuzz target starts have it too.
const memory = "KELVIN_TEST_MEMORY"

// LimitMemory bounds the memory that this process takes from now on, where its environment says so. A request for more
// ends it, which the fuzzer reports. Call it in TestMain.
func LimitMemory() {
	bytes, err := strconv.ParseUint(os.Getenv(memory), 10, 64)
	if err != nil {
		return
	}
	if err := limit(bytes); err != nil {
		panic("testkit: no limit of memory here: " + err.Error())
	}
}

var executions = regexp.MustCompile(`execs: (\d+)`)

// FuzzExecutions are how often the slow tests call a target.
const FuzzExecutions = 100000

// Fuzz calls a fuzz target of the package in the current folder so often, in processes that have 512 MB, and tells of
// what it saw.
func Fuzz(t *testing.T, target string, calls int) {
	t.Helper()
	// Go would take up to a minute to make each input that covers new code smaller, and call nothing else meanwhile.
	cmd := exec.Command("go", "test", "-run", "^$", "-fuzz", "^"+target+"$", "-fuzztime", strconv.Itoa(calls)+"x",
		"-parallel", "2", "-fuzzminimizetime", "10x", ".")
	cmd.Env = append(os.Environ(), memory+"="+strconv.Itoa(512<<20), "GOMEMLIMIT=384MiB")
	if dir, err := os.MkdirTemp("/dev/shm", "kelvin-fuzz"); err == nil { // files in memory, where there are such
		defer func() { _ = os.RemoveAll(dir) }()
		cmd.Env = append(cmd.Env, "TMPDIR="+dir, "GOTMPDIR="+os.TempDir())
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	found := executions.FindAllSubmatch(bytes.TrimSpace(out), -1)
	require.NotEmpty(t, found, "%s", out)
	n, err := strconv.Atoi(string(found[len(found)-1][1]))
	require.NoError(t, err)
	require.GreaterOrEqual(t, n, calls)
	t.Logf("seen: %s %d executions", target, n)
}

// FuzzNumbers fuzzes a function of numbers, beginning with the given ones.
func FuzzNumbers(f *testing.F, seeds [][]float64, check func(t *testing.T, x []float64)) {
	f.Helper()
	for _, x := range seeds {
		var b []byte
		for _, v := range x {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var x []float64
		for ; len(b) >= 8; b = b[8:] {
			x = append(x, math.Float64frombits(binary.LittleEndian.Uint64(b)))
		}
		check(t, x)
	})
}
