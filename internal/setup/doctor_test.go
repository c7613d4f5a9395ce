package setup

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/internal/ccompiler"
)

// answers is what the probe prints on a fake machine.
const answers = `{"version": "2.6.0", "cuda_devices": [], "blas": "MKL", "threads": 4, "interop_threads": 2,
"parallel_info": "OpenMP 201511", "gradient_us": 98.4,
"tiers": [{"name": "native", "by": "fakecc", "gradient_us": 4.12},
{"name": "vm", "by": "avx2", "gradient_us": 9.5},
{"name": "replay", "by": "", "gradient_us": 60.7}], "missing_ops": ["alpha", "zeta"]}`

// userOfKelvin is a module that requires Kelvin, which is a folder beside it.
func userOfKelvin(t *testing.T) string {
	t.Helper()
	dir := newModule(t, plainModule+"\nrequire "+Kelvin+" v0.0.0\n\nreplace "+Kelvin+" => ./kelvin\n")
	write(t, filepath.Join(dir, "kelvin/go.mod"), "module "+Kelvin+"\n\ngo 1.25.0\n")
	return dir
}

// withProbe makes `go run` of the probe print something.
func (m *fakeMachine) withProbe(out string, err error) {
	run := m.Run
	m.Run = func(ctx context.Context, c Command) (string, error) {
		if c.String() == "go run "+Kelvin+"/internal/probe" {
			return out, err
		}
		return run(ctx, c)
	}
}

// doctorOf looks at a module on a fake machine.
func doctorOf(m *fakeMachine, p *fakeParts, dir string) *Report {
	return Doctor(context.Background(), m.System, p.Parts, DoctorOptions{Dir: dir, Kelvin: "v1.2.3"})
}

// only returns the one problem of a report.
func only(t *testing.T, r *Report) Problem {
	t.Helper()
	require.Len(t, r.Problems, 1, "%v", r.Problems)
	assert.NotEmpty(t, r.Problems[0].Remedy)
	return r.Problems[0]
}

func TestDoctorAfterSetUp(t *testing.T) {
	m := machine(t).withSystemTorch(t, tree{})
	p := parts(t)
	dir := userOfKelvin(t)
	res, err := runSetup(t, m, p, Options{Dir: dir})
	require.NoError(t, err)
	assert.True(t, res.KelvinRequired)
	m.withProbe(answers, nil)
	r := doctorOf(m, p, dir)
	assert.Equal(t, StateReady, r.State)
	assert.Empty(t, r.Problems)
	assert.Equal(t, res.Copy, r.GotchCopy)
	assert.Equal(t, 4, r.Runtime.Threads)
	assert.Equal(t, []string{"alpha", "zeta"}, r.MissingOps)

	text := r.Text(false)
	for _, want := range []string{
		"kelvin       v1.2.3, gotch v0.9.1\n",
		"libtorch     2.6.0 in " + m.path("usr") + " (the system's package)\n",
		"CUDA         no (this libtorch is for the CPU)\n",
		"BLAS         MKL\n",
		"threads      4 in an operation, 2 between operations\n",
		"tier native  4.12 µs, C by fakecc 9.1 (/bin/fakecc), kept in /cache/native\n",
		"tier vm      9.5 µs, in every program, vector instructions: avx2\n",
		"tier replay  60.7 µs, in every program, for what the others cannot compile: float32, other devices\n",
		"tier eager   98.4 µs for one value-and-gradient\n",
		"runs take    native\n",
		"missing ops  2: alpha, zeta\n",
		"set-up       ready, on ",
	} {
		assert.Contains(t, text, want)
	}
	assert.NotContains(t, text, "OpenMP")
	assert.Contains(t, r.Text(true), "OpenMP 201511")
}

