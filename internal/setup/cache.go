package setup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// temporary marks the names of folders that are not complete. What has it, and no set-up at work on it, is a leftover.
const temporary = ".tmp-"

// Cache is Kelvin's folder for what belongs to the user and not to one module: the adapted gotch, downloads, a lock.
type Cache struct{ Dir string }

// CacheDir returns the cache folder: flag if it is not empty, else $KELVIN_CACHE, else kelvin in
// the user's cache folder.
func CacheDir(sys *System, flag string) (string, error) {
	dir := flag
	if dir == "" {
		dir = sys.Getenv("KELVIN_CACHE")
	}
	if dir == "" {
		user, err := sys.UserCacheDir()
		if err != nil {
			return "", fail(err, "name one with --cache DIR or $KELVIN_CACHE", "the user has no cache folder")
		}
		dir = filepath.Join(user, "kelvin")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fail(err, "name another with --cache DIR or $KELVIN_CACHE", "the cache folder %s", dir)
	}
	return abs, nil
}

// OpenCache returns the cache folder, makes it if need be, and checks that it can be written to.
func OpenCache(sys *System, flag string) (*Cache, error) {
	dir, err := CacheDir(sys, flag)
	if err != nil {
		return nil, err
	}
	c := &Cache{Dir: dir}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, c.unwritable(err)
	}
	f, err := os.CreateTemp(dir, "writable"+temporary+"*")
	if err != nil {
		return nil, c.unwritable(err)
	}
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		return nil, c.unwritable(err)
	}
	return c, nil
}

// unwritable explains that the cache cannot be written to.
func (c *Cache) unwritable(err error) error {
	return fail(err, "make the folder writable, or name another with --cache DIR or $KELVIN_CACHE",
		"the cache folder %s cannot be written to", c.Dir)
}

// Lock waits until no other set-up uses the cache, and returns what ends the use. The lock goes with the process that
// holds it, however that ends.
func (c *Cache) Lock(ctx context.Context, report Reporter) (release func(), err error) {
	for told := false; ; {
		lock, err := atomicfile.TakeLock(filepath.Join(c.Dir, "lock"))
		if err == nil {
			return func() { _ = lock.Release() }, nil
		}
		var held *atomicfile.HeldError
		if !errors.As(err, &held) {
			return nil, c.unwritable(err)
		}
		if !told {
			report.Note(fmt.Sprintf("another set-up (%s) is at work on %s: waiting until it ends", held.Holder(), c.Dir))
			told = true
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("stopped while waiting for another set-up: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// clean removes what an interrupted set-up left behind. It needs the lock.
func (c *Cache) clean() error {
	for _, pattern := range []string{"*", "gotch/*", "libtorch/*"} {
		found, _ := filepath.Glob(filepath.Join(c.Dir, filepath.FromSlash(pattern)))
		for _, path := range found {
			if !strings.Contains(filepath.Base(path), temporary) {
				continue
			}
			if err := removeAll(path); err != nil {
				return fail(err, "remove it by hand", "%s is left over from an interrupted set-up and cannot be removed", path)
			}
		}
	}
	return nil
}

// scratch makes an empty temporary folder for something that is to become dst.
func (c *Cache) scratch(dst string) (string, error) {
	dir := dst + temporary + fmt.Sprint(os.Getpid())
	if err := removeAll(dir); err != nil {
		return "", c.unwritable(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", c.unwritable(err)
	}
	return dir, nil
}

// hash returns a short name for a value.
func hash(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // only plain structs come here
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// now is the time that stamps carry.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }
