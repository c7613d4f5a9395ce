// Package killed lets a test kill the program that it tests, which its own binary runs in a child process.
package killed

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// variable, when set to a program's name and a folder, makes the test binary run that program instead of the tests.
const variable = "KELVIN_EXAMPLE_CHILD"

// Main is the TestMain of a package with programs, by name, that run in a folder.
func Main(m *testing.M, programs map[string]func(dir string) error) {
	name, dir, child := strings.Cut(os.Getenv(variable), " ")
	if !child {
		os.Exit(m.Run())
	}
	if err := programs[name](dir); err != nil {
		_, _ = os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
}

// Once starts a program in a folder, and kills it with SIGKILL as soon as it is ready for that. The test fails if it
// ends before, or is not ready within a minute.
func Once(t *testing.T, program, dir string, ready func() bool) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), variable+"="+program+" "+dir)
	require.NoError(t, child.Start())
	for deadline := time.Now().Add(time.Minute); !ready(); time.Sleep(time.Millisecond) {
		if !time.Now().Before(deadline) {
			_ = child.Process.Kill()
			_ = child.Wait()
			t.Fatalf("%s is not ready within a minute", program)
		}
	}
	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait(), "it ended before it was killed")
}