// TestDoctorJSON fixes the names of the fields, on which programs rely.
func TestDoctorJSON(t *testing.T) {
	m := machine(t).withSystemTorch(t, tree{})
	p := parts(t)
	dir := userOfKelvin(t)
	_, err := runSetup(t, m, p, Options{Dir: dir})
	require.NoError(t, err)
	m.withProbe(answers, nil)
	data, err := json.Marshal(doctorOf(m, p, dir))
	require.NoError(t, err)
	var got map[string]any
	require.NoError(t, json.Unmarshal(data, &got))
	for _, name := range strings.Fields("state problems kelvin_version gotch_version go_version compiler os arch " +
		"module module_dir go_work cache_dir gotch_copy set_up_at libtorch runtime tiers missing_ops_count missing_ops") {
		assert.Contains(t, got, name)
	}
	for _, name := range strings.Fields("dir include lib link_dirs version source cuda cxx11_abi") {
		assert.Contains(t, got["libtorch"], name)
	}
	for _, name := range strings.Fields("version cuda_devices blas threads interop_threads parallel_info gradient_us " +
		"tiers") {
		assert.Contains(t, got["runtime"], name)
	}
	for _, name := range strings.Fields("default kelvin_native c_compiler no_c_compiler cache_dir not_kept") {
		assert.Contains(t, got["tiers"], name)
	}
	assert.Equal(t, []any{}, got["problems"])
}

func TestDoctorBeforeSetUp(t *testing.T) {
	m := machine(t).withSystemTorch(t, tree{})
	dir := newModule(t, plainModule)
	r := doctorOf(m, parts(t), dir)
	assert.Equal(t, StateAbsent, r.State)
	problem := only(t, r)
	assert.Equal(t, "set-up has not run here: there is no go.work", problem.Problem)
	assert.Equal(t, "run `"+SetupCommand+"` in "+dir, problem.Remedy)
	assert.Equal(t, "2.6.0", r.LibTorch.Version)
	assert.Contains(t, r.Text(false), "(the system's package; set-up would use it)")
	assert.NoDirExists(t, r.CacheDir, "doctor changes nothing")

	write(t, filepath.Join(dir, "go.work"), "go 1.25.0\n\nuse .\n")
	assert.Contains(t, only(t, doctorOf(m, parts(t), dir)).Problem, "has no replace for github.com/sugarme/gotch")
}

func TestDoctorWithNothingAtAll(t *testing.T) {
	m := machine(t)
	m.programs = map[string]func(Command) (string, error){}
	dir := t.TempDir()
	r := doctorOf(m, parts(t), dir)
	assert.Equal(t, StateAbsent, r.State)
	require.Len(t, r.Problems, 2)
	assert.Contains(t, r.Problems[0].Problem, "is not in a Go module")
	assert.Equal(t, "libtorch: no libtorch was found", r.Problems[1].Problem)
	assert.Contains(t, r.Text(false), "what to do: run `go mod init NAME` there")

	write(t, filepath.Join(dir, "go.mod"), plainModule)
	r = doctorOf(m, parts(t), dir)
	require.Len(t, r.Problems, 3)
	assert.Contains(t, r.Problems[0].Problem, "no C++ compiler")
}

func TestDoctorFindsWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		spoil   func(*testing.T, *fakeMachine, *fakeParts, *Result)
		problem string
		remedy  string
	}{
		"copy removed": {
			func(t *testing.T, _ *fakeMachine, _ *fakeParts, r *Result) { require.NoError(t, os.RemoveAll(r.Copy)) },
			"is not complete", SetupCommand,
		},
		"other adaptations": {
			func(_ *testing.T, _ *fakeMachine, p *fakeParts, _ *Result) {
				p.Fingerprint = func() string { return "other" }
			},
			"was made by another version of Kelvin", SetupCommand,
		},
		"libtorch removed": {
			func(t *testing.T, m *fakeMachine, _ *fakeParts, _ *Result) {
				require.NoError(t, os.RemoveAll(m.path("usr")))
			},
			"the libtorch that set-up used is gone", SetupCommand,
		},
		"libtorch upgraded": {
			func(t *testing.T, m *fakeMachine, _ *fakeParts, r *Result) {
				write(t, filepath.Join(r.LibTorch.Lib, "libtorch_cpu.so"), "another build\n")
			},
			"has changed since set-up", SetupCommand,
		},
		"probe does not run": {
			func(_ *testing.T, m *fakeMachine, _ *fakeParts, _ *Result) {
				m.withProbe("", errors.New("cannot load libtorch_cpu.so"))
			},
			"cannot load libtorch_cpu.so", SetupCommand + " -v",
		},
		"probe babbles": {
			func(_ *testing.T, m *fakeMachine, _ *fakeParts, _ *Result) { m.withProbe("no JSON", nil) },
			"what the probe prints cannot be read", "report",
		},
		"another libtorch is loaded": {
			func(_ *testing.T, m *fakeMachine, _ *fakeParts, _ *Result) {
				m.withProbe(strings.Replace(answers, "2.6.0", "2.1.0", 1), nil)
			},
			"programs load libtorch 2.1.0, not the 2.6.0", "LD_LIBRARY_PATH",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine(t).withSystemTorch(t, tree{})
			p := parts(t)
			dir := userOfKelvin(t)
			res, err := runSetup(t, m, p, Options{Dir: dir})
			require.NoError(t, err)
			m.withProbe(answers, nil)
			c.spoil(t, m, p, res)
			r := doctorOf(m, p, dir)
			assert.Equal(t, StateIncomplete, r.State)
			problem := only(t, r)
			assert.Contains(t, problem.Problem, c.problem)
			assert.Contains(t, problem.Remedy, c.remedy)
		})
	}
}

