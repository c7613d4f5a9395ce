package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/internal/ccompiler"
	"github.com/kelvin-ppl/kelvin/internal/gotch"
)

// tree says what a fake libtorch looks like. The zero value is complete, version 2.6.0, for the CPU.
type tree struct {
	version   string // default 2.6.0
	header    string // where the version macros are, below include
	lib       string // default lib
	noHeaders bool
	noVmap    bool
	noC10     bool
	cuda      bool
}

// plant makes a fake libtorch in dir.
func plant(t *testing.T, dir string, f tree) {
	t.Helper()
	if f.version == "" {
		f.version = "2.6.0"
	}
	if f.lib == "" {
		f.lib = "lib"
	}
	if f.header == "" {
		f.header = "torch/csrc/api/include/torch/version.h"
	}
	_, n, ok := parseVersion(f.version)
	require.True(t, ok)
	patch := f.version[strings.LastIndex(f.version, ".")+1:]
	if !f.noHeaders {
		write(t, filepath.Join(dir, "include", f.header), fmt.Sprintf(
			"#pragma once\n#define TORCH_VERSION_MAJOR %d\n#define TORCH_VERSION_MINOR %d\n#define TORCH_VERSION_PATCH %s\n",
			n.major, n.minor, patch))
		if !f.noVmap {
			write(t, filepath.Join(dir, "include", vmapHeader), "#pragma once\n")
		}
	}
	libs := []string{"torch", "torch_cpu"}
	if !f.noC10 {
		libs = append(libs, "c10")
	}
	if f.cuda {
		libs = append(libs, "torch_cuda", "c10_cuda")
	}
	for _, name := range libs {
		write(t, filepath.Join(dir, f.lib, "lib"+name+".so"), "not a real library\n")
	}
}

// write makes a file and the folders above it.
func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

// read returns the content of a file.
func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// fakeMachine is a machine with programs that answer what a test says. The command go is the real one.
type fakeMachine struct {
	*System
	env      map[string]string
	programs map[string]func(c Command) (string, error)
	library  Library

	mu  sync.Mutex
	ran []string // the commands that were run, without go's
}

// machine returns a Linux machine with Go, a C++ compiler that works, and nothing else.
func machine(t *testing.T) *fakeMachine {
	t.Helper()
	t.Setenv("GOWORK", "")
	root := t.TempDir()
	m := &fakeMachine{
		env:     map[string]string{},
		library: Library{CXX11ABI: true, ABIKnown: true, Arch: "amd64"},
	}
	works := func(Command) (string, error) { return "g++ (Fake) 13.1.0\nmore\n", nil }
	m.programs = map[string]func(Command) (string, error){"g++": works, "gcc": works}
	m.System = &System{
		GOOS: "linux", GOARCH: "amd64", Root: root,
		Getenv:       func(name string) string { return m.env[name] },
		Geteuid:      func() int { return 0 },
		UserCacheDir: func() (string, error) { return filepath.Join(root, "home/.cache"), nil },
		HTTP:         &http.Client{Transport: noNetwork{}},
		ReadLibrary:  func(string) (Library, error) { return m.library, nil },
		Backoff:      time.Millisecond,
		CCompiler: func() (ccompiler.Compiler, error) {
			return ccompiler.Compiler{Path: "/bin/fakecc", Version: "fakecc 9.1"}, nil
		},
		KeepsC: func() (string, error) { return "/cache/native", nil },
	}
	m.LookPath = func(name string) (string, error) {
		if m.programs[name] != nil || name == "go" {
			return "/bin/" + name, nil
		}
		return "", exec.ErrNotFound
	}
	m.Run = func(ctx context.Context, c Command) (string, error) {
		if c.Name == "go" {
			return runCommand(ctx, c)
		}
		m.mu.Lock()
		m.ran = append(m.ran, c.String())
		m.mu.Unlock()
		answer := m.programs[c.Name]
		if answer == nil {
			return "", exec.ErrNotFound
		}
		return answer(c)
	}
	return m
}

// commands returns what was run that begins with a word.
func (m *fakeMachine) commands(word string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []string
	for _, c := range m.ran {
		if strings.HasPrefix(c, word) {
			found = append(found, c)
		}
	}
	return found
}

// withSystemTorch plants a libtorch where Debian's package puts it.
func (m *fakeMachine) withSystemTorch(t *testing.T, f tree) *fakeMachine {
	t.Helper()
	f.lib = "lib/x86_64-linux-gnu"
	plant(t, m.path("usr"), f)
	return m
}

// noNetwork fails every request.
type noNetwork struct{}

func (noNetwork) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("a test asked for %s", r.URL)
}

// fakeParts are the slow parts of set-up, counted, each of which may be made to fail.
type fakeParts struct {
	Parts
	adapted, searched, built atomic.Int64
}

// parts returns parts that succeed at once.
func parts(t *testing.T) *fakeParts {
	t.Helper()
	p := &fakeParts{}
	p.Parts = Parts{
		Fingerprint: func() string { return "fingerprint-1" },
		Source:      func(context.Context, string) (string, error) { return "/nowhere/gotch", nil },
		Adapt: func(_, dst string, _ gotch.Flags) error {
			p.adapted.Add(1)
			return os.WriteFile(filepath.Join(dst, "go.mod"), []byte("module "+gotch.Module+"\n\ngo 1.24\n"), 0o644)
		},
		Missing: func(context.Context, string, string, gotch.Flags) ([]string, error) {
			p.searched.Add(1)
			return []string{"atg_zeta", "atg_alpha"}, nil
		},
		Build: func(context.Context, BuildOrder) (bool, error) {
			p.built.Add(1)
			return true, nil
		},
	}
	return p
}

// newModule makes a module in a new folder.
func newModule(t *testing.T, gomod string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	write(t, filepath.Join(dir, "go.mod"), gomod)
	return dir
}

// plainModule does not require Kelvin.
const plainModule = "module example.com/user\n\ngo 1.25.0\n"

// recorder is a Reporter that remembers.
type recorder struct {
	mu            sync.Mutex
	started, done []string
	notes, warned []string
	bytes         []int64
	log           bytes.Buffer
}

func (r *recorder) add(to *[]string, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*to = append(*to, text)
}

func (r *recorder) Start(text string)                 { r.add(&r.started, text) }
func (r *recorder) Done(text string, _ time.Duration) { r.add(&r.done, text) }
func (r *recorder) Note(text string)                  { r.add(&r.notes, text) }
func (r *recorder) Warn(text string)                  { r.add(&r.warned, text) }
func (r *recorder) Log() io.Writer                    { return &r.log }
func (r *recorder) Progress(_ string, done, _ int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes = append(r.bytes, done)
}

// hasNote says whether a note contains text.
func (r *recorder) hasNote(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.notes, func(n string) bool { return strings.Contains(n, text) })
}

// remedyOf returns what an error says to do.
func remedyOf(t *testing.T, err error) string {
	t.Helper()
	var e *Error
	require.True(t, errors.As(err, &e), "%v says nothing about what to do", err)
	return e.Remedy
}
