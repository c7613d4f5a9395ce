package cuda

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// fake compiles a driver and an NVRTC that run in main memory.
func fake(t *testing.T) []string {
	t.Helper()
	compiler, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("the libraries of no GPU are compiled with g++, which is not here")
	}
	dir := t.TempDir()
	t.Setenv("FAKE_DIR", dir)
	path := filepath.Join(dir, "libfake.so")
	out, err := exec.Command(compiler, "-O1", "-std=c++17", "-fPIC", "-shared", "-o", path, "testdata/fake.cpp").
		CombinedOutput()
	require.NoError(t, err, string(out))
	return []string{"libnot_there.so", path}
}

// The kernel is compiled, loaded and started as a GPU would have it, and every number is that of the same code in one
// loop: the whole grid, a last number without its pair, rows, and sizes that are more than the largest grid.
func TestKernel(t *testing.T) {
	libraries := fake(t)
	k, err := load(2, libraries)
	require.NoError(t, err)
	chains := []uint64{3, math.MaxUint64, 0x0370734413198a2e}
	for _, size := range []int64{1, 2, 7, 512, 513, 1 << 12} {
		for _, d := range []Draw{
			{Normal: true}, {}, {Float: true, Normal: true}, {Float: true},
		} {
			d.Rows, d.N, d.Seed, d.Offset = int64(len(chains)), size, 0x299f31d0a4093822, math.MaxUint32-2
			want, got := make([]float64, 3*size), make([]float64, 3*size)
			Serial(d, unsafe.Pointer(&want[0]), unsafe.Pointer(&chains[0]))
			require.NoError(t, k.Fill(d, unsafe.Pointer(&got[0]), unsafe.Pointer(&chains[0])))
			require.Equal(t, want, got)
			require.NotZero(t, got[len(got)/2-1])
			// Chains at equal distances need no memory.
			even := []uint64{math.MaxUint64, 4, 9}
			d.First, d.Step = even[0], 5
			Serial(d, unsafe.Pointer(&want[0]), unsafe.Pointer(&even[0]))
			require.NoError(t, k.Fill(d, unsafe.Pointer(&got[0]), nil))
			require.Equal(t, want, got)
		}
	}
	require.NoError(t, k.Fill(Draw{Rows: 3}, nil, nil))
}

// An NVRTC that does not know the device compiles for any later one; whatever else fails is the reason.
func TestReasons(t *testing.T) {
	libraries := fake(t)
	for fails, want := range map[string]string{
		"cuInit":              "cuInit: no CUDA-capable device is detected (100)",
		"nvrtcCompileProgram": "NVRTC does not compile for a device of capability 90: not that device",
		"sm_90":               "",
	} {
		t.Setenv("FAKE", fails)
		_, err := load(2, libraries)
		if want == "" {
			require.NoError(t, err)
			require.FileExists(t, filepath.Join(os.Getenv("FAKE_DIR"), "kernelcompute_90.so"))
			continue
		}
		require.EqualError(t, err, "no kernel for random numbers on device 2: "+want)
	}
	t.Setenv("FAKE", "")
	k, err := load(2, libraries)
	require.NoError(t, err)
	t.Setenv("FAKE", "cuLaunchKernel")
	x := make([]float64, 2)
	chain := uint64(1)
	require.EqualError(t, k.Fill(Draw{Rows: 1, N: 2}, unsafe.Pointer(&x[0]), unsafe.Pointer(&chain)),
		"cuLaunchKernel: unspecified launch failure (719)")

	_, err = load(0, []string{"libnot_there.so", "libnor_this.so"})
	require.ErrorContains(t, err, "of the libraries libnot_there.so, libnor_this.so none has cuInit, cuDeviceGet, ")
}

// NVRTC compiles the kernel for the devices of today, without one. NVRTC=…/libnvrtc.so.12 says where it is.
func TestNVRTC(t *testing.T) {
	library := os.Getenv("NVRTC")
	if library == "" {
		t.Skip("NVRTC names no library of NVRTC, such as nvidia/cuda_nvrtc/lib/libnvrtc.so.12 of a Python package")
	}
	architectures := []string{"sm_80", "sm_90", "compute_80", "compute_90", "compute_100"}
	if strings.HasSuffix(library, ".so.12") { // CUDA 13 no longer compiles for capability 7.0
		architectures = append(architectures, "sm_70", "compute_70")
	}
	for _, architecture := range architectures {
		code, err := compiled([]string{library}, architecture)
		require.NoError(t, err, architecture)
		if architecture[0] == 'c' {
			require.Contains(t, string(code), ".visible .entry kelvin_doubles(")
			require.Contains(t, string(code), ".visible .entry kelvin_floats(")
		} else {
			require.Equal(t, "\x7fELF", string(code[:4]))
		}
	}
}