// A CUDA build on a machine without a GPU computes on the CPU: nothing is wrong.
func TestDoctorOnAMachineWithoutAGPU(t *testing.T) {
	m := machine(t).withSystemTorch(t, tree{cuda: true})
	p := parts(t)
	dir := userOfKelvin(t)
	_, err := runSetup(t, m, p, Options{Dir: dir})
	require.NoError(t, err)
	m.withProbe(answers, nil)
	r := doctorOf(m, p, dir)
	assert.Equal(t, StateReady, r.State)
	assert.Empty(t, r.Problems)
	require.Len(t, r.Notes, 1)
	assert.Contains(t, r.Notes[0], "libtorch has CUDA but sees no device")
	assert.Contains(t, r.Text(false), "\nnote: "+r.Notes[0])
}

func TestDoctorInAModuleWithoutKelvin(t *testing.T) {
	m := machine(t).withSystemTorch(t, tree{})
	dir := newModule(t, plainModule)
	_, err := runSetup(t, m, parts(t), Options{Dir: dir})
	require.NoError(t, err)
	r := doctorOf(m, parts(t), dir)
	assert.Equal(t, StateIncomplete, r.State)
	assert.Equal(t, "run `go get "+Kelvin+"` in "+dir, only(t, r).Remedy)
}

func TestDoctorShowsDevicesAndManyOps(t *testing.T) {
	r := &Report{
		LibTorch: &LibTorch{CUDA: true, CUDAVersion: "12.4", Source: FromPython, BLAS: openBLAS},
		Runtime:  &Runtime{CUDADevices: []string{"NVIDIA H200"}, BLAS: "libopenblasp-r0.3.21.so"},
	}
	assert.Equal(t, "yes 12.4, NVIDIA H200", r.cudaText())
	assert.Equal(t, "OpenBLAS, libopenblasp-r0.3.21.so", r.blasText())
	r.Runtime.BLAS = openBLAS
	assert.Equal(t, openBLAS, r.blasText())
	assert.Equal(t, "inside libtorch", (&Report{LibTorch: &LibTorch{}}).blasText())
	assert.Equal(t, "a, b and 2 more (-v shows all)", shortList([]string{"a", "b", "c", "d"}, 2))
}

