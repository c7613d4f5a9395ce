package setup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCacheDir(t *testing.T) {
	m := machine(t)
	dir, err := CacheDir(m.System, "")
	require.NoError(t, err)
	assert.Equal(t, m.path("home/.cache/kelvin"), dir)

	m.env["KELVIN_CACHE"] = "/var/cache/kelvin"
	dir, err = CacheDir(m.System, "")
	require.NoError(t, err)
	assert.Equal(t, "/var/cache/kelvin", dir)

	dir, err = CacheDir(m.System, "/flag")
	require.NoError(t, err)
	assert.Equal(t, "/flag", dir, "the flag comes before the environment")

	delete(m.env, "KELVIN_CACHE")
	m.UserCacheDir = func() (string, error) { return "", errors.New("neither $XDG_CACHE_HOME nor $HOME are defined") }
	_, err = CacheDir(m.System, "")
	require.ErrorContains(t, err, "$HOME")
	assert.Contains(t, remedyOf(t, err), "--cache DIR")
}

// TestCacheUnwritable puts a file where the folder should be, which even root cannot write below.
func TestCacheUnwritable(t *testing.T) {
	m := machine(t)
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	dir := filepath.Join(file, "kelvin")
	_, err := OpenCache(m.System, dir)
	require.ErrorContains(t, err, "the cache folder "+dir+" cannot be written to")
	assert.Contains(t, remedyOf(t, err), "--cache DIR")

	require.NoError(t, os.Remove(file))
	_, err = OpenCache(m.System, dir)
	assert.NoError(t, err, "the next run finds the folder writable")
}

func TestCacheReadOnly(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o555))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
	_, err := OpenCache(machine(t).System, dir)
	assert.ErrorContains(t, err, "cannot be written to")
}

func TestCleanRemovesLeftovers(t *testing.T) {
	c := &Cache{Dir: t.TempDir()}
	keep := []string{"gotch/v0.9.1-a/go.mod", "libtorch/2.6.0-cpu/lib/x", "downloads/2.6.0-cpu.zip.part", "lock"}
	drop := []string{"gotch/v0.9.1-a" + temporary + "17/go.mod", "libtorch/2.6.0-cpu" + temporary + "17/x", "writable" +
		temporary + "1"}
	for _, name := range append(keep, drop...) {
		write(t, filepath.Join(c.Dir, name), "")
	}
	require.NoError(t, os.Chmod(filepath.Join(c.Dir, "gotch/v0.9.1-a"+temporary+"17"), 0o555))
	require.NoError(t, c.clean())
	for _, name := range keep {
		assert.FileExists(t, filepath.Join(c.Dir, name))
	}
	for _, name := range drop {
		assert.NoFileExists(t, filepath.Join(c.Dir, name))
	}
}

func TestLockIsExclusive(t *testing.T) {
	c := &Cache{Dir: t.TempDir()}
	release, err := c.Lock(context.Background(), silent{})
	require.NoError(t, err)

	// A second one waits, says so, and can be stopped.
	report := &recorder{}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = c.Lock(ctx, report)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Len(t, report.notes, 1)
	assert.Regexp(t, `^another set-up \(process \d+\) is at work on .*: waiting until it ends$`, report.notes[0])

	// It gets the lock when the first one ends.
	got := make(chan error)
	go func() {
		again, err := c.Lock(context.Background(), report)
		if err == nil {
			again()
		}
		got <- err
	}()
	require.Eventually(t, func() bool {
		report.mu.Lock()
		defer report.mu.Unlock()
		return len(report.notes) == 2
	}, 10*time.Second, time.Millisecond)
	release()
	assert.NoError(t, <-got)
}
