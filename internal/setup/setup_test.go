package setup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/internal/gotch"
)

// runSetup sets up a new module on a fake machine.
func runSetup(t *testing.T, m *fakeMachine, p *fakeParts, opts Options) (*Result, error) {
	t.Helper()
	if opts.Dir == "" {
		opts.Dir = newModule(t, plainModule)
	}
	return Run(context.Background(), m.System, p.Parts, opts)
}

// copies returns what is in the cache's folder of copies.
func copies(t *testing.T, m *fakeMachine) []string {
	t.Helper()
	found, err := filepath.Glob(m.path("home/.cache/kelvin/gotch/*"))
	require.NoError(t, err)
	return found
}

func TestSetup(t *testing.T) {
	m := machine(t).withSystemTorch(t, tree{version: "1.13.0"})
	p, report := parts(t), &recorder{}
	dir := newModule(t, plainModule)
	res, err := runSetup(t, m, p, Options{Dir: dir, Report: report})
	require.NoError(t, err)
	assert.True(t, res.CopyMade)
	assert.True(t, res.GoWorkChanged)
	assert.True(t, res.Built)
	assert.False(t, res.KelvinRequired)
	assert.Equal(t, []string{"alpha", "zeta"}, res.MissingOps)
	assert.Equal(t, copies(t, m), []string{res.Copy})
	target, err := readReplacement(filepath.Join(dir, "go.work"))
	require.NoError(t, err)
	assert.Equal(t, res.Copy, target)
	require.Len(t, report.done, 5)
	assert.Contains(t, report.done[0], "g++ (Fake) 13.1.0")
	assert.Equal(t, "libtorch 1.13.0 (CPU) in "+m.path("usr"), report.done[1])
	assert.Equal(t, "gotch v0.9.1, adapted (2 ops are not in this libtorch)", report.done[2])

	// The second run finds everything done; another module shares the copy.
	again, err := runSetup(t, m, p, Options{Dir: dir})
	require.NoError(t, err)
	assert.False(t, again.CopyMade)
	assert.False(t, again.GoWorkChanged)
	assert.Equal(t, res.MissingOps, again.MissingOps)
	other, err := runSetup(t, m, p, Options{})
	require.NoError(t, err)
	assert.Equal(t, res.Copy, other.Copy)
	assert.True(t, other.GoWorkChanged)
	assert.EqualValues(t, 1, p.adapted.Load())
	assert.EqualValues(t, 1, p.searched.Load())
}

// A module stays with the libtorch that it was set up with, until another is named or it is gone.
func TestSetupStaysWithItsLibTorch(t *testing.T) {
	m := machine(t).withSystemTorch(t, tree{version: "1.13.0"})
	p := parts(t)
	dir, named := newModule(t, plainModule), t.TempDir()
	plant(t, named, tree{version: "2.6.0"})
	_, err := runSetup(t, m, p, Options{Dir: dir, LibTorch: named})
	require.NoError(t, err)
	again, err := runSetup(t, m, p, Options{Dir: dir})
	require.NoError(t, err)
	assert.Equal(t, "2.6.0", again.LibTorch.Version)
	assert.False(t, again.GoWorkChanged)

	require.NoError(t, os.RemoveAll(named))
	gone, err := runSetup(t, m, p, Options{Dir: dir})
	require.NoError(t, err)
	assert.Equal(t, "1.13.0", gone.LibTorch.Version)
}

func TestSetupMakesACopyForEachLibTorchAndAdaptation(t *testing.T) {
	m := machine(t).withSystemTorch(t, tree{})
	p := parts(t)
	dir := newModule(t, plainModule)
	first, err := runSetup(t, m, p, Options{Dir: dir})
	require.NoError(t, err)

	p.Fingerprint = func() string { return "fingerprint-2" }
	second, err := runSetup(t, m, p, Options{Dir: dir})
	require.NoError(t, err)
	assert.NotEqual(t, first.Copy, second.Copy, "Kelvin's adaptations have changed")
	assert.True(t, second.GoWorkChanged)

	lib := m.path("usr/lib/x86_64-linux-gnu/libtorch_cpu.so")
	require.NoError(t, os.Chtimes(lib, time.Time{}, time.Now().Add(time.Hour)))
	third, err := runSetup(t, m, p, Options{Dir: dir})
	require.NoError(t, err)
	assert.NotEqual(t, second.Copy, third.Copy, "libtorch was upgraded in its place")

	own := t.TempDir()
	plant(t, own, tree{})
	fourth, err := runSetup(t, m, p, Options{Dir: dir, LibTorch: own})
	require.NoError(t, err)
	assert.NotEqual(t, third.Copy, fourth.Copy, "another libtorch")
	assert.Len(t, copies(t, m), 4)
}

