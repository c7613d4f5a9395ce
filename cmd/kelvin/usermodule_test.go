package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/internal/ccompiler"
	"github.com/kelvin-ppl/kelvin/internal/gotch"
	"github.com/kelvin-ppl/kelvin/internal/setup"
)

// testLog is a Reporter that writes to a test's log.
type testLog struct{ t *testing.T }

func (l testLog) Start(text string)                       { l.t.Log(text) }
func (l testLog) Done(text string, took time.Duration)    { l.t.Log(text, took) }
func (l testLog) Note(text string)                        { l.t.Log("note:", text) }
func (l testLog) Warn(text string)                        { l.t.Log("warning:", text) }
func (l testLog) Progress(text string, done, total int64) {}
func (l testLog) Log() io.Writer                          { return io.Discard }

// TestUserModule does what a user does: it makes an empty module outside the checkout that requires Kelvin, sets it up
// with the libtorch and the cache of the checkout's own set-up, and runs a program there.
func TestUserModule(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this builds a program with libtorch")
	}
	ctx := context.Background()
	sys := setup.Host(false)
	checkout, err := filepath.Abs("../..")
	require.NoError(t, err)
	own, err := setup.FindProject(ctx, sys, checkout)
	require.NoError(t, err)
	used, err := setup.InUse(own)
	if err != nil {
		t.Skipf("set-up has not run in this checkout: %v", err)
	}
	t.Setenv("GOWORK", "") // the module gets a go.work of its own, also where the checkout's is named by the environment

	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	module := "module example.com/user\n\ngo " + setup.MinGo + "\n\nrequire (\n\t" + setup.Kelvin + " v0.0.0\n\t" +
		gotch.Module + " " + gotch.Version + "\n)\n\nreplace " + setup.Kelvin + " => " + checkout + "\n"
	program, err := os.ReadFile("testdata/usermodule/main.go.txt")
	require.NoError(t, err)
	for name, text := range map[string][]byte{"go.mod": []byte(module), "main.go": program} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
	opts := setup.Options{
		Dir: dir, NoInstall: true, LibTorch: used.Stamp.LibTorch.Dir,
		Cache: filepath.Dir(filepath.Dir(used.Dir)), Report: testLog{t},
	}
	res, err := setup.Run(ctx, sys, setup.DefaultParts(sys), opts)
	require.NoError(t, err)
	assert.True(t, res.KelvinRequired)
	assert.Equal(t, filepath.Join(dir, "go.work"), res.GoWork)

	cmd := exec.CommandContext(ctx, "go", "run", ".")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	// The exact standard deviation is sqrt(1/(1 - 0.1/2)) = 1.03; 16 chains of 19,900 updates know it to about 0.006.
	assert.Contains(t, string(out), "sd 1.0 1.0")

	t.Run("linked", func(t *testing.T) { linkedModule(t, dir) })

	again, err := setup.Run(ctx, sys, setup.DefaultParts(sys), opts)
	require.NoError(t, err)
	assert.False(t, again.CopyMade || again.GoWorkChanged || again.Built, "the second run finds everything done")

	report := setup.Doctor(ctx, sys, setup.DefaultParts(sys), setup.DoctorOptions{Dir: dir, Cache: opts.Cache})
	assert.Equal(t, setup.StateReady, report.State, "%v", report.Problems)
}

// linkedModule compiles the gradients of the program in a folder into it. That program then needs no compiler, and has
// the C of its models as they are now.
func linkedModule(t *testing.T, dir string) {
	ctx := context.Background()
	t.Chdir(dir)
	var messages bytes.Buffer
	a := &app{out: &messages, err: &messages, sys: setup.Host(false)}
	main, err := os.ReadFile("main.go")
	require.NoError(t, err)
	stale := filepath.Join(dir, ccompiler.Prefix+"0123456789abcdef.c")
	for path, text := range map[string]string{stale: ccompiler.Mark + "\nint stale;\n",
		filepath.Join(dir, ccompiler.GoFile): ccompiler.GoMark + "\npackage main\n\nimport \"C\"\n"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	require.Equal(t, exitOK, a.run(ctx, []string{"compile"}), messages.String())
	// With the value and without: the fused updates of SGLD need the value where a draw is.
	assert.Contains(t, messages.String(), dir+" has the C of 2 functions; the next build links them.\n")
	assert.NoFileExists(t, stale)
	after, err := os.ReadFile("main.go")
	require.NoError(t, err)
	assert.Equal(t, main, after)

	program := filepath.Join(t.TempDir(), "program")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	cmd := exec.CommandContext(ctx, program)
	empty := t.TempDir()
	cmd.Env = []string{"PATH=" + empty, "HOME=" + empty, "LD_LIBRARY_PATH=" + os.Getenv("LD_LIBRARY_PATH")}
	out, err = cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Regexp(t, `(?m)^gradient native \(.*, linked\)$`, string(out))
	assert.Contains(t, string(out), "sd 1.0 1.0")
	left, err := os.ReadDir(empty)
	require.NoError(t, err)
	assert.Empty(t, left, "nothing was compiled or kept there")

	// A program that compiles nothing, or fails, changes nothing.
	files, err := ccompiler.Files(dir)
	require.NoError(t, err)
	assert.Len(t, files, 3)
	t.Setenv("KELVIN_NATIVE", "eager")
	messages.Reset()
	assert.Equal(t, exitFailed, a.run(ctx, []string{"compile", "."}))
	assert.Contains(t, messages.String(), "the program compiled no gradient, so nothing was changed")
	t.Setenv("KELVIN_NATIVE", "nothing")
	messages.Reset()
	assert.Equal(t, exitFailed, a.run(ctx, []string{"compile", "."}))
	assert.Contains(t, messages.String(), "the program failed (exit status 1); nothing was changed")
	kept, err := ccompiler.Files(dir)
	require.NoError(t, err)
	assert.Equal(t, files, kept)
	assert.Equal(t, exitFailed, a.run(ctx, []string{"compile", "-into", "x", setup.Kelvin + "/torch"}))
	assert.Contains(t, messages.String(), "is the package torch, not a program")
}
