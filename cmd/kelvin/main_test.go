package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/internal/setup"
)

// bare is the command on a machine that has Go and nothing else, with what it prints.
func bare(t *testing.T) (a *app, out, err *bytes.Buffer) {
	t.Helper()
	t.Setenv("GOWORK", "")
	root := t.TempDir()
	sys := setup.Host(false)
	run := sys.Run
	sys.Root = root
	sys.Getenv = func(string) string { return "" }
	sys.UserCacheDir = func() (string, error) { return filepath.Join(root, "cache"), nil }
	sys.HTTP = &http.Client{Transport: http.NewFileTransport(http.Dir(root))}
	sys.LookPath = func(name string) (string, error) {
		if name == "go" {
			return "/bin/go", nil
		}
		return "", exec.ErrNotFound
	}
	sys.Run = func(ctx context.Context, c setup.Command) (string, error) {
		if c.Name != "go" {
			return "", exec.ErrNotFound
		}
		return run(ctx, c)
	}
	out, err = &bytes.Buffer{}, &bytes.Buffer{}
	return &app{out: out, err: err, sys: sys, parts: setup.DefaultParts(sys)}, out, err
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args     string
		code     int
		out, err string
	}{
		{"", exitUsage, "", "usage:"},
		{"help", exitOK, "usage:", ""},
		{"--help", exitOK, "usage:", ""},
		{"help setup", exitOK, "", "-no-install"},
		{"setup -h", exitOK, "", "-libtorch DIR"},
		{"help nothing", exitUsage, "", `there is no command "nothing"`},
		{"version", exitOK, "gotch    v0.9.1", ""},
		{"instal", exitUsage, "",
			`there is no command "instal"; the commands are setup, doctor, compile, serve, version and help`},
		{"help compile", exitOK, "", "-into DIR"},
		{"compile -nothing", exitUsage, "", "flag provided but not defined"},
		{"setup --nothing", exitUsage, "", "flag provided but not defined"},
		{"setup here", exitUsage, "", `setup takes no argument "here"; see kelvin help setup`},
		{"doctor -json now", exitUsage, "", `doctor takes no argument "now"`},
	} {
		t.Run(c.args, func(t *testing.T) {
			a, out, err := bare(t)
			assert.Equal(t, c.code, a.run(context.Background(), strings.Fields(c.args)))
			assert.Contains(t, out.String(), c.out)
			assert.Contains(t, err.String(), c.err)
			if c.out == "" {
				assert.Empty(t, out.String())
			}
		})
	}
}

func TestSetupFails(t *testing.T) {
	a, out, err := bare(t)
	t.Chdir(t.TempDir())
	assert.Equal(t, exitFailed, a.run(context.Background(), []string{"setup"}))
	assert.Empty(t, out.String())
	assert.Contains(t, err.String(), "kelvin: ")
	assert.Contains(t, err.String(), "is not in a Go module\n  what to do: run `go mod init NAME` there")
}

func TestDoctorOnABareMachine(t *testing.T) {
	a, out, err := bare(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/user\n\ngo 1.25.0\n"), 0o644))
	t.Chdir(dir)
	assert.Equal(t, exitFailed, a.run(context.Background(), []string{"doctor"}))
	assert.Contains(t, out.String(), "set-up       absent")
	assert.Contains(t, out.String(), "what to do: run `"+setup.SetupCommand+"`")

	out.Reset()
	assert.Equal(t, exitFailed, a.run(context.Background(), []string{"doctor", "-json"}))
	var report setup.Report
	require.NoError(t, json.Unmarshal(out.Bytes(), &report), "standard output is one JSON object")
	assert.Equal(t, setup.StateAbsent, report.State)
	assert.Empty(t, err.String())
}

func TestConsole(t *testing.T) {
	var b bytes.Buffer
	c := newConsole(&b, false)
	c.Start("working")
	c.Progress("file", 10<<20, 100<<20)
	c.Progress("file", 11<<20, 100<<20)
	c.Progress("file", 5, -1)
	c.Note("a note")
	c.Warn("a warning")
	c.Done("libtorch 1.13.1 (CPU, OpenBLAS) in /usr", 1234*time.Millisecond)
	c.clear()
	assert.Equal(t, "working …\nfile: 10 % of 100 MB\nnote: a note\nwarning: a warning\n"+
		"libtorch 1.13.1 (CPU, OpenBLAS) in /usr "+strings.Repeat(".", width-39)+"    1.2 s\n", b.String())

	b.Reset()
	c = newConsole(&b, true)
	c.Start("working")
	c.Done("done", time.Second)
	assert.Equal(t, "working …\r"+strings.Repeat(" ", 9)+"\rdone "+strings.Repeat(".", width-4)+"    1.0 s\n", b.String(),
		"the finished line replaces the other")

	b.Reset()
	c = newConsole(&b, true)
	c.Progress("libtorch", 50<<20, 100<<20)
	c.Progress("libtorch", 100<<20, 100<<20)
	c.Done("libtorch", time.Second)
	assert.Contains(t, b.String(), "libtorch")
	assert.Contains(t, b.String(), "105/105 MB")
}
