package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/internal/ccompiler"
)

// System is the machine as set-up sees it. Tests replace its fields.
type System struct {
	GOOS, GOARCH string
	Root         string // where the system's own folders are; "/" on a real machine
	Getenv       func(name string) string
	LookPath     func(name string) (string, error)
	Run          func(ctx context.Context, c Command) (stdout string, err error)
	Geteuid      func() int
	Terminal     bool // a person can type a password
	UserCacheDir func() (string, error)
	HTTP         *http.Client
	ReadLibrary  func(path string) (Library, error)
	Backoff      time.Duration                      // before the second try of a download; doubles with each further one
	CCompiler    func() (ccompiler.Compiler, error) // that of compiled gradients
	KeepsC       func() (dir string, err error)     // where compiled gradients are kept, and why they cannot be
}

// Host returns the machine that the program runs on. Terminal says whether sudo may ask the user for a password.
func Host(terminal bool) *System {
	return &System{
		GOOS:         runtime.GOOS,
		GOARCH:       runtime.GOARCH,
		Root:         "/",
		Getenv:       os.Getenv,
		LookPath:     exec.LookPath,
		Run:          runCommand,
		Geteuid:      os.Geteuid,
		Terminal:     terminal,
		UserCacheDir: os.UserCacheDir,
		HTTP:         http.DefaultClient,
		ReadLibrary:  ReadELF,
		Backoff:      time.Second,
		CCompiler:    ccompiler.Find,
		KeepsC:       ccompiler.Keeps,
	}
}

// path returns the place of one of the system's own files.
func (s *System) path(elem ...string) string {
	return filepath.Join(append([]string{s.Root}, elem...)...)
}

// has says whether a program is on the PATH.
func (s *System) has(program string) bool {
	_, err := s.LookPath(program)
	return err == nil
}

// Command is one run of another program.
type Command struct {
	Name     string
	Args     []string
	Dir      string    // empty means the current folder
	Env      []string  // added to the environment
	Log      io.Writer // receives what the program prints; nil means nobody
	Terminal bool      // the program may ask the user something
}

// String returns the command as a user would type it.
func (c Command) String() string {
	return strings.Join(append([]string{c.Name}, c.Args...), " ")
}

// CommandError is a program that failed.
type CommandError struct {
	Command string
	Err     error
	Output  string // the last lines that it printed
}

// Error returns the command, how it ended and the last lines that it printed.
func (e *CommandError) Error() string {
	if e.Output == "" {
		return fmt.Sprintf("`%s` failed: %v", e.Command, e.Err)
	}
	return fmt.Sprintf("`%s` failed: %v\n%s", e.Command, e.Err, e.Output)
}

// Unwrap returns how the program ended.
func (e *CommandError) Unwrap() error { return e.Err }

// outputLines is how many lines of a failed command are shown.
const outputLines = 40

// runCommand runs c and returns what it wrote to its standard output.
func runCommand(ctx context.Context, c Command) (string, error) {
	cmd := exec.CommandContext(ctx, c.Name, c.Args...)
	cmd.Dir = c.Dir
	cmd.Env = append(os.Environ(), c.Env...)
	if c.Dir != "" {
		cmd.Env = append(cmd.Env, "PWD="+c.Dir)
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if c.Terminal {
		cmd.Stdin = os.Stdin
	}
	var mu sync.Mutex
	var stdout, all bytes.Buffer
	out := []io.Writer{&stdout, &all}
	both := []io.Writer{&all}
	if c.Log != nil {
		out, both = append(out, c.Log), append(both, c.Log)
	}
	cmd.Stdout = &locked{mu: &mu, w: io.MultiWriter(out...)}
	cmd.Stderr = &locked{mu: &mu, w: io.MultiWriter(both...)}
	err := cmd.Run()
	if err == nil {
		return stdout.String(), nil
	}
	if ctx.Err() != nil {
		return stdout.String(), fmt.Errorf("`%s` was stopped: %w", c, ctx.Err())
	}
	return stdout.String(), &CommandError{Command: c.String(), Err: err, Output: tail(all.String(), outputLines)}
}

// locked is a writer that two goroutines can share.
type locked struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// tail returns the last n lines of text.
func tail(text string, n int) string {
	text = strings.TrimRight(text, "\n")
	lines := strings.Split(text, "\n")
	if len(lines) <= n {
		return text
	}
	return fmt.Sprintf("(%d lines before)\n%s", len(lines)-n, strings.Join(lines[len(lines)-n:], "\n"))
}

// isNotFound says whether a command could not be started because there is no such program.
func isNotFound(err error) bool { return errors.Is(err, exec.ErrNotFound) }

// exists says whether there is a file or folder at path.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// reason returns what the system says about a failed file operation, without the path.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// writeFile writes a file so that an interruption leaves either the old content or the new one.
func writeFile(path string, data []byte, mode fs.FileMode) error {
	return atomicfile.ReplaceMode(path, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// removeAll removes a folder even when folders inside it are read-only.
func removeAll(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o755)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// sameFile says whether two paths name the same file or folder.
func sameFile(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}
