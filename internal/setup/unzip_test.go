package setup

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// entry is one entry of an archive.
type entry struct {
	name, text string
	mode       fs.FileMode
}

// pack makes an archive whose content is not compressed, so that a test can damage it.
func pack(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Store}
		if e.mode == 0 {
			e.mode = 0o644
		}
		h.SetMode(e.mode)
		f, err := w.CreateHeader(h)
		require.NoError(t, err)
		_, err = f.Write([]byte(e.text))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// packTree makes an archive of a fake libtorch, as PyTorch packs it.
func packTree(t *testing.T, f tree) []byte {
	t.Helper()
	dir := t.TempDir()
	plant(t, filepath.Join(dir, "libtorch"), f)
	entries := []entry{{name: "libtorch/", mode: fs.ModeDir | 0o755}, {name: "libtorch/build-version",
		text: "2.6.0+cpu\n"}}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		entries = append(entries, entry{name: filepath.ToSlash(rel), text: read(t, path), mode: 0o755})
		return err
	}))
	return pack(t, entries...)
}

// unpack writes an archive to disk and unpacks it.
func unpack(t *testing.T, data []byte) (dir string, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.zip")
	write(t, file, string(data))
	dir = t.TempDir()
	return dir, unzip(context.Background(), file, dir, nil)
}

func TestUnzip(t *testing.T) {
	dir, err := unpack(t, pack(t,
		entry{name: "libtorch/", mode: fs.ModeDir | 0o755},
		entry{name: "libtorch/lib/libx.so.1", text: "library", mode: 0o755},
		entry{name: "libtorch/lib/libx.so", text: "libx.so.1", mode: fs.ModeSymlink | 0o777},
		entry{name: "libtorch/read-only", text: "text", mode: 0o444},
	))
	require.NoError(t, err)
	assert.Equal(t, "library", read(t, filepath.Join(dir, "libtorch/lib/libx.so")))
	info, err := os.Stat(filepath.Join(dir, "libtorch/lib/libx.so.1"))
	require.NoError(t, err)
	assert.EqualValues(t, 0o700, info.Mode().Perm()&0o700)
}

func TestUnzipRefuses(t *testing.T) {
	for name, e := range map[string][]entry{
		"above":         {{name: "../outside", text: "x"}},
		"absolute":      {{name: "/outside", text: "x"}},
		"hidden above":  {{name: "a/../../outside", text: "x"}},
		"backslash":     {{name: `..\outside`, text: "x"}},
		"link above":    {{name: "a/link", text: "../../outside", mode: fs.ModeSymlink | 0o777}},
		"link absolute": {{name: "link", text: "/etc", mode: fs.ModeSymlink | 0o777}},
		"special file":  {{name: "pipe", mode: fs.ModeNamedPipe | 0o644}},
		"link then file": {{name: "a/link", text: "../../..", mode: fs.ModeSymlink | 0o777},
			{name: "a/link/outside", text: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := unpack(t, pack(t, e...))
			var damaged *damagedArchive
			require.ErrorAs(t, err, &damaged)
			assert.NoFileExists(t, filepath.Join(filepath.Dir(dir), "outside"))
		})
	}
	t.Log("seen: 8 archives that lead outside their folder are refused")
}

func TestUnzipDamaged(t *testing.T) {
	good := pack(t, entry{name: "libtorch/a", text: "the content of a"}, entry{name: "libtorch/b", text: "more"})
	for name, data := range map[string][]byte{
		"wrong checksum": bytes.Replace(good, []byte("content"), []byte("CONTENT"), 1),
		"truncated":      good[:len(good)-30],
		"empty":          {},
		"no archive":     []byte("<html>an error page</html>"),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := unpack(t, data)
			var damaged *damagedArchive
			assert.ErrorAs(t, err, &damaged)
		})
	}
}

func TestUnzipStops(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.zip")
	write(t, file, string(pack(t, entry{name: "a", text: "x"})))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	assert.ErrorIs(t, unzip(ctx, file, t.TempDir(), nil), context.Canceled)
}

func TestArchiveFor(t *testing.T) {
	for _, c := range []struct{ os, arch, build, file string }{
		{"linux", "amd64", "cpu", "libtorch-shared-with-deps-2.6.0%2Bcpu.zip"},
		{"linux", "amd64", "cu124", "libtorch-shared-with-deps-2.6.0%2Bcu124.zip"},
		{"darwin", "arm64", "cpu", "libtorch-macos-arm64-2.6.0.zip"},
	} {
		a, err := archiveFor(c.os, c.arch, c.build)
		require.NoError(t, err)
		assert.Equal(t, "https://download.pytorch.org/libtorch/"+c.build+"/"+c.file, a.url)
		_, err = url.Parse(a.url)
		assert.NoError(t, err)
	}
	for _, p := range [][3]string{{"linux", "arm64", "cpu"}, {"darwin", "amd64", "cpu"}, {"darwin", "arm64", "cu124"}} {
		_, err := archiveFor(p[0], p[1], p[2])
		require.ErrorIs(t, err, errNoArchive)
		assert.Contains(t, remedyOf(t, err), "pip install torch")
	}
}

