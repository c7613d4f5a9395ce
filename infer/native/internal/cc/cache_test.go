package cc

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir/irtest"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/vm"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tiny is a plan whose value is a constant, which tells programs apart.
func tiny(value float64) irtest.Case {
	b := irtest.NewBuilder("tiny", 1)
	out := b.Aux(1)
	b.Loop(nil, func(k *irtest.Body) { k.Write(ir.Store, k.Num(value), out, 0) })
	return b.Finish()
}

// builds compiles a case, runs it, and checks what it gives.
func builds(t *testing.T, value float64, o Options) Info {
	t.Helper()
	c := tiny(value)
	p, info, err := Compile(c.Plan, o)
	require.NoError(t, err)
	r, err := irtest.Run(irtest.Entry{Prologue: p.Prologue, Main: p.Main, Dense: vm.Dense()}, c)
	require.NoError(t, err)
	assert.Equal(t, value, r.Aux[0][0])
	require.NoError(t, p.Close())
	require.NoError(t, p.Close())
	return info
}

// entries are the paths of the objects of a cache.
func entries(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*"+extension))
	require.NoError(t, err)
	return all
}

func needsCompiler(t *testing.T) {
	t.Helper()
	if _, err := Find(); err != nil {
		t.Skip(err)
	}
}

func TestCache(t *testing.T) {
	needsCompiler(t)
	dir := filepath.Join(t.TempDir(), "cache")
	o := Options{CacheDir: dir}
	info := builds(t, 1, o)
	assert.False(t, info.Cached)
	assert.Empty(t, info.Cache)
	assert.Greater(t, info.Lines, 10)
	assert.NotEmpty(t, info.Compiler.Version)
	assert.True(t, builds(t, 1, o).Cached)
	assert.False(t, builds(t, 2, o).Cached, "another constant is another text")
	all := entries(t, dir)
	require.Len(t, all, 2)
	for path, want := range map[string]fs.FileMode{dir: 0o700 | fs.ModeDir, all[0]: 0o600} {
		s, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, want, s.Mode())
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 2, "no temporary file stays")

	for name, spoil := range map[string]func(path string, data []byte) error{
		"one changed byte": func(path string, data []byte) error {
			data[len(data)/2] ^= 1
			return os.WriteFile(path, data, 0o600)
		},
		"a part":  func(path string, data []byte) error { return os.WriteFile(path, data[:len(data)/3], 0o600) },
		"nothing": func(path string, data []byte) error { return os.WriteFile(path, nil, 0o600) },
		"another plan's object": func(path string, _ []byte) error {
			other := all[0]
			if other == path {
				other = all[1]
			}
			data, err := os.ReadFile(other)
			if err != nil {
				return err
			}
			return os.WriteFile(path, data, 0o600)
		},
		"a file that others may write": func(path string, data []byte) error { return os.Chmod(path, 0o620) },
		"a link": func(path string, data []byte) error {
			elsewhere := filepath.Join(t.TempDir(), "object")
			if err := os.Rename(path, elsewhere); err != nil {
				return err
			}
			return os.Symlink(elsewhere, path)
		},
		"a pipe": func(path string, data []byte) error { return replaceByPipe(path) },
		"no object that loads": func(path string, data []byte) error {
			c := cache{dir}
			return c.put(strings.TrimSuffix(filepath.Base(path), extension), []byte("no object"))
		},
	} {
		path := all[0]
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, spoil(path, data), name)
		info := builds(t, 1, o)
		if info.Cached { // it was the other plan's
			info = builds(t, 2, o)
		}
		assert.False(t, info.Cached, name)
		assert.Empty(t, info.Cache, name)
		again := builds(t, 1, o).Cached && builds(t, 2, o).Cached
		assert.True(t, again, "%s: it was not mended", name)
		s, err := os.Lstat(path)
		require.NoError(t, err)
		assert.Equal(t, fs.FileMode(0o600), s.Mode(), name)
	}
}

// An object that was made on another processor is not found, whatever else is the same.
func TestCacheOfAnotherProcessor(t *testing.T) {
	needsCompiler(t)
	o := Options{CacheDir: filepath.Join(t.TempDir(), "cache")}
	this := cpu
	defer func() { cpu = this }()
	cpu = func() string { return this() + "\nflags: one more" }
	assert.False(t, builds(t, 1, o).Cached)
	assert.True(t, builds(t, 1, o).Cached)
	cpu = this
	assert.False(t, builds(t, 1, o).Cached, "the object of the other processor")
	assert.Len(t, entries(t, o.CacheDir), 2)
}

// A file of another user is not loaded, and takes no part in the folder any more.
func TestCacheOfAnotherUser(t *testing.T) {
	needsCompiler(t)
	if os.Geteuid() != 0 {
		t.Skip("only the superuser can give files away")
	}
	dir := filepath.Join(t.TempDir(), "cache")
	o := Options{CacheDir: dir}
	builds(t, 1, o)
	require.NoError(t, os.Chown(entries(t, dir)[0], 12345, 12345))
	assert.False(t, builds(t, 1, o).Cached)
	assert.True(t, builds(t, 1, o).Cached)
	require.NoError(t, os.Chown(dir, 12345, 12345))
	info := builds(t, 1, o)
	assert.False(t, info.Cached)
	assert.Contains(t, info.Cache, "belongs to user 12345")
}

