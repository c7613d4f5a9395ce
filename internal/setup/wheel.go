package setup

import (
	"archive/zip"
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// wheelVersion is the libtorch that set-up takes out of PyTorch's Python package where neither the system's packages
// nor PyTorch's archive bring one.
const wheelVersion = "2.15.0"

// wheelPython is the Python whose wheel is taken. libtorch is the same in the wheels for all of them; a fixed one has a
// checksum that can be known.
const wheelPython = "3.11"

// wheelSums are the SHA-256 checksums of the wheels that Kelvin was tested with, by the names of their files.
var wheelSums = map[string]string{
	"torch-2.5.1-cp311-cp311-manylinux1_x86_64.whl": "" +
		"de5b7d6740c4b636ef4db92be922f0edc425b65ed78c5076c43c42d362a45457",
	"torch-2.15.0-cp311-cp311-manylinux_2_28_x86_64.whl": "" +
		"48c2d861134c0b5697c7602cb5ffa68f62a2989fdcd1717e593356f67996ca1e",
}

// errNoPip says that no Python here can download a wheel.
var errNoPip = errors.New("no Python with pip is on the PATH")

// wheel is the libtorch of a version out of PyTorch's Python package, for the CPU. What set-up has unpacked before is
// used. pip downloads it, from the registry that pip is set to.
func (j *job) wheel(ctx context.Context, version string) (*LibTorch, error) {
	if _, _, ok := parseVersion(version); !ok || strings.ContainsAny(version, " /=<>~!;") {
		return nil, fail(nil, "give one such as "+wheelVersion, "--wheel %s is not a version", version)
	}
	dst := filepath.Join(j.cache.Dir, "libtorch", version+"-wheel")
	if l, err := inspect(j.sys, filepath.Join(dst, "torch"), FromDownload); err == nil {
		return l, nil
	}
	python, err := j.pip(ctx)
	if err != nil {
		return nil, fail(err, "install Python with pip, or name a libtorch with --libtorch DIR",
			"libtorch %s cannot be taken out of PyTorch's Python package", version)
	}
	tmp, err := j.cache.scratch(dst)
	if err != nil {
		return nil, err
	}
	defer removeAll(tmp)
	wheels := filepath.Join(tmp, "wheels")
	j.report.Start(fmt.Sprintf("downloading the wheel of torch %s with pip (some 500 to 900 MB)", version))
	if err := j.pipDownload(ctx, python, wheels, "--no-deps", "torch=="+version); err != nil {
		return nil, err
	}
	file, err := theWheel(wheels, "torch-"+version)
	if err != nil {
		return nil, err
	}
	if err := j.checkWheel(file); err != nil {
		return nil, err
	}
	j.report.Start("unpacking libtorch")
	if err := unzip(ctx, file, tmp, j.ofTheCPU); err != nil {
		return nil, fail(err, "see that the disk has 3 GB free, or name a cache folder elsewhere with --cache DIR",
			"the wheel %s cannot be unpacked into %s", filepath.Base(file), tmp)
	}
	if err := j.addCUDALibraries(ctx, python, file, wheels, tmp); err != nil {
		return nil, err
	}
	if _, err := inspect(j.sys, filepath.Join(tmp, "torch"), FromDownload); err != nil {
		return nil, fail(err, "take another version", "the wheel %s has no libtorch that Kelvin can use", filepath.Base(file))
	}
	if err := errors.Join(removeAll(wheels), removeAll(dst)); err != nil {
		return nil, j.cache.unwritable(err)
	}
	if err := os.Rename(tmp, dst); err != nil {
		return nil, j.cache.unwritable(err)
	}
	return inspect(j.sys, filepath.Join(dst, "torch"), FromDownload)
}

// pip returns the Python that has pip.
func (j *job) pip(ctx context.Context) (string, error) {
	for _, name := range []string{"python3", "python"} {
		if !j.sys.has(name) {
			continue
		}
		if _, err := j.sys.Run(ctx, Command{Name: name, Args: []string{"-m", "pip", "--version"}}); err == nil {
			return name, nil
		}
	}
	return "", errNoPip
}

// pipDownload downloads wheels into a folder. pip compares them with the checksums of its registry.
func (j *job) pipDownload(ctx context.Context, python, dir string, what ...string) error {
	args := []string{"-m", "pip", "download", "-q", "--disable-pip-version-check", "--only-binary=:all:",
		"--python-version", wheelPython, "--dest", dir}
	_, err := j.sys.Run(ctx, Command{Name: python, Args: append(args, what...), Log: j.log()})
	if err != nil && ctx.Err() == nil {
		return fail(err, "see whether pip reaches its registry (`pip config list`) and has this version for this machine "+
			"(`pip index versions torch`)", "pip does not download %s", what[len(what)-1])
	}
	return err
}

// theWheel is the one file in a folder whose name begins with a package's name and version.
func theWheel(dir, name string) (string, error) {
	files, _ := filepath.Glob(filepath.Join(dir, name+"*.whl"))
	if len(files) != 1 {
		return "", fail(nil, "report this to Kelvin", "pip left %d wheels of %s in %s", len(files), name, dir)
	}
	return files[0], nil
}

// checkWheel compares a wheel with the checksum that the user asks for or that is known.
func (j *job) checkWheel(file string) error {
	sum, err := checksum(file)
	if err != nil {
		return err
	}
	name := filepath.Base(file)
	want := cmp.Or(j.opts.SHA256, wheelSums[name])
	switch {
	case want == "":
		j.report.Warn(fmt.Sprintf("no checksum of %s is known but its registry's; it has the SHA-256 checksum %s: require "+
			"it from now on with --sha256", name, sum))
	case !strings.EqualFold(want, sum):
		return fail(nil, "run set-up again; if you know that the file is right, give its checksum with --sha256",
			"%s has the SHA-256 checksum %s, and %s is required", name, sum, want)
	}
	return nil
}

// ofTheCPU says whether a file of PyTorch's wheel belongs to libtorch on the CPU. The libraries for CUDA are twice as
// large as all others.
func (j *job) ofTheCPU(name string) bool {
	switch {
	case name == "torch/version.py", strings.HasPrefix(name, "torch/include/"):
		return true
	case !strings.HasPrefix(name, "torch/lib/"):
		return false
	}
	file := path.Base(name)
	return j.isLibrary(file) && !slices.ContainsFunc([]string{"torch_cuda", "c10_cuda", "torch_python", "cusparse",
		"nvshmem", "nvrtc", "libshm"}, func(part string) bool { return strings.Contains(file, part) })
}

func (j *job) isLibrary(file string) bool {
	return strings.Contains(file, ".so") || strings.HasSuffix(file, ".dylib")
}

// requirement is a line of a wheel's metadata.
var requirement = regexp.MustCompile(`^Requires-Dist: ([\w.-]+)(\[[^\]]*\])?\s*\(?(==[^);\s]+)\)?`)

// addCUDALibraries adds the two libraries of CUDA that the CPU's libtorch_cpu of a CUDA build is linked with: the
// runtime and the profiler's. Nothing calls them on a machine without a GPU.
func (j *job) addCUDALibraries(ctx context.Context, python, file, wheels, dst string) error {
	if j.sys.GOOS == "darwin" {
		return nil
	}
	cpu, err := j.sys.ReadLibrary(filepath.Join(dst, "torch", "lib", j.sys.library("torch_cpu")))
	if err != nil || !slices.ContainsFunc(cpu.Needed, func(n string) bool { return strings.HasPrefix(n, "libcudart") }) {
		return err
	}
	names, err := cudaRequirements(file)
	if err != nil {
		return err
	}
	more := filepath.Join(wheels, "cuda")
	j.report.Start("downloading " + strings.Join(names, " and ") + " with pip")
	if err := j.pipDownload(ctx, python, more, names...); err != nil {
		return err
	}
	files, _ := filepath.Glob(filepath.Join(more, "*.whl"))
	for _, f := range files {
		err := unzip(ctx, f, dst, func(name string) bool {
			return strings.HasPrefix(name, "nvidia/") && path.Base(path.Dir(name)) == "lib" && j.isLibrary(path.Base(name))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// cudaRequirements are the packages with those libraries, as the metadata of PyTorch's wheel names them, with versions.
func cudaRequirements(file string) (names []string, err error) {
	r, err := zip.OpenReader(file)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for _, entry := range r.File {
		if !strings.HasSuffix(entry.Name, ".dist-info/METADATA") {
			continue
		}
		in, err := entry.Open()
		if err != nil {
			return nil, err
		}
		defer in.Close()
		for lines := bufio.NewScanner(in); lines.Scan(); {
			m := requirement.FindStringSubmatch(lines.Text())
			switch {
			case m == nil:
			case m[1] == "cuda-toolkit":
				names = append(names, "cuda-toolkit[cudart,cupti]"+m[3])
			case strings.HasPrefix(m[1], "nvidia-cuda-runtime"), strings.HasPrefix(m[1], "nvidia-cuda-cupti"):
				names = append(names, m[1]+m[3])
			}
		}
	}
	if len(names) == 0 {
		return nil, fail(nil,
			"install PyTorch with all that it requires (`pip install torch`), and name it with --libtorch DIR",
			"the wheel %s needs CUDA's libraries and does not say where they are", filepath.Base(file))
	}
	return names, nil
}
