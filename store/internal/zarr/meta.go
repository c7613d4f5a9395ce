// Package zarr reads and writes Zarr version 2 stores in the form that xarray and ArviZ give InferenceData. It reads no
// other Zarr: what another layout has is an error that names it.
package zarr

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
	"github.com/kelvin-ppl/kelvin/store/internal/content"
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

// Is says whether a folder is a Zarr store of any version.
func Is(dir string) bool {
	return slices.ContainsFunc([]string{zGroup, zMeta, "zarr.json"}, func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	})
}

// store is a directory with its metadata, by key such as posterior/theta/.zarray.
type store struct {
	dir    string
	meta   map[string]any
	batch  atomicfile.Batch
	wrote  map[string]string // metadata files that this store has written, to write only those that change
	budget *content.Budget
	chunks map[string]map[string]bool // for reading: the files of each array
}

func newStore(dir string) *store {
	return &store{dir: dir, meta: map[string]any{zGroup: groupMeta()}, wrote: map[string]string{}}
}

func groupMeta() map[string]any { return map[string]any{"zarr_format": 2} }

// file is the path of a key.
func (z *store) file(key string) string { return filepath.Join(z.dir, filepath.FromSlash(key)) }

// put writes one file of the metadata, and notes it for the consolidated one.
func (z *store) put(key string, value any) error {
	z.meta[key] = value
	text, err := content.Append(nil, value)
	if err != nil {
		return content.Failf(content.ErrLayout, "write Zarr: %s: %v", key, err)
	}
	if z.wrote[key] == string(text) {
		return nil
	}
	z.wrote[key] = string(text)
	return z.batch.Add(z.file(key), append(text, '\n'))
}

// commit puts all files that were written in their places, and then the consolidated metadata. Readers look at those
// first, so by them a store changes in one move. The last key is the digest of what is before it.
func (z *store) commit() error {
	if err := z.batch.Commit(); err != nil {
		return err
	}
	return z.consolidate()
}

func (z *store) consolidate() error {
	meta, err := content.Append(nil, z.meta)
	if err != nil {
		return content.Failf(content.ErrLayout, "write Zarr: %v", err)
	}
	text := fmt.Appendf(nil, "{\"metadata\": %s,\n\"zarr_consolidated_format\": 1,\n", meta)
	text = fmt.Appendf(text, "%q: %q\n}\n", content.DigestKey, content.Digest(content.Sum(0, text)))
	return atomicfile.Write(z.file(zMeta), text, 0o644)
}

// openStore reads the metadata: the consolidated one, else that of all folders. It looks up which files there are.
func openStore(dir string, limits content.Limits) (*store, error) {
	z := newStore(dir)
	z.meta, z.budget, z.chunks = map[string]any{}, content.NewBudget(limits), map[string]map[string]bool{}
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
		return nil, &content.ParseError{File: z.file(zMeta), Err: err}
	}
	for key, value := range z.meta {
		if _, ok := value.(map[string]any); !ok || path.Clean(key) != key || strings.HasPrefix(key, "..") || path.IsAbs(key) {
			return nil, z.fail(zMeta, "a wrong entry %q", key)
		}
	}
	root, ok := z.meta[zGroup].(map[string]any)
	if !ok {
		if _, err := os.Stat(z.file("zarr.json")); err == nil {
			return nil, &content.ParseError{File: dir, Err: content.Because(content.ErrUnsupported,
				"Zarr version 3, and Kelvin reads version 2: in Python, xarray.open_datatree(%q, "+
					`engine="zarr").to_zarr("version2.zarr", zarr_format=2) writes it`, dir)}
		}
		return nil, z.fail("", "no Zarr store: it has no %s", zGroup)
	}
	if v := root["zarr_format"]; v != 2. {
		return nil, &content.ParseError{File: z.file(zGroup),
			Err: content.Because(content.ErrUnsupported, "Zarr version %v; Kelvin reads version 2", v)}
	}
	return z, nil
}

// list notes the files of each folder and counts their bytes.
func (z *store) list() error {
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
		z.budget.Found(info.Size())
		if err := z.budget.InTime(); err != nil {
			return &content.ParseError{File: z.dir, Err: err}
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
	return content.During("read Zarr", err)
}

func (z *store) fail(key string, format string, args ...any) error {
	return &content.ParseError{File: z.file(key), Err: content.Because(content.ErrFormat, format, args...)}
}

// readMeta reads one file of the metadata.
func (z *store) readMeta(key string) (m map[string]any, err error) {
	err = z.scan(key, func(scan *content.Scanner) (err error) {
		m, err = scan.Map()
		return err
	})
	return m, err
}

func (z *store) readConsolidated() error {
	return z.scan(zMeta, func(scan *content.Scanner) error {
		found := false
		err := scan.Object(func(key string) (err error) {
			switch key {
			case "metadata":
				found = true
				z.meta, err = scan.Map()
			case content.DigestKey:
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

func (z *store) scan(key string, read func(*content.Scanner) error) error {
	f, err := os.Open(z.file(key))
	if err != nil {
		return fmt.Errorf("store: read Zarr: %w", err)
	}
	defer f.Close()
	scan := content.NewScanner(f, z.file(key))
	if err := read(scan); err != nil {
		return err
	}
	return scan.End()
}

// attrs are the attributes of a group, of the root for "".
func (z *store) attrs(group string) map[string]any {
	m, _ := z.meta[strings.TrimPrefix(group+"/"+zAttrs, "/")].(map[string]any)
	return m
}

// dims are xarray's names of the dimensions.
func (z *store) dims(array string) []string {
	attrs, _ := z.meta[array+"/"+zAttrs].(map[string]any)
	list, _ := attrs[zDims].([]any)
	var out []string
	for _, x := range list {
		name, _ := x.(string)
		out = append(out, name)
	}
	return out
}
