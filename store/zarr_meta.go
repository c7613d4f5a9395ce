package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// The files of a store that are not chunks.
const (
	zGroup = ".zgroup"
	zAttrs = ".zattrs"
	zArray = ".zarray"
	zMeta  = ".zmetadata"
	// zDims is xarray's attribute with the names of an array's dimensions.
	zDims = "_ARRAY_DIMENSIONS"
)

// isZarr says whether a folder is a Zarr store of any version.
func isZarr(dir string) bool {
	return slices.ContainsFunc([]string{zGroup, zMeta, "zarr.json"}, func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	})
}

// zarrStore is a directory with its metadata, by key such as posterior/theta/.zarray.
type zarrStore struct {
	dir    string
	meta   map[string]any
	batch  atomicfile.Batch
	wrote  map[string]string // metadata files that this store has written, to write only those that change
	budget *readBudget
	chunks map[string]map[string]bool // for reading: the files of each array
}

func newZarrStore(dir string) *zarrStore {
	return &zarrStore{dir: dir, meta: map[string]any{zGroup: groupMeta()}, wrote: map[string]string{}}
}

func groupMeta() map[string]any { return map[string]any{"zarr_format": 2} }

// file is the path of a key.
func (z *zarrStore) file(key string) string { return filepath.Join(z.dir, filepath.FromSlash(key)) }

// put writes one file of the metadata, and notes it for the consolidated one.
func (z *zarrStore) put(key string, value any) error {
	z.meta[key] = value
	text, err := appendJSON(nil, value)
	if err != nil {
		return failf(ErrLayout, "write Zarr: %s: %v", key, err)
	}
	if z.wrote[key] == string(text) {
		return nil
	}
	z.wrote[key] = string(text)
	return z.batch.Add(z.file(key), append(text, '\n'))
}

// commit puts all files that were written in their places, and then the consolidated metadata. Readers look at those
// first, so by them a store changes in one move. The last key is the digest of what is before it.
func (z *zarrStore) commit() error {
	if err := z.batch.Commit(); err != nil {
		return err
	}
	return z.consolidate()
}

func (z *zarrStore) consolidate() error {
	meta, err := appendJSON(nil, z.meta)
	if err != nil {
		return failf(ErrLayout, "write Zarr: %v", err)
	}
	text := fmt.Appendf(nil, "{\"metadata\": %s,\n\"zarr_consolidated_format\": 1,\n", meta)
	text = fmt.Appendf(text, "%q: %q\n}\n", digestKey, digestText(addSum(0, text)))
	return atomicfile.Write(z.file(zMeta), text, 0o644)
}

// openZarr reads the metadata: the consolidated one, else that of all folders. It looks up which files there are.
func openZarr(dir string, limits Limits) (*zarrStore, error) {
	z := newZarrStore(dir)
	z.meta, z.budget, z.chunks = map[string]any{}, newBudget(limits), map[string]map[string]bool{}
	// The metadata come first: a writer at work puts chunks in their places before the metadata that tell of them.
	err := z.readConsolidated()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := z.list(); err != nil {
		return nil, err
	}
	if err != nil {
		for array, files := range z.chunks {
			for _, base := range []string{zGroup, zAttrs, zArray} {
				if !files[base] {
					continue
				}
				key := path.Join(array, base)
				if z.meta[key], err = z.readMeta(key); err != nil {
					return nil, err
				}
			}
		}
	}
	if err := z.budget.Named(len(z.meta)); err != nil {
		return nil, &ParseError{File: z.file(zMeta), Err: err}
	}
	for key, value := range z.meta {
		if _, ok := value.(map[string]any); !ok || path.Clean(key) != key || strings.HasPrefix(key, "..") || path.IsAbs(key) {
			return nil, z.fail(zMeta, "a wrong entry %q", key)
		}
	}
	root, ok := z.meta[zGroup].(map[string]any)
	if !ok {
		if _, err := os.Stat(z.file("zarr.json")); err == nil {
			return nil, &ParseError{File: dir, Err: because(ErrUnsupported,
				"Zarr version 3, and Kelvin reads version 2: in Python, xarray.open_datatree(%q, "+
					`engine="zarr").to_zarr("version2.zarr", zarr_format=2) writes it`, dir)}
		}
		return nil, z.fail("", "no Zarr store: it has no %s", zGroup)
	}
	if v := root["zarr_format"]; v != 2. {
		return nil, &ParseError{File: z.file(zGroup),
			Err: because(ErrUnsupported, "Zarr version %v; Kelvin reads version 2", v)}
	}
	return z, nil
}

// list notes the files of each folder and counts their bytes.
func (z *zarrStore) list() error {
	err := fs.WalkDir(os.DirFS(z.dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := os.Stat(z.file(name)) // follows a link
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a writer at work has moved it
		}
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		z.budget.Found(int(info.Size()))
		if err := z.budget.InTime(); err != nil {
			return &ParseError{File: z.dir, Err: err}
		}
		// A chunk may lie in folders of its own: theta/0/3 belongs to theta.
		for dir, base := path.Dir(name), path.Base(name); ; dir, base = path.Dir(dir), path.Base(dir)+"/"+base {
			if z.chunks[dir] == nil {
				z.chunks[dir] = map[string]bool{}
			}
			z.chunks[dir][base] = true
			if dir == "." || strings.HasPrefix(path.Base(name), ".") {
				return nil
			}
		}
	})
	return during("read Zarr", err)
}

func (z *zarrStore) fail(key string, format string, args ...any) error {
	return &ParseError{File: z.file(key), Err: because(ErrFormat, format, args...)}
}

// readMeta reads one file of the metadata.
func (z *zarrStore) readMeta(key string) (m map[string]any, err error) {
	err = z.scan(key, func(scan *jsonScanner) (err error) {
		m, err = scan.Map()
		return err
	})
	return m, err
}

func (z *zarrStore) readConsolidated() error {
	return z.scan(zMeta, func(scan *jsonScanner) error {
		found := false
		err := scan.Object(func(key string) (err error) {
			switch key {
			case "metadata":
				found = true
				z.meta, err = scan.Map()
			case digestKey:
				err = scan.Digest()
			default:
				_, err = scan.Value(0)
			}
			return err
		})
		if err == nil && !found {
			err = z.fail(zMeta, "it has no metadata")
		}
		return err
	})
}

func (z *zarrStore) scan(key string, read func(*jsonScanner) error) error {
	f, err := os.Open(z.file(key))
	if err != nil {
		return fmt.Errorf("store: read Zarr: %w", err)
	}
	defer f.Close()
	scan := newJSONScanner(f, z.file(key))
	if err := read(scan); err != nil {
		return err
	}
	return scan.End()
}

// attrs are the attributes of a group, of the root for "".
func (z *zarrStore) attrs(group string) map[string]any {
	m, _ := z.meta[strings.TrimPrefix(group+"/"+zAttrs, "/")].(map[string]any)
	return m
}

// dims are xarray's names of the dimensions.
func (z *zarrStore) dims(array string) []string {
	attrs, _ := z.meta[array+"/"+zAttrs].(map[string]any)
	list, _ := attrs[zDims].([]any)
	var out []string
	for _, x := range list {
		name, _ := x.(string)
		out = append(out, name)
	}
	return out
}
