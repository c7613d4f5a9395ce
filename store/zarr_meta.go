package store

import (
	"errors"
	"fmt"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// The files of a Zarr store that are not chunks.
const (
	zGroup = ".zgroup"
	zAttrs = ".zattrs"
	zArray = ".zarray"
	zMeta  = ".zmetadata"
	// zDims is xarray's attribute with the names of an array's dimensions.
	zDims = "_ARRAY_DIMENSIONS"
)

// zarrStore is a directory with its metadata, by key such as posterior/theta/.zarray.
type zarrStore struct {
	dir  string
	meta map[string]any
}

func newZarrStore(dir string) *zarrStore {
	return &zarrStore{dir: dir, meta: map[string]any{zGroup: zarrGroup()}}
}

func zarrGroup() map[string]any { return map[string]any{"zarr_format": 2} }

// file is the path of a key.
func (z *zarrStore) file(key string) string { return filepath.Join(z.dir, filepath.FromSlash(key)) }

// put writes one file of the metadata, and notes it for the consolidated one.
func (z *zarrStore) put(key string, value any) error {
	z.meta[key] = value
	text, err := appendJSON(nil, value)
	if err != nil {
		return failf(ErrLayout, "write Zarr: %s: %v", key, err)
	}
	return z.move(key, append(text, '\n'))
}

// move writes a file in one move. It does not wait for the disk, as [atomicfile.Replace] does: a file of a store may be one of
// thousands. The folder is made if it is not there.
func (z *zarrStore) move(key string, text []byte) error {
	name := z.file(key)
	err := os.WriteFile(name+".new", text, 0o644)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(name), 0o755); err == nil {
			err = os.WriteFile(name+".new", text, 0o644)
		}
	}
	if err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// consolidate writes .zmetadata, which is what readers look at first: by it a store changes in one move.
func (z *zarrStore) consolidate() error {
	text, err := appendJSON(nil, map[string]any{"zarr_consolidated_format": 1, "metadata": z.meta})
	if err != nil {
		return failf(ErrLayout, "write Zarr: %v", err)
	}
	return atomicfile.Replace(z.file(zMeta), func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}

// openZarrStore reads the metadata: the consolidated one, else that of all folders.
func openZarrStore(dir string) (*zarrStore, error) {
	z := &zarrStore{dir: dir, meta: map[string]any{}}
	all, err := z.readMeta(zMeta)
	switch {
	case err == nil:
		meta, ok := all["metadata"].(map[string]any)
		if !ok {
			return nil, z.fail(zMeta, "it has no metadata")
		}
		z.meta = meta
	case errors.Is(err, fs.ErrNotExist):
		if err := z.walk(); err != nil {
			return nil, err
		}
	default:
		return nil, err
	}
	for key, value := range z.meta {
		if _, ok := value.(map[string]any); !ok || path.Clean(key) != key || strings.HasPrefix(key, "..") || path.IsAbs(key) {
			return nil, z.fail(zMeta, "a wrong entry %q", key)
		}
	}
	root, ok := z.meta[zGroup].(map[string]any)
	if !ok {
		if _, err := os.Stat(z.file("zarr.json")); err == nil {
			return nil, &ParseError{File: dir, Err: because(ErrUnsupported, "Zarr version 3; Kelvin reads version 2 (zarr_format=2 in xarray's to_zarr)")}
		}
		return nil, z.fail("", "no Zarr store: it has no %s", zGroup)
	}
	if v := root["zarr_format"]; v != 2. {
		return nil, &ParseError{File: z.file(zGroup), Err: because(ErrUnsupported, "Zarr version %v; Kelvin reads version 2", v)}
	}
	return z, nil
}

func (z *zarrStore) fail(key string, format string, args ...any) error {
	return &ParseError{File: z.file(key), Err: because(ErrFormat, format, args...)}
}

// readMeta reads one file of the metadata.
func (z *zarrStore) readMeta(key string) (map[string]any, error) {
	f, err := os.Open(z.file(key))
	if err != nil {
		return nil, fmt.Errorf("store: read Zarr: %w", err)
	}
	defer f.Close()
	scan := newJSONScanner(f, z.file(key))
	v, err := jsonMap(scan)
	if err == nil && scan.peek() != 0 {
		err = scan.fail("there is more after the end")
	}
	return v, err
}

func (z *zarrStore) walk() error {
	return filepath.WalkDir(z.dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("store: read Zarr: %w", err)
		}
		if base := entry.Name(); entry.IsDir() || (base != zGroup && base != zAttrs && base != zArray) {
			return nil
		}
		key, err := filepath.Rel(z.dir, name)
		if err != nil {
			return fmt.Errorf("store: read Zarr: %w", err)
		}
		key = filepath.ToSlash(key)
		z.meta[key], err = z.readMeta(key)
		return err
	})
}

// cutPath is name for the key group/name/.zarray.
func cutPath(key, group string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(key, group+"/")
	if !ok {
		return "", false
	}
	name, ok = strings.CutSuffix(rest, "/"+zArray)
	return name, ok && !strings.Contains(name, "/")
}

// textType is numpy's type of texts of up to n characters.
func textType(n int) string { return fmt.Sprintf("<U%d", n) }