// TestChangedAnchor: gotch's source is not what the edits expect. The message comes through, nothing is left, and a
// Kelvin that fits succeeds.
func TestChangedAnchor(t *testing.T) {
	m := machine(t).withSystemTorch(t, tree{})
	p := parts(t)
	good := p.Adapt
	p.Adapt = func(_, dst string, _ gotch.Flags) error {
		write(t, filepath.Join(dst, "go.mod"), "half a copy")
		return errors.New("ts/tensor.go: the anchor of the edit \"release\" was found 0 times, not once")
	}
	dir := newModule(t, plainModule)
	_, err := runSetup(t, m, p, Options{Dir: dir})
	require.ErrorContains(t, err, "gotch v0.9.1 cannot be adapted")
	assert.ErrorContains(t, err, "ts/tensor.go")
	assert.ErrorContains(t, err, "\"release\"")
	assert.NotEmpty(t, remedyOf(t, err))
	assert.Empty(t, copies(t, m))
	assert.NoFileExists(t, filepath.Join(dir, "go.work"))

	p.Adapt = good
	_, err = runSetup(t, m, p, Options{Dir: dir})
	assert.NoError(t, err)
}

// TestChangedAnchorForReal runs the real adaptations on a source that is not gotch's.
func TestChangedAnchorForReal(t *testing.T) {
	m := machine(t).withSystemTorch(t, tree{})
	p := parts(t)
	src := t.TempDir()
	write(t, filepath.Join(src, "go.mod"), "module "+gotch.Module+"\n\ngo 1.20\n")
	write(t, filepath.Join(src, "ts/tensor.go"), "package ts\n")
	p.Source = func(context.Context, string) (string, error) { return src, nil }
	p.Adapt = gotch.Adapt
	_, err := runSetup(t, m, p, Options{})
	require.ErrorContains(t, err, "gotch v0.9.1 cannot be adapted")
	assert.Empty(t, copies(t, m))
}

// TestInterrupted stops set-up in every phase, as a kill does: nothing is tidied up. The next run recovers.
func TestInterrupted(t *testing.T) {
	m := machine(t).withSystemTorch(t, tree{})
	dir := newModule(t, plainModule)
	ctx, cancel := context.WithCancel(context.Background())
	p := parts(t)
	p.Missing = func(ctx context.Context, _, _ string, _ gotch.Flags) ([]string, error) {
		cancel()
		return nil, ctx.Err()
	}
	_, err := Run(ctx, m.System, p.Parts, Options{Dir: dir})
	require.ErrorIs(t, err, context.Canceled)
	assert.NoFileExists(t, filepath.Join(dir, "go.work"))

	// What a kill leaves: temporary folders, and a copy whose stamp was never written.
	cache := m.path("home/.cache/kelvin")
	write(t, filepath.Join(cache, "gotch/v0.9.1-x"+temporary+"99/go.mod"), "half")
	write(t, filepath.Join(cache, "libtorch/2.6.0-cpu"+temporary+"99/lib/x"), "half")
	res, err := runSetup(t, m, parts(t), Options{Dir: dir})
	require.NoError(t, err)
	assert.Equal(t, []string{res.Copy}, copies(t, m))

	for _, damage := range []func(){
		func() { require.NoError(t, os.Remove(filepath.Join(res.Copy, stampName))) },
		func() { write(t, filepath.Join(res.Copy, stampName), "{\"identity\": {") },
		func() { require.NoError(t, os.Remove(filepath.Join(res.Copy, "go.mod"))) },
		func() { require.NoError(t, os.RemoveAll(res.Copy)) },
	} {
		damage()
		p := parts(t)
		again, err := runSetup(t, m, p, Options{Dir: dir})
		require.NoError(t, err)
		assert.Equal(t, res.Copy, again.Copy)
		assert.True(t, again.CopyMade)
		assert.EqualValues(t, 1, p.adapted.Load())
	}

	// A build that was stopped is done by the next run.
	p = parts(t)
	build := p.Build
	p.Build = func(context.Context, BuildOrder) (bool, error) { return false, errors.New("killed") }
	_, err = runSetup(t, m, p, Options{Dir: dir})
	require.ErrorContains(t, err, "killed")
	p.Build = build
	_, err = runSetup(t, m, p, Options{Dir: dir})
	assert.NoError(t, err)
}

