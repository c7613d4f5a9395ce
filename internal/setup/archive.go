package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// archiveVersion is the libtorch that set-up downloads if it finds none.
const archiveVersion = "2.6.0"

// archiveSite is where PyTorch keeps its archives.
const archiveSite = "https://download.pytorch.org/libtorch/"

// archiveSums are the SHA-256 checksums of the archives that are known, by the name of the folder that one becomes and
// the system.
var archiveSums = map[string]string{
	"2.6.0-cpu linux": "ad2901049e4d660097f1f54470d60c5afd3de1c293800fd1ae39ac3f9c7d2578",
}

// errNoArchive says that PyTorch has no archive for a platform.
var errNoArchive = errors.New("PyTorch has no archive of libtorch")

// archive is one of PyTorch's archives.
type archive struct {
	url  string
	name string // of the folder that it becomes in the cache, such as 2.6.0-cpu
	sum  string // SHA-256; empty when it is not known
}

// withSum adds the checksum, if it is known.
func (a archive) withSum(goos string) archive {
	a.sum = archiveSums[a.name+" "+goos]
	return a
}

// archiveFor returns the archive for a platform. The build is cpu, or cu and the digits of a CUDA version.
func archiveFor(goos, goarch, build string) (archive, error) {
	switch {
	case goos == "linux" && goarch == "amd64":
		return archive{
			url:  fmt.Sprintf("%s%s/libtorch-shared-with-deps-%s%%2B%s.zip", archiveSite, build, archiveVersion, build),
			name: archiveVersion + "-" + build,
		}.withSum(goos), nil
	case goos == "darwin" && goarch == "arm64" && build == "cpu":
		return archive{
			url:  fmt.Sprintf("%scpu/libtorch-macos-arm64-%s.zip", archiveSite, archiveVersion),
			name: archiveVersion + "-cpu",
		}.withSum(goos), nil
	}
	return archive{}, fail(errNoArchive,
		"install PyTorch (`pip install torch`) and run set-up again: it finds the package's libtorch",
		"libtorch cannot be downloaded for %s/%s (%s)", goos, goarch, build)
}

// archiveBuilds are the CUDA builds of archiveVersion, newest first, with the oldest CUDA that the driver must know.
// Within CUDA 12 an older driver runs a newer build.
var archiveBuilds = []struct {
	build  string
	driver numbers
}{
	{"cu126", numbers{12, 6}},
	{"cu124", numbers{12, 0}},
	{"cu118", numbers{11, 8}},
}

var driverCUDA = regexp.MustCompile(`CUDA Version:\s*(\d+\.\d+)`)

// archiveBuild returns the build of libtorch to download.
func (j *job) archiveBuild(ctx context.Context) (string, error) {
	if !j.opts.CUDA {
		return "cpu", nil
	}
	out, err := j.sys.Run(ctx, Command{Name: "nvidia-smi"})
	m := driverCUDA.FindStringSubmatch(out)
	if err != nil || m == nil {
		return "", fail(err, "install the driver, or leave --cuda out", "--cuda was given, but no NVIDIA driver answers")
	}
	_, driver, _ := parseVersion(m[1])
	for _, b := range archiveBuilds {
		if driver.atLeast(b.driver.major, b.driver.minor) {
			return b.build, nil
		}
	}
	return "", fail(nil, "update the driver, or leave --cuda out",
		"the NVIDIA driver knows CUDA %s, and libtorch %s needs 11.8 or later", m[1], archiveVersion)
}

// download gets PyTorch's archive and unpacks it into the cache.
func (j *job) download(ctx context.Context) (*LibTorch, error) {
	build, err := j.archiveBuild(ctx)
	if err != nil {
		return nil, err
	}
	a, err := archiveFor(j.sys.GOOS, j.sys.GOARCH, build)
	if err != nil {
		return nil, err
	}
	return j.installArchive(ctx, a)
}

// installArchive downloads an archive, unpacks it in a temporary folder, checks what came out, and moves
// it to its place.
func (j *job) installArchive(ctx context.Context, a archive) (*LibTorch, error) {
	file := filepath.Join(j.cache.Dir, "downloads", a.name+".zip")
	j.report.Start("downloading libtorch " + a.name)
	get := &download{
		client: j.sys.HTTP, url: a.url, file: file, sha256: cmp.Or(j.opts.SHA256, a.sum), backoff: j.sys.Backoff,
		progress: func(done, total int64) { j.report.Progress("libtorch "+a.name, done, total) },
	}
	if err := get.run(ctx); err != nil {
		return nil, err
	}
	if get.sha256 == "" {
		j.report.Warn(fmt.Sprintf("no checksum of %s is known; it has the SHA-256 checksum %s: require it from now on with "+
			"--sha256", a.url, get.sum))
	}
	dst := filepath.Join(j.cache.Dir, "libtorch", a.name)
	tmp, err := j.cache.scratch(dst)
	if err != nil {
		return nil, err
	}
	defer removeAll(tmp)
	j.report.Start("unpacking libtorch")
	if err := unzip(ctx, file, tmp, nil); err != nil {
		var damaged *damagedArchive
		if errors.As(err, &damaged) {
			_ = os.Remove(file)
			return nil, fail(err, "run set-up again, which downloads it anew", "the archive from %s is damaged and was removed",
				a.url)
		}
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, fail(err, "see that the disk has 2 GB free, or name a cache folder elsewhere with --cache DIR",
			"libtorch cannot be unpacked into %s", tmp)
	}
	top := filepath.Join(tmp, "libtorch")
	if _, err := inspect(j.sys, top, FromDownload); err != nil {
		_ = os.Remove(file)
		return nil, fail(err, "report this to Kelvin, and name another libtorch with --libtorch DIR",
			"the archive from %s is not what it should be", a.url)
	}
	if err := removeAll(dst); err != nil {
		return nil, j.cache.unwritable(err)
	}
	if err := os.Rename(top, dst); err != nil {
		return nil, j.cache.unwritable(err)
	}
	_ = os.Remove(file) // it has done its work
	return inspect(j.sys, dst, FromDownload)
}