func TestArchiveBuild(t *testing.T) {
	m := machine(t)
	j := &job{sys: m.System}
	build, err := j.archiveBuild(context.Background())
	require.NoError(t, err)
	assert.Equal(t, "cpu", build)

	j.opts.CUDA = true
	_, err = j.archiveBuild(context.Background())
	require.ErrorContains(t, err, "no NVIDIA driver answers")
	for driver, want := range map[string]string{"13.0": "cu126", "12.6": "cu126", "12.2": "cu124", "11.8": "cu118"} {
		m.programs["nvidia-smi"] = func(Command) (string, error) {
			return "| NVIDIA-SMI 550.54 Driver Version: 550.54 CUDA Version: " + driver + " |", nil
		}
		build, err = j.archiveBuild(context.Background())
		require.NoError(t, err)
		assert.Equal(t, want, build)
	}
	m.programs["nvidia-smi"] = func(Command) (string, error) { return "CUDA Version: 11.2", nil }
	_, err = j.archiveBuild(context.Background())
	assert.ErrorContains(t, err, "knows CUDA 11.2, and libtorch 2.6.0 needs 11.8 or later")
}

// redirect sends every request to a test's server.
type redirect struct{ to *server }

func (r redirect) RoundTrip(req *http.Request) (*http.Response, error) {
	target, err := url.Parse(r.to.URL)
	if err != nil {
		return nil, err
	}
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host = target.Scheme, target.Host
	return r.to.Client().Transport.RoundTrip(req)
}

// noSums makes all archives such of which no checksum is known.
func noSums(t *testing.T) {
	old := archiveSums
	archiveSums = nil
	t.Cleanup(func() { archiveSums = old })
}

// An archive with another checksum than the known one is refused and removed; one of no known checksum is a warning
// that names it.
func TestArchiveChecksums(t *testing.T) {
	for name, sum := range archiveSums {
		assert.Len(t, sum, 64, name)
	}
	a, err := archiveFor("linux", "amd64", "cpu")
	require.NoError(t, err)
	assert.Equal(t, archiveSums["2.6.0-cpu linux"], a.sum)

	m := machine(t)
	data := packTree(t, tree{})
	s := serve(t, whole(data, `"a"`))
	m.HTTP = &http.Client{Transport: redirect{s}}
	_, err = runSetup(t, m, parts(t), Options{})
	require.ErrorContains(t, err, "has the SHA-256 checksum ")
	require.ErrorContains(t, err, ", not "+a.sum+" as it should; it was removed")
	assert.NoFileExists(t, m.path("home/.cache/kelvin/downloads/2.6.0-cpu.zip"))
	assert.NoDirExists(t, m.path("home/.cache/kelvin/libtorch/2.6.0-cpu"))

	sum := sha256.Sum256(data)
	_, err = runSetup(t, m, parts(t), Options{SHA256: hex.EncodeToString(sum[:])})
	require.NoError(t, err, "the user knows better")

	m = machine(t)
	m.HTTP = &http.Client{Transport: redirect{s}}
	noSums(t)
	report := &recorder{}
	_, err = runSetup(t, m, parts(t), Options{Report: report})
	require.NoError(t, err)
	require.Len(t, report.warned, 1)
	assert.Contains(t, report.warned[0], "it has the SHA-256 checksum "+hex.EncodeToString(sum[:]))
	t.Log("seen: an archive of another SHA-256 refused")
}

func TestDownloadAndUnpackLibTorch(t *testing.T) {
	m := machine(t)
	data := packTree(t, tree{})
	noSums(t)
	s := serve(t, whole(data, `"a"`))
	m.HTTP = &http.Client{Transport: redirect{s}}
	res, err := runSetup(t, m, parts(t), Options{})
	require.NoError(t, err)
	assert.Equal(t, FromDownload, res.LibTorch.Source)
	assert.Equal(t, m.path("home/.cache/kelvin/libtorch/2.6.0-cpu"), res.LibTorch.Dir)
	assert.Equal(t, "/libtorch/cpu/libtorch-shared-with-deps-2.6.0+cpu.zip", s.requests[0].URL.Path)
	assert.NoFileExists(t, m.path("home/.cache/kelvin/downloads/2.6.0-cpu.zip"), "it has done its work")

	_, err = runSetup(t, m, parts(t), Options{})
	require.NoError(t, err)
	assert.Len(t, s.requests, 1, "the second run finds it")
}

func TestDamagedArchiveIsDownloadedAnew(t *testing.T) {
	m := machine(t)
	good := packTree(t, tree{})
	noSums(t)
	bad := bytes.Replace(good, []byte("not a real library"), []byte("not a fake library"), 1)
	foreign := pack(t, entry{name: "something/else", text: "x"})
	s := serve(t, whole(bad, `"a"`), whole(foreign, `"b"`), whole(good, `"c"`))
	m.HTTP = &http.Client{Transport: redirect{s}}

	_, err := runSetup(t, m, parts(t), Options{})
	require.ErrorContains(t, err, "is damaged and was removed")
	assert.ErrorContains(t, err, "checksum error")
	assert.Contains(t, remedyOf(t, err), "run set-up again, which downloads it anew")

	_, err = runSetup(t, m, parts(t), Options{})
	require.ErrorContains(t, err, "is not what it should be")

	_, err = runSetup(t, m, parts(t), Options{})
	require.NoError(t, err)
	found, err := filepath.Glob(m.path("home/.cache/kelvin/libtorch/*"))
	require.NoError(t, err)
	assert.Equal(t, []string{m.path("home/.cache/kelvin/libtorch/2.6.0-cpu")}, found, "nothing temporary is left")
	assert.False(t, strings.Contains(strings.Join(found, " "), temporary))
}