// TestTwoAtOnce starts two set-ups of two modules. The second waits, says so, and finds the copy made.
func TestTwoAtOnce(t *testing.T) {
	m := machine(t).withSystemTorch(t, tree{})
	p := parts(t)
	atWork, goOn := make(chan struct{}), make(chan struct{})
	adapt := p.Adapt
	var once sync.Once
	p.Adapt = func(src, dst string, flags gotch.Flags) error {
		once.Do(func() { close(atWork) })
		<-goOn
		return adapt(src, dst, flags)
	}
	dirs := []string{newModule(t, plainModule), newModule(t, plainModule)}
	reports := []*recorder{{}, {}}
	results, errs := make([]*Result, 2), make([]error, 2)
	var wg sync.WaitGroup
	start := func(i int) {
		wg.Go(func() {
			results[i], errs[i] = Run(context.Background(), m.System, p.Parts, Options{Dir: dirs[i], Report: reports[i]})
		})
	}
	start(0)
	<-atWork
	start(1)
	require.Eventually(t, func() bool { return reports[1].hasNote("another set-up") }, 10*time.Second, time.Millisecond)
	close(goOn)
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	assert.EqualValues(t, 1, p.adapted.Load())
	assert.True(t, results[0].CopyMade)
	assert.False(t, results[1].CopyMade)
	assert.Equal(t, results[0].Copy, results[1].Copy)
}

func TestSetupWithAnUnwritableCache(t *testing.T) {
	m := machine(t).withSystemTorch(t, tree{})
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	_, err := runSetup(t, m, parts(t), Options{Cache: filepath.Join(file, "kelvin")})
	require.ErrorContains(t, err, "cannot be written to")
	assert.Contains(t, remedyOf(t, err), "--cache DIR")
	_, err = runSetup(t, m, parts(t), Options{Cache: t.TempDir()})
	assert.NoError(t, err, "as the message says")
}

func TestSetupWithATooOldLibTorch(t *testing.T) {
	m := machine(t)
	old := t.TempDir()
	plant(t, old, tree{version: "1.12.1"})
	m.env["LIBTORCH"] = old
	_, err := runSetup(t, m, parts(t), Options{})
	require.ErrorContains(t, err, "$LIBTORCH cannot be used")
	assert.ErrorContains(t, err, "it is libtorch 1.12.1, and Kelvin needs 1.13 or later")
	assert.Contains(t, remedyOf(t, err), "unset it")

	delete(m.env, "LIBTORCH")
	m.withSystemTorch(t, tree{})
	_, err = runSetup(t, m, parts(t), Options{})
	assert.NoError(t, err)
}

func TestSetupWithALibTorchThatDoesNotCompile(t *testing.T) {
	m := machine(t).withSystemTorch(t, tree{})
	p := parts(t)
	good := p.Missing
	p.Missing = func(context.Context, string, string, gotch.Flags) ([]string, error) {
		return nil, errors.New("Tensor.h:1:1: error: 'at' does not name a type")
	}
	_, err := runSetup(t, m, p, Options{})
	require.ErrorContains(t, err, "gotch does not compile against libtorch 2.6.0 in "+m.path("usr"))
	assert.ErrorContains(t, err, "does not name a type")
	assert.NotEmpty(t, remedyOf(t, err))
	assert.Empty(t, copies(t, m))
	p.Missing = good
	_, err = runSetup(t, m, p, Options{})
	assert.NoError(t, err)
}

func TestCopyWithoutAModuleFile(t *testing.T) {
	m := machine(t).withSystemTorch(t, tree{})
	p := parts(t)
	p.Adapt = func(_, dst string, _ gotch.Flags) error {
		return os.WriteFile(filepath.Join(dst, "go.mod"), []byte("module example.com/other\n"), 0o644)
	}
	_, err := runSetup(t, m, p, Options{})
	assert.ErrorContains(t, err, `its module path is "example.com/other"`)
}
