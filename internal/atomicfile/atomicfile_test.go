package atomicfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/stretchr/testify/require"
)

// A failure in the middle leaves the old file as it was, and nothing beside it.
func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write := func(text string, err error) error {
		return atomicfile.Replace(path, func(w io.Writer) error {
			_, failed := io.WriteString(w, text)
			return errors.Join(failed, err)
		})
	}
	content := func() string {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(text)
	}
	require.NoError(t, write("one", nil))
	require.Equal(t, "one", content())
	boom := errors.New("boom")
	require.ErrorIs(t, write("two", boom), boom)
	require.Equal(t, "one", content())
	require.NoFileExists(t, path+".new")
	require.NoError(t, write("three", nil))
	require.Equal(t, "three", content())
	require.Error(t, atomicfile.Replace(filepath.Join(path, "no folder"), func(io.Writer) error { return nil }))
}