func TestDoctorNamesDevices(t *testing.T) {
	m := machine(t).withSystemTorch(t, tree{cuda: true})
	p := parts(t)
	dir := userOfKelvin(t)
	_, err := runSetup(t, m, p, Options{Dir: dir})
	require.NoError(t, err)
	m.withProbe(strings.Replace(answers, `"cuda_devices": []`, `"cuda_devices": ["cuda:0", "cuda:1"]`, 1), nil)
	assert.Equal(t, []string{"cuda:0", "cuda:1"}, doctorOf(m, p, dir).Runtime.CUDADevices)

	m.programs["nvidia-smi"] = func(Command) (string, error) { return "NVIDIA H200\nNVIDIA H200\n", nil }
	r := doctorOf(m, p, dir)
	assert.Equal(t, []string{"cuda:0 NVIDIA H200", "cuda:1 NVIDIA H200"}, r.Runtime.CUDADevices)
	assert.Equal(t, StateReady, r.State)
	assert.Contains(t, r.Text(false), "CUDA         yes, cuda:0 NVIDIA H200, cuda:1 NVIDIA H200\n")

	m.env["CUDA_VISIBLE_DEVICES"] = "1,0"
	assert.Equal(t, []string{"cuda:0", "cuda:1"}, doctorOf(m, p, dir).Runtime.CUDADevices)

	const why = "no kernel for random numbers on device 1: cuInit: no CUDA-capable device is detected (100)"
	m.withProbe(strings.Replace(answers, `"cuda_devices": []`, `"cuda_devices": ["cuda:0", "cuda:1"], "no_kernels": ["`+
		why+`"]`, 1), nil)
	assert.Contains(t, doctorOf(m, p, dir).Notes, why+"; they are drawn by tensor operations, which takes longer")
	m.withProbe(strings.Replace(answers, `"cuda_devices": []`, `"cuda_devices": "many"`, 1), nil)
	assert.Contains(t, only(t, doctorOf(m, p, dir)).Problem, "cannot be read")
}

func TestErrorText(t *testing.T) {
	cause := errors.New("the cause\n")
	err := fail(cause, "this", "the problem in %s", "here")
	assert.Equal(t, "the problem in here: the cause\n  what to do: this", err.Error())
	assert.ErrorIs(t, err, cause)
	assert.Equal(t, "this", remedyOf(t, err))
}

// What runs take depends on the compiler, on whether it works, and on the environment.
func TestDoctorTiers(t *testing.T) {
	m := machine(t).withSystemTorch(t, tree{})
	p := parts(t)
	dir := userOfKelvin(t)
	_, err := runSetup(t, m, p, Options{Dir: dir})
	require.NoError(t, err)
	m.withProbe(answers, nil)
	m.KeepsC = func() (string, error) { return "/cache", errors.New("others may write /cache") }
	assert.Contains(t, doctorOf(m, p, dir).Text(false),
		"/fakecc), compiled anew in each process: others may write /cache\n")

	m.withProbe(strings.Replace(answers, `"by": "fakecc"`, `"reason": "native: cc: fakecc: no stdint.h"`, 1), nil)
	r := doctorOf(m, p, dir)
	assert.Contains(t, r.Text(false), "tier native  no: fakecc: no stdint.h")
	assert.Equal(t, "vm", r.Tiers.Default)
	assert.Equal(t, StateReady, r.State, "compiled C is no need")

	m.CCompiler = func() (ccompiler.Compiler, error) { return ccompiler.Compiler{}, ccompiler.ErrNoCompiler }
	r = doctorOf(m, p, newModule(t, plainModule))
	assert.Contains(t, r.Text(false), "tier native  no: no C compiler: ")
	assert.Contains(t, r.Text(false), "; it needs a C compiler (apt-get install gcc), or gradients of `kelvin compile`\n")
	assert.Contains(t, r.Text(false), "tier vm      in every program\n")
	assert.Contains(t, r.Text(false), "tier replay  in every program, for what the others cannot compile")

	m.withProbe(strings.Replace(answers, `"by": "", "gradient_us": 60.7`, `"reason": "no memory"`, 1), nil)
	assert.Contains(t, doctorOf(m, p, dir).Text(false), "tier replay  no: no memory\n")
	assert.Contains(t, r.Text(false), "runs take    vm\n")

	m.env["KELVIN_NATIVE"] = "Eager"
	assert.Contains(t, doctorOf(m, p, dir).Text(false), "runs take    eager, by KELVIN_NATIVE=Eager\n")
	m.env["KELVIN_NATIVE"] = "fast"
	assert.Equal(t, `the environment variable KELVIN_NATIVE is "fast"`, only(t, doctorOf(m, p, dir)).Problem)
}
