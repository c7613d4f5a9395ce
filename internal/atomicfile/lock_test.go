//go:build linux || darwin

package atomicfile_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/stretchr/testify/require"
)

// A second opening of the file gets no lock until the first is closed.
func TestTry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
		require.NoError(t, err)
		return f
	}
	one, two := open(), open()
	require.True(t, atomicfile.TryLock(one))
	require.False(t, atomicfile.TryLock(two))
	require.NoError(t, one.Close())
	require.True(t, atomicfile.TryLock(two))
	require.NoError(t, two.Close())
}

// held is set for the child process, which holds a lock until it is killed.
const held = "KELVIN_FILELOCK_HELD"

// The error names the process that holds the lock, and a kill frees it.
func TestTakeNamesTheHolder(t *testing.T) {
	if path := os.Getenv(held); path != "" {
		_, err := atomicfile.TakeLock(path)
		fmt.Println(err)
		time.Sleep(time.Hour)
	}
	path := filepath.Join(t.TempDir(), "lock")
	child := exec.Command(os.Args[0], "-test.run=^TestTakeNamesTheHolder$")
	child.Env = append(os.Environ(), held+"="+path)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "<nil>\n", line)

	_, err = atomicfile.TakeLock(path)
	var e *atomicfile.HeldError
	require.ErrorAs(t, err, &e)
	require.Equal(t, child.Process.Pid, e.Process)
	require.EqualError(t, err, fmt.Sprintf("%s is in use by process %d", path, child.Process.Pid))

	require.NoError(t, child.Process.Kill())
	_ = child.Wait()
	l, err := atomicfile.TakeLock(path)
	require.NoError(t, err)
	_, err = atomicfile.TakeLock(path)
	require.ErrorContains(t, err, fmt.Sprintf("is in use by process %d", os.Getpid()))
	require.NoError(t, l.Release())
	l, err = atomicfile.TakeLock(path)
	require.NoError(t, err)
	require.NoError(t, l.Release())
	require.NoError(t, (*atomicfile.Lock)(nil).Release())
}

// A link in the place of the lock file is not followed, so what it names keeps its content.
func TestTakeFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	victim, path := filepath.Join(dir, "victim"), filepath.Join(dir, "lock")
	require.NoError(t, os.WriteFile(victim, []byte("precious"), 0o600))
	require.NoError(t, os.Symlink(victim, path))
	_, err := atomicfile.TakeLock(path)
	require.Error(t, err)
	b, err := os.ReadFile(victim)
	require.NoError(t, err)
	require.Equal(t, "precious", string(b))
	t.Log("seen: a link in the place of a lock not followed")
}
