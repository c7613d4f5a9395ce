//go:build linux || darwin

package filelock_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/filelock"
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
	require.True(t, filelock.Try(one))
	require.False(t, filelock.Try(two))
	require.NoError(t, one.Close())
	require.True(t, filelock.Try(two))
	require.NoError(t, two.Close())
}