// A folder that cannot serve is left alone; the plan is compiled without it, and the reason is told.
func TestCacheThatCannotServe(t *testing.T) {
	needsCompiler(t)
	base := t.TempDir()
	for name, c := range map[string]struct {
		make   func(dir string) error
		reason string
	}{
		"group-writable": {func(dir string) error { return os.Chmod(dir, 0o770) }, "others may write"},
		"a link": {func(dir string) error {
			if err := os.Rename(dir, dir+"-elsewhere"); err != nil {
				return err
			}
			return os.Symlink(dir+"-elsewhere", dir)
		}, "is no folder"},
		"a file": {func(dir string) error {
			if err := os.Remove(dir); err != nil {
				return err
			}
			return os.WriteFile(dir, nil, 0o600)
		}, "not a directory"},
	} {
		dir := filepath.Join(base, strings.ReplaceAll(name, " ", "-"))
		require.NoError(t, os.Mkdir(dir, 0o700))
		require.NoError(t, c.make(dir))
		for range 2 {
			info := builds(t, 1, Options{CacheDir: dir})
			assert.False(t, info.Cached, name)
			assert.Contains(t, info.Cache, c.reason, name)
		}
	}
	assert.Contains(t, builds(t, 1, Options{CacheDir: NoCache}).Cache, "switched off")
	assert.Contains(t, builds(t, 1, Options{CacheDir: "/proc/kelvin"}).Cache, "/proc")
}

// A folder that is full, or read-only, still serves what it has.
func TestCacheThatCannotBeWritten(t *testing.T) {
	needsCompiler(t)
	dir := filepath.Join(t.TempDir(), "cache")
	o := Options{CacheDir: dir}
	builds(t, 1, o)
	check := func(reason string) {
		assert.True(t, builds(t, 1, o).Cached)
		info := builds(t, 2, o)
		assert.False(t, info.Cached)
		assert.Contains(t, info.Cache, reason)
		assert.Len(t, entries(t, dir), 1)
	}
	sync := atomicfile.Sync
	atomicfile.Sync = func(*os.File) error { return syscall.ENOSPC }
	check("no space left")
	atomicfile.Sync = sync
	if os.Geteuid() != 0 { // who may write anywhere
		require.NoError(t, os.Chmod(dir, 0o500))
		check("permission denied")
	}
}

// What was used last stays.
func TestPrune(t *testing.T) {
	c := cache{t.TempDir()}
	for i := range 6 {
		key := fmt.Sprint("key", i)
		require.NoError(t, c.put(key, make([]byte, 1000)))
		old := time.Now().Add(time.Duration(i-10) * time.Hour)
		require.NoError(t, os.Chtimes(c.path(key), old, old))
	}
	_, err := c.get("key1") // which makes it the last one used
	require.NoError(t, err)
	names := func() (all []string) {
		for _, path := range entries(t, c.dir) {
			all = append(all, strings.TrimSuffix(filepath.Base(path), extension))
		}
		return all
	}
	c.prune(4800, 100)
	assert.Equal(t, []string{"key1", "key3", "key4", "key5"}, names()) // of a thousand bytes and a line each
	c.prune(1e6, 2)
	assert.Equal(t, []string{"key1", "key5"}, names())
	_, err = c.get("key0")
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

// Many goroutines that want one plan compile it once, and all get a program of their own.
func TestConcurrent(t *testing.T) {
	needsCompiler(t)
	o := Options{CacheDir: filepath.Join(t.TempDir(), "cache")}
	var wg sync.WaitGroup
	var mu sync.Mutex
	compiled := 0
	for range 16 {
		wg.Go(func() {
			if !builds(t, 3, o).Cached {
				mu.Lock()
				compiled++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	assert.Equal(t, 1, compiled)
}

// One program serves many threads, each with memory of its own.
func TestOneProgramManyThreads(t *testing.T) {
	needsCompiler(t)
	c := irtest.EightSchools()
	p, _, err := Compile(c.Plan, Options{CacheDir: NoCache})
	require.NoError(t, err)
	entry := irtest.Entry{Prologue: p.Prologue, Main: p.Main, Dense: vm.Dense()}
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			c := irtest.EightSchools()
			c.X[1] += float64(i) / 64
			want, err := irtest.Reference(c)
			assert.NoError(t, err)
			m := irtest.NewMemory(entry, c)
			defer m.Close()
			for range 200 {
				got, err := m.Eval(c.X, 1)
				assert.NoError(t, err)
				assert.NoError(t, irtest.Differ(got, want, 1e-12))
			}
		})
	}
	wg.Wait()
	require.NoError(t, p.Close())
}
