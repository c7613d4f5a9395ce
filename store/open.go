package store

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Format names a format of stored draws.
type Format string

// The formats that [Open] reads.
const (
	CSV  Format = "csv"
	JSON Format = "json"
	Zarr Format = "zarr"
)

// Open reads stored draws of any format: a CSV file, several of them or a pattern such as out_*.csv, one file per chain; a
// directory of CSV files, read in the order of their numbers; a JSON file; a Zarr store. The content decides, not
// the ending. A path that is not there is an [io/fs.ErrNotExist]; one that is of no format is an [ErrFormat].
func Open(paths ...string) (*Inference, error) {
	files, err := expand(paths)
	if err != nil {
		return nil, err
	}
	format, err := Detect(files[0])
	if err != nil {
		return nil, err
	}
	switch {
	case format == CSV:
		return ReadCSV(files...)
	case len(files) > 1:
		return nil, failf(ErrRange, "open %s: a %s holds all chains, so %d of them are several runs; only CSV files are read together", files[0], format, len(files))
	case format == JSON:
		return ReadJSON(files[0])
	}
	return ReadZarr(files[0])
}

// Detect says of which format a file or directory is, by its content.
func Detect(path string) (Format, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", during("open", err)
	}
	if info.IsDir() {
		if isZarr(path) {
			return Zarr, nil
		}
		_, err := expand([]string{path})
		return CSV, err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", during("open", err)
	}
	defer f.Close()
	head := make([]byte, 4096)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return "", during("open", err)
	}
	if n == 0 {
		return "", &ParseError{File: path, Err: because(ErrFormat, "the file is empty")}
	}
	text := bytes.TrimLeft(head[:n], "\ufeff \t\r\n")
	switch {
	case bytes.HasPrefix(text, []byte("{")):
		return JSON, nil
	case bytes.HasPrefix(text, []byte("\x89HDF")) || bytes.HasPrefix(text, []byte("CDF")):
		return "", &ParseError{File: path, Err: because(ErrUnsupported, "a NetCDF file; in ArviZ, to_json or to_zarr writes what Kelvin reads")}
	case bytes.IndexByte(text, 0) >= 0:
		return "", &ParseError{File: path, Err: because(ErrFormat, "neither CSV nor JSON: it has a zero byte")}
	}
	return CSV, nil
}

// expand puts files in the place of patterns and of directories that hold CSV files.
func expand(paths []string) ([]string, error) {
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(path, "*?[") {
			found, e := filepath.Glob(path)
			if e != nil {
				return nil, failf(ErrRange, "open %s: %v", path, e)
			}
			if len(found) == 0 {
				return nil, failf(fs.ErrNotExist, "open %s: no file fits", path)
			}
			slices.SortFunc(found, naturalOrder)
			files = append(files, found...)
			continue
		}
		if err != nil {
			return nil, during("open", err)
		}
		if info.IsDir() && !isZarr(path) {
			found, _ := filepath.Glob(filepath.Join(escaped(path), "*.csv"))
			if len(found) == 0 {
				return nil, &ParseError{File: path, Err: because(ErrFormat, "neither a Zarr store nor a directory with CSV files")}
			}
			slices.SortFunc(found, naturalOrder)
			files = append(files, found...)
			continue
		}
		files = append(files, path)
	}
	if len(files) == 0 {
		return nil, failf(ErrRange, "open: no file was named")
	}
	return files, nil
}

func isZarr(dir string) bool {
	return slices.ContainsFunc([]string{zGroup, zMeta, "zarr.json"}, func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	})
}

// escaped is a path in which a pattern finds no special character.
func escaped(path string) string {
	if filepath.Separator == '\\' {
		return path
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
