package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// A failure in the middle leaves the old file as it was, and nothing beside it.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	require.NoError(t, Replace(path, text("one")))
	require.Equal(t, "one", content(t, path))
	boom := errors.New("boom")
	require.ErrorIs(t, Replace(path, func(w io.Writer) error { return errors.Join(text("two")(w), boom) }), boom)
	require.Equal(t, "one", content(t, path))
	require.Equal(t, []string{"file"}, names(t, dir))
	require.NoError(t, ReplacePrivate(path, text("three")))
	require.Equal(t, "three", content(t, path))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	require.Error(t, Replace(filepath.Join(path, "no folder"), text("")))
}

// A link with the name that earlier versions wrote to, or in the place of the file, does not lead the writer elsewhere.
func TestNoLinkIsFollowed(t *testing.T) {
	dir := t.TempDir()
	victim, path := filepath.Join(dir, "victim"), filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(victim, []byte("precious"), 0o600))
	for _, name := range []string{path, path + ".new"} {
		if err := os.Symlink(victim, name); err != nil {
			t.Skip("no symbolic links here:", err)
		}
	}
	require.NoError(t, Replace(path, text("mine")))
	require.Equal(t, "precious", content(t, victim))
	require.Equal(t, "mine", content(t, path))
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.True(t, info.Mode().IsRegular())
	t.Log("seen: 2 links not followed")
}

// Both the file and its folder are waited for, in this order, and temporary names differ.
func TestSyncs(t *testing.T) {
	dir := t.TempDir()
	var synced []string
	old := Sync
	Sync = func(f *os.File) error { synced = append(synced, f.Name()); return old(f) }
	defer func() { Sync = old }()
	require.NoError(t, Replace(filepath.Join(dir, "file"), text("one")))
	require.NoError(t, Replace(filepath.Join(dir, "file"), text("two")))
	require.Len(t, synced, 4)
	require.Equal(t, []string{dir, dir}, []string{synced[1], synced[3]})
	require.NotEqual(t, synced[0], synced[2])
	require.Equal(t, dir, filepath.Dir(synced[0]))
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "store")
	fill := func(err error) func(string) error {
		return func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "a"), nil, 0o600), err)
		}
	}
	boom := errors.New("boom")
	require.ErrorIs(t, Folder(path, fill(boom)), boom)
	require.Empty(t, names(t, dir))
	require.NoError(t, Folder(path, fill(nil)))
	require.Equal(t, []string{"a"}, names(t, path))
	require.ErrorIs(t, Folder(path, fill(nil)), fs.ErrExist)
	require.Equal(t, []string{"store"}, names(t, dir))
}

// What a killed process left is removed after an hour; other files stay, and so do those of a process at work.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	long := time.Now().Add(-2 * stale)
	for name, old := range map[string]bool{
		".file.0123456789abcdef.new": true, ".file.0123456789abcde0.new": false, ".file.x123456789abcdef.new": true,
		"a.new": true,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		if old {
			require.NoError(t, os.Chtimes(filepath.Join(dir, name), long, long))
		}
	}
	require.NoError(t, Replace(filepath.Join(dir, "file"), text("")))
	require.Equal(t, []string{".file.0123456789abcde0.new", ".file.x123456789abcdef.new", "a.new", "file"}, names(t, dir))
}

// Files of a batch appear at the commit, also in folders that are not there yet; discarded ones leave nothing.
func TestBatch(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "a", "b", "two")
	var b Batch
	require.NoError(t, b.Add(one, []byte("1")))
	require.NoError(t, b.Add(two, []byte("2")))
	require.NoFileExists(t, one)
	require.NoError(t, b.Commit())
	require.Equal(t, "1", content(t, one))
	require.Equal(t, "2", content(t, two))
	require.NoError(t, b.Add(one, []byte("3")))
	b.Discard()
	require.NoError(t, b.Commit())
	require.Equal(t, "1", content(t, one))
	require.Equal(t, []string{"a", "one"}, names(t, dir))
}

// What is opened to be written in place is a regular file, and a new one takes the place of a regular file or a link
// alone. What the others are stays as it was, and the error says what it is. A stream takes what Open refuses.
func TestRegularFilesOnly(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	keep := func() {
		t.Helper()
		require.Equal(t, "precious", content(t, victim))
	}
	require.NoError(t, os.WriteFile(victim, []byte("precious"), 0o600))
	link, dangling, null := filepath.Join(dir, "link"), filepath.Join(dir, "dangling"), filepath.Join(dir, "null")
	require.NoError(t, os.Symlink(victim, link))
	require.NoError(t, os.Symlink(filepath.Join(dir, "nothing"), dangling))
	require.NoError(t, os.Symlink(os.DevNull, null))
	for path, what := range map[string]string{link: "a symbolic link", dangling: "a symbolic link", dir: "a folder",
		os.DevNull: "a device", null: "a symbolic link"} {
		for _, flag := range []int{0, os.O_TRUNC, os.O_APPEND} {
			_, err := Open(path, os.O_RDWR|os.O_CREATE|flag, 0o600)
			require.ErrorContains(t, err, path+" is "+what+", which is not written to", "flag %d", flag)
		}
	}
	keep()
	require.NoFileExists(t, filepath.Join(dir, "nothing"))
	_, err := Open(link, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	require.ErrorIs(t, err, fs.ErrExist)
	for _, path := range []string{os.DevNull, null, dir} {
		require.ErrorContains(t, Write(path, nil, 0o600), "is a ")
		require.ErrorContains(t, new(Batch).Add(path, nil), "is a ")
	}
	for path, want := range map[string]bool{os.DevNull: true, null: true, victim: false, link: false, dangling: false,
		dir: false} {
		done, err := Stream(path, text("new"))
		require.NoError(t, err)
		require.Equal(t, want, done, path)
	}
	keep()
	f, err := Open(victim, os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	keep()
	f, err = Open(victim, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Empty(t, content(t, victim))
	require.NoError(t, Write(link, []byte("mine"), 0o600))
	require.Empty(t, content(t, victim))
	t.Log("seen: links, folders and devices in the place of files not written to")
}

// A file whose name is gone, or is another one's by now, is not present.
func TestPresent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f, err := Open(path, os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, Present(f))
	require.NoError(t, os.Rename(path, path+".old"))
	require.ErrorIs(t, Present(f), fs.ErrNotExist)
	require.ErrorContains(t, Present(f), path+" was removed while it was written")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.ErrorContains(t, Present(f), path+" was replaced by another one while it was written")
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Symlink(path+".old", path))
	require.Error(t, Present(f), "a link to the file is another one too")
}
