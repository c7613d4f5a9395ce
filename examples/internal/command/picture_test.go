package command

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A folder that is not there is made, and a picture that fails leaves none.
func TestPicture(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "folder", "a.png")
	broken := errors.New("no ink")
	require.ErrorIs(t, Picture(path, func(io.Writer) error { return broken }), broken)
	require.NoFileExists(t, path)
	require.NoError(t, Picture(path, func(w io.Writer) error { _, err := w.Write([]byte("ink")); return err }))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "ink", string(text))
	blank := func(io.Writer) error { return nil }
	require.ErrorContains(t, Picture(filepath.Join(path, "b.png"), blank), "not a directory")
}
