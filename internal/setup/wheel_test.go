package setup

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// withPip gives a machine a pip whose registry has a wheel of torch for CUDA, of the version 2.5.1, and packages of
// CUDA.
func (m *fakeMachine) withPip(t *testing.T, f tree, requires ...string) {
	t.Helper()
	f.cuda = true
	m.library.Needed = []string{"libc10.so", "libcudart.so.12"}
	dir := t.TempDir()
	plant(t, filepath.Join(dir, "torch"), f)
	write(t, filepath.Join(dir, "torch/version.py"), "__version__ = '2.5.1+cu124'\ncuda: Optional[str] = '12.4'\n")
	write(t, filepath.Join(dir, "torch/lib/libgomp-a34b3233.so.1"), "threads\n")
	write(t, filepath.Join(dir, "torch/nn/functional.py"), "def relu(): ...\n")
	write(t, filepath.Join(dir, "torch-2.5.1.dist-info/METADATA"), "Metadata-Version: 2.1\nRequires-Dist: filelock\n"+
		strings.Join(requires, "\n")+"\n")
	var entries []entry
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		entries = append(entries, entry{name: filepath.ToSlash(rel), text: read(t, path)})
		return err
	}))
	torch := string(pack(t, entries...))
	cuda := string(pack(t, entry{name: "nvidia/cuda_runtime/lib/libcudart.so.12", text: "runtime\n"},
		entry{name: "nvidia/cuda_runtime/include/cuda.h", text: "header\n"}))
	m.programs["python3"] = func(c Command) (string, error) {
		switch {
		case slices.Contains(c.Args, "--version"):
			return "pip 23\n", nil
		case slices.Contains(c.Args, "download"):
			to := c.Args[slices.Index(c.Args, "--dest")+1]
			if slices.Contains(c.Args, "torch==2.5.1") {
				write(t, filepath.Join(to, "torch-2.5.1-cp311-cp311-manylinux1_x86_64.whl"), torch)
			} else if slices.Contains(c.Args, "torch==9.9.9") {
				return fails(c)
			} else {
				write(t, filepath.Join(to, "nvidia_cuda_runtime.whl"), cuda)
			}
		}
		return "", nil // the query for a torch package has no answer
	}
}

const cudaRuntime = `Requires-Dist: nvidia-cuda-runtime-cu12 (==12.4.127) ; platform_system == "Linux"`

// noWheelSums forgets the known checksums of wheels, which a fake one cannot have.
func noWheelSums(t *testing.T) {
	old := wheelSums
	wheelSums = nil
	t.Cleanup(func() { wheelSums = old })
}

// A wheel of a CUDA build becomes a libtorch for the CPU, with the two libraries of CUDA that it is linked with, and
// none other. The second set-up finds it.
func TestWheel(t *testing.T) {
	noWheelSums(t)
	m := machine(t)
	m.withPip(t, tree{version: "2.5.1"}, cudaRuntime,
		`Requires-Dist: nvidia-cublas-cu12 (==12.4.5.8) ; platform_system == "Linux"`)
	report := &recorder{}
	res, err := runSetup(t, m, parts(t), Options{Wheel: "2.5.1", Report: report})
	require.NoError(t, err)
	l := res.LibTorch
	assert.Equal(t, "2.5.1", l.Version)
	assert.Equal(t, FromDownload, l.Source)
	assert.False(t, l.CUDA, "the libraries for CUDA stay in the wheel")
	top := filepath.Dir(l.Dir)
	assert.Equal(t, "2.5.1-wheel", filepath.Base(top))
	assert.Equal(t, []string{filepath.Join(top, "nvidia/cuda_runtime/lib")}, l.LinkDirs)
	var files []string
	require.NoError(t, filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(top, path)
			files = append(files, rel)
		}
		return err
	}))
	assert.Equal(t, []string{
		"nvidia/cuda_runtime/lib/libcudart.so.12",
		"torch/include/" + vmapHeader,
		"torch/include/torch/csrc/api/include/torch/version.h",
		"torch/lib/libc10.so", "torch/lib/libgomp-a34b3233.so.1", "torch/lib/libtorch.so", "torch/lib/libtorch_cpu.so",
		"torch/version.py",
	}, files)
	downloads := m.commands("python3 -m pip download")
	require.Len(t, downloads, 2)
	assert.Regexp(t, `--only-binary=:all: --python-version 3.11 --dest \S+ --no-deps torch==2\.5\.1$`, downloads[0])
	assert.Regexp(t, `--dest \S+ nvidia-cuda-runtime-cu12==12\.4\.127$`, downloads[1])
	require.Len(t, report.warned, 1)
	assert.Contains(t, report.warned[0], "it has the SHA-256 checksum")

	dir := res.Project.Dir
	_, err = runSetup(t, m, parts(t), Options{Dir: dir, Wheel: "2.5.1"})
	require.NoError(t, err)
	assert.Len(t, m.commands("python3 -m pip download"), 2, "it is there")
	found, err := locate(t, m, Request{Cache: &Cache{Dir: filepath.Dir(filepath.Dir(top))}})
	require.NoError(t, err)
	assert.Equal(t, l.Dir, found.Dir, "and is found among the downloads")
}

