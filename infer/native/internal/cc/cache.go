package cc

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/internal/ccompiler"
)

// NoCache is the value of Options.CacheDir that leaves the cache out.
const NoCache = "off"

// Limits of the cache: what was not used for longest goes first.
const (
	maxBytes   = 64 << 20
	maxEntries = 1000
)

// cache is a folder of objects. An object is code that will run, so that only what this user alone could have written
// is used: neither the folder nor a file is a link, belongs to another, or may be written by others.
type cache struct{ dir string }

// openCache makes the folder if it is not there, and checks it.
func openCache(dir string) (*cache, error) {
	if dir == NoCache {
		return nil, errors.New("it is switched off")
	}
	dir, err := ccompiler.Folder(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := ccompiler.CheckFolder(dir); err != nil {
		return nil, err
	}
	return &cache{dir}, nil
}

// key names an object by all that it depends on.
func key(text string, c Compiler) string {
	h := sha256.New()
	parts := []string{fmt.Sprint(Version), cpu(), c.Version, text, c.Path, strings.Join(c.Args, "\n")}
	for _, part := range append(parts, c.flags()...) {
		fmt.Fprintf(h, "%d\n%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// An entry is a line that names what it is, its key and the digest of the object, and then the object.
const entryFormat = "kelvin native object, key %s, SHA-256 %s\n"

// extension ends the name of an entry.
const extension = ".object"

func (c *cache) path(key string) string { return filepath.Join(c.dir, key+extension) }

// get returns an object. An error that wraps fs.ErrNotExist says that the cache has no such object. Other errors say
// why an object is not used.
func (c *cache) get(key string) ([]byte, error) {
	path := c.path(key)
	f, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	// What is checked is what was opened, whatever the name means by now.
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	if err := ccompiler.CheckOwner(path, info); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxBytes))
	if err != nil {
		return nil, err
	}
	head, object, _ := bytes.Cut(data, []byte("\n"))
	digest := sha256.Sum256(object)
	if string(head)+"\n" != fmt.Sprintf(entryFormat, key, hex.EncodeToString(digest[:])) {
		return nil, fmt.Errorf("%s is damaged or of another machine", path)
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // the time of last use, also where the file system keeps none
	return object, nil
}

// put stores an object.
func (c *cache) put(key string, object []byte) error {
	digest := sha256.Sum256(object)
	if info, err := os.Lstat(c.path(key)); err == nil && !info.Mode().IsRegular() {
		_ = os.Remove(c.path(key)) // what is no file of the cache is in its way
	}
	err := atomicfile.ReplacePrivate(c.path(key), func(w io.Writer) error {
		if _, err := fmt.Fprintf(w, entryFormat, key, hex.EncodeToString(digest[:])); err != nil {
			return err
		}
		_, err := w.Write(object)
		return err
	})
	if err == nil {
		c.prune(maxBytes, maxEntries)
	}
	return err
}

// prune removes what was not used for longest until the rest is within limits. It is no failure if it cannot.
func (c *cache) prune(bytes int64, entries int) {
	names, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}
	var all []fs.FileInfo
	for _, e := range names {
		if info, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), extension) {
			all = append(all, info)
		}
	}
	slices.SortFunc(all, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	sum := int64(0)
	for i, info := range all {
		if sum += info.Size(); sum > bytes || i >= entries {
			_ = os.Remove(filepath.Join(c.dir, info.Name()))
		}
	}
}

// building has one lock for each key, so that equal plans are compiled once.
var building sync.Map

// build compiles a text, or finds its object in the cache, and loads it.
func build(text string, o Options, info *Info) (*Program, error) {
	dir, err := openCache(o.CacheDir)
	if err == nil && cpu() == "" {
		err = errors.New("the system does not tell what processor this is")
	}
	if err != nil {
		info.Cache = err.Error()
		object, err := info.Compiler.object(text, o.Timeout)
		if err != nil {
			return nil, err
		}
		return load(object)
	}
	k := key(text, info.Compiler)
	lock, _ := building.LoadOrStore(k, new(sync.Mutex))
	lock.(*sync.Mutex).Lock()
	defer lock.(*sync.Mutex).Unlock()
	object, err := dir.get(k)
	if err == nil {
		// What does not load was made with other libraries, or damaged before its digest was taken: it is made again.
		if p, err := load(object); err == nil {
			info.Cached = true
			return p, nil
		}
	}
	if object, err = info.Compiler.object(text, o.Timeout); err != nil {
		return nil, err
	}
	p, err := load(object)
	if err != nil {
		return nil, err
	}
	if err := dir.put(k, object); err != nil {
		info.Cache = err.Error()
	}
	return p, nil
}
