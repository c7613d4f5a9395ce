package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/kelvin-ppl/kelvin/internal/gotch"
)

// The states of a set-up, as Report.State names them.
const (
	StateReady      = "ready"      // Kelvin works here
	StateIncomplete = "incomplete" // set-up has run, but something has changed or does not work
	StateAbsent     = "absent"     // set-up has not run here
)

// Report is what doctor finds. Its JSON form keeps its field names; fields may be added.
type Report struct {
	State        string     `json:"state"`
	Problems     []Problem  `json:"problems"`
	Notes        []string   `json:"notes"` // what a user should know, and nothing is wrong
	Kelvin       string     `json:"kelvin_version"`
	Gotch        string     `json:"gotch_version"`
	Go           string     `json:"go_version"`
	Compiler     string     `json:"compiler"`
	OS           string     `json:"os"`
	Arch         string     `json:"arch"`
	Module       string     `json:"module"`
	ModuleDir    string     `json:"module_dir"`
	GoWork       string     `json:"go_work"`
	CacheDir     string     `json:"cache_dir"`
	GotchCopy    string     `json:"gotch_copy"`
	SetUpAt      *time.Time `json:"set_up_at"` // nil when set-up has not run
	LibTorch     *LibTorch  `json:"libtorch"`  // the one in use, else the one that set-up would use
	Runtime      *Runtime   `json:"runtime"`   // nil when nothing could be run
	Tiers        *Tiers     `json:"tiers"`
	MissingCount int        `json:"missing_ops_count"`
	MissingOps   []string   `json:"missing_ops"`
}

// Problem is something that is wrong, and what to do.
type Problem struct {
	Problem string `json:"problem"`
	Remedy  string `json:"remedy"`
}

// Runtime is what a program that runs libtorch says about it; Kelvin's internal/probe prints it. The ops that it
// lacks are in the report, which knows them without running anything.
type Runtime struct {
	Version     string   `json:"version"`
	CUDADevices []string `json:"cuda_devices"` // names
	// Why devices draw random numbers by many operations, which is slower than by one kernel.
	NoKernels      []string `json:"no_kernels,omitempty"`
	BLAS           string   `json:"blas"`
	Threads        int      `json:"threads"`
	InteropThreads int      `json:"interop_threads"` // 0 when not known
	ParallelInfo   string   `json:"parallel_info"`
	GradientUS     float64  `json:"gradient_us"` // one gradient, in microseconds
	Tiers          []Tier   `json:"tiers"`       // the compiled ones
}

// DoctorOptions says what to look at.
type DoctorOptions struct {
	Dir    string // folder of the module; empty means the current one
	Cache  string // cache folder, as in Options
	Kelvin string // Kelvin's version
	Report Reporter
}

// Doctor looks at a machine and a module and says whether Kelvin works there. It changes nothing. What is wrong is in
// the report.
func Doctor(ctx context.Context, sys *System, parts Parts, opts DoctorOptions) *Report {
	d := &doctor{sys: sys, parts: parts, Report: Report{
		State: StateAbsent, Problems: []Problem{}, Notes: []string{}, Kelvin: opts.Kelvin, Gotch: gotch.Version,
		OS: sys.GOOS, Arch: sys.GOARCH, MissingOps: []string{},
	}}
	report := reporterOrSilent(opts.Report)
	var err error
	if d.CacheDir, err = CacheDir(sys, opts.Cache); err != nil {
		d.problem(err)
	}
	d.findTiers()
	project, err := FindProject(ctx, sys, opts.Dir)
	if err != nil {
		d.problem(err)
		d.findLibTorch(ctx)
		return &d.Report
	}
	d.Module, d.ModuleDir, d.GoWork, d.Go = project.Module, project.Dir, project.GoWork, project.GoVersion
	if c, err := findCompiler(ctx, sys, project); err != nil {
		d.problem(err)
	} else {
		d.Compiler = c.Version
	}
	if !d.readSetUp(ctx, project) {
		if d.LibTorch == nil {
			d.findLibTorch(ctx)
		}
		return &d.Report
	}
	report.Start("asking libtorch (builds a small program the first time)")
	d.probe(ctx, project)
	if len(d.Problems) == 0 {
		d.State = StateReady
	}
	return &d.Report
}

// doctor is a report in the making.
type doctor struct {
	Report
	sys   *System
	parts Parts
}

// problem notes what is wrong.
func (d *doctor) problem(err error) {
	p := Problem{Problem: err.Error()}
	var e *Error
	if errors.As(err, &e) {
		p.Remedy = e.Remedy
		p.Problem = strings.TrimSuffix(p.Problem, "\n  what to do: "+e.Remedy)
	}
	d.Problems = append(d.Problems, p)
}

// findLibTorch tells which libtorch set-up would use.
func (d *doctor) findLibTorch(ctx context.Context) {
	l, err := Locate(ctx, d.sys, Request{Cache: &Cache{Dir: d.CacheDir}})
	if err == nil {
		d.LibTorch = l
		return
	}
	var e *Error
	if !errors.As(err, &e) {
		err = fail(err, "run set-up, which installs one: `"+SetupCommand+"`", "libtorch")
	}
	d.problem(err)
}

// readSetUp reads what set-up has left in the project. It returns false when Kelvin cannot work.
func (d *doctor) readSetUp(ctx context.Context, project *Project) bool {
	c, err := InUse(project)
	if c != nil {
		d.State, d.GotchCopy = StateIncomplete, c.Dir
	}
	if err != nil {
		d.problem(err)
		return false
	}
	dir, stamp := c.Dir, c.Stamp
	d.SetUpAt, d.MissingOps, d.MissingCount = &stamp.Made, stamp.MissingOps, len(stamp.MissingOps)
	d.LibTorch = &stamp.LibTorch
	again := "run `" + SetupCommand + "`"
	if stamp.Identity.Fingerprint != d.parts.Fingerprint() || stamp.Identity.Gotch != gotch.Version {
		d.problem(fail(nil, again, "the adapted gotch in %s was made by another version of Kelvin", dir))
	}
	l, err := use(ctx, d.sys, place{stamp.LibTorch.Dir, stamp.LibTorch.Source}, Request{})
	if err != nil {
		d.problem(fail(err, again, "the libtorch that set-up used is gone"))
		return false
	}
	d.LibTorch.BLAS = l.BLAS
	if mark, err := libraryMark(d.sys, l); err != nil || mark != stamp.Identity.Library {
		d.problem(fail(err, again, "the libtorch in %s has changed since set-up", l.Dir))
	}
	if l.BLAS == referenceBLAS {
		d.problem(fail(nil, again+", which installs OpenBLAS",
			"libtorch uses the reference BLAS, which is many times slower than OpenBLAS"))
	}
	return true
}

// probe builds and runs the program that asks libtorch itself.
func (d *doctor) probe(ctx context.Context, project *Project) {
	required, err := requiresKelvin(ctx, d.sys, project)
	if err != nil {
		d.problem(err)
		return
	}
	if !required {
		d.problem(fail(nil, "run `go get "+Kelvin+"` in "+project.Dir, "the module %s does not require Kelvin yet",
			project.Module))
		return
	}
	out, err := d.sys.Run(ctx, Command{Name: "go", Args: []string{"run", Kelvin + "/internal/probe"}, Dir: project.Dir})
	if err != nil {
		d.problem(fail(err, "run `"+SetupCommand+" -v`", "a program with libtorch does not build or run"))
		return
	}
	var r Runtime
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		d.problem(fail(err, "report this to Kelvin", "what the probe prints cannot be read"))
		return
	}
	d.nameDevices(ctx, r.CUDADevices)
	d.Runtime = &r
	d.tried(r.Tiers)
	for _, why := range r.NoKernels {
		d.Notes = append(d.Notes, why+"; they are drawn by tensor operations, which takes longer")
	}
	if d.LibTorch.CUDA && len(r.CUDADevices) == 0 {
		d.Notes = append(d.Notes, "libtorch has CUDA but sees no device, and the CPU is used; where there is a GPU, check "+
			"the driver with nvidia-smi, and CUDA_VISIBLE_DEVICES")
	}
	if want, _, _ := strings.Cut(d.LibTorch.Version, "+"); !sameSeries(want, r.Version) {
		d.problem(fail(nil, "take the other libtorch out of LD_LIBRARY_PATH", "programs load libtorch %s, not the %s of %s",
			r.Version, want, filepath.Clean(d.LibTorch.Lib)))
	}
}

// nameDevices takes the names of the devices from the driver's own program, if it knows as many. CUDA_VISIBLE_DEVICES
// may leave some out or change their order: then their numbers have to do.
func (d *doctor) nameDevices(ctx context.Context, devices []string) {
	if len(devices) == 0 || d.sys.Getenv("CUDA_VISIBLE_DEVICES") != "" || !d.sys.has("nvidia-smi") {
		return
	}
	out, err := d.sys.Run(ctx, Command{Name: "nvidia-smi", Args: []string{"--query-gpu=name", "--format=csv,noheader"}})
	names := strings.Split(strings.TrimSpace(out), "\n")
	if err != nil || len(names) != len(devices) {
		return
	}
	for i, name := range names {
		if strings.HasPrefix(devices[i], "cuda:") {
			devices[i] += " " + strings.TrimSpace(name)
		}
	}
}

// sameSeries says whether two versions agree in major and minor number. One that cannot be read agrees with all.
func sameSeries(a, b string) bool {
	_, x, okX := parseVersion(a)
	_, y, okY := parseVersion(b)
	return !okX || !okY || x == y
}

// shortList joins the first few of many names.
func shortList(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more (-v shows all)", strings.Join(names[:n], ", "), len(names)-n)
}