// A wheel with another checksum than the known one, or the one that is asked for, is refused.
func TestWheelChecksum(t *testing.T) {
	for name, sum := range wheelSums {
		assert.Regexp(t, `^[0-9a-f]{64}$`, sum, name)
		assert.Contains(t, name, "-cp"+strings.ReplaceAll(wheelPython, ".", "")+"-", "the wheel of another Python")
	}
	assert.Contains(t, strings.Join(slices.Collect(func(yield func(string) bool) {
		for name := range wheelSums {
			yield(name)
		}
	}), " "), "torch-"+wheelVersion+"-", "the one that set-up takes by itself is known")
	m := machine(t)
	m.withPip(t, tree{version: "2.5.1"}, cudaRuntime)
	_, err := runSetup(t, m, parts(t), Options{Wheel: "2.5.1"})
	require.ErrorContains(t, err, "and "+wheelSums["torch-2.5.1-cp311-cp311-manylinux1_x86_64.whl"]+" is required")
	_, err = runSetup(t, m, parts(t), Options{Wheel: "2.5.1", SHA256: strings.Repeat("0", 64)})
	assert.ErrorContains(t, err, "and 0000")
	left, _ := filepath.Glob(m.path("home/.cache/kelvin/libtorch/*"))
	assert.Empty(t, left, "nothing of it is kept")
}

// The names of CUDA's packages have changed: both forms of the metadata lead to the same two libraries.
func TestCUDALibrariesOfNewerWheels(t *testing.T) {
	noWheelSums(t)
	m := machine(t)
	m.withPip(t, tree{version: "2.5.1"},
		`Requires-Dist: cuda-toolkit[cublas,cudart,cupti]==13.2.2; platform_system == "Linux"`,
		`Requires-Dist: nvidia-cudnn-cu13==9.26.0.51; platform_system == "Linux"`)
	_, err := runSetup(t, m, parts(t), Options{Wheel: "2.5.1"})
	require.NoError(t, err)
	assert.Regexp(t, `--dest \S+ cuda-toolkit\[cudart,cupti\]==13\.2\.2$`, m.commands("python3 -m pip download")[1])

	m = machine(t)
	m.withPip(t, tree{version: "2.5.1"})
	_, err = runSetup(t, m, parts(t), Options{Wheel: "2.5.1"})
	assert.ErrorContains(t, err, "needs CUDA's libraries and does not say where they are")
}

func TestWheelErrors(t *testing.T) {
	m := machine(t)
	_, err := runSetup(t, m, parts(t), Options{Wheel: "2.5.1"})
	require.ErrorContains(t, err, "no Python with pip is on the PATH")
	m.withPip(t, tree{version: "2.5.1"}, cudaRuntime)
	for _, wrong := range []string{"newest", "2.5.1 evil", "2.5>=1"} {
		_, err = runSetup(t, m, parts(t), Options{Wheel: wrong})
		assert.ErrorContains(t, err, "is not a version")
	}
	_, err = runSetup(t, m, parts(t), Options{Wheel: "9.9.9"})
	assert.ErrorContains(t, err, "pip does not download torch==9.9.9")
	for _, opts := range []Options{{CUDA: true}, {NoInstall: true}, {LibTorch: "/x"}} {
		opts.Wheel = "2.5.1"
		_, err = runSetup(t, m, parts(t), opts)
		assert.ErrorContains(t, err, "does not go with --libtorch, --cuda or --no-install")
	}
}

// Where neither a package nor PyTorch's archive brings a libtorch, the Python package does.
func TestInstallFallsBackToTheWheel(t *testing.T) {
	m := machine(t)
	m.GOARCH, m.library.Arch = "arm64", "arm64"
	m.withPip(t, tree{version: "2.15.0"}, cudaRuntime)
	report := &recorder{}
	_, err := runSetup(t, m, parts(t), Options{Report: report})
	require.Error(t, err, "this pip has another version")
	assert.True(t, report.hasNote("its Python package comes next"), "%v", report.notes)
	assert.Regexp(t, `torch==2\.15\.0$`, m.commands("python3 -m pip download")[0])
}
