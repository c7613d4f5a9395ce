package store

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Open reads stored draws of any format: a CSV file, several of them or a pattern such as out_*.csv, one file per
// chain; a directory of CSV files, read in the order of their numbers; a JSON file; a Zarr store. The content decides,
// not the ending. A path that is not there is an [io/fs.ErrNotExist]; one that is of no format is an [ErrFormat].
//
// CSV files may be Kelvin's or CmdStan's: with or without draws of the warm-up (which go into Warmup), thinned, with
// comments anywhere, columns in any order. Chains may differ in length; columns may not. An incomplete last line, which
// a killed run leaves, is dropped and mentioned in Notes. What [WriteCSV] has put beside the files comes back too. A
// table of all chains, chain,draw,lp,mu,"w[0,1]", as earlier versions wrote it, is read as well.
//
// JSON may have NaN, Infinity and -Infinity, as Python's; null is NaN, true and false are 1 and 0.
//
// Zarr arrays may be plain or packed with zlib, gzip, zstd, lz4 or blosc, which is what zarr-python writes, in any
// division into chunks. A missing chunk has the fill value, as the format wants it, and Notes say so; in draws that
// Kelvin wrote it is an [ErrFormat]. A store that is being written is read as it was at the last flush.
//
// Other programs' names of statistics become those of package draws: lp__ is lp, diverging is divergent. What has no
// place in an [Inference] is left out and mentioned in Notes: groups that it does not have, variables of text,
// statistics with more than one number for a draw. A wrong file is a [ParseError] with the place; files that do not fit
// together are an [ErrLayout].
func Open(paths ...string) (*Inference, error) { return Limits{}.Open(paths...) }

// Open is [Open] with these limits.
func (l Limits) Open(paths ...string) (*Inference, error) {
	files, err := expand(paths)
	if err != nil {
		return nil, err
	}
	format, err := detect(files[0])
	if err != nil {
		return nil, err
	}
	switch {
	case format == formatCSV:
		return l.openCSV(files)
	case len(files) > 1:
		return nil, failf(ErrRange,
			"open %s: a %s holds all chains, so %d of them are several runs; only CSV files are read together",
			files[0], format, len(files))
	case format == formatJSON:
		return l.openJSON(files[0])
	}
	c, err := readZarr(files[0], l)
	if err != nil {
		return nil, err
	}
	coords := c.Coords
	c.Coords = nil
	inf, err := decode(c, files[0], fileName)
	if err != nil {
		return nil, err
	}
	for _, dims := range inf.Dims {
		for _, dim := range dims {
			if labels, ok := coords[dim]; ok && !isCounting(labels) {
				inf.Coords[dim] = labels
			}
		}
	}
	return inf, nil
}

// Read reads JSON, or the CSV file of one chain.
func Read(r io.Reader) (*Inference, error) { return Limits{}.Read(r) }

// Read is [Read] with these limits.
func (l Limits) Read(r io.Reader) (*Inference, error) {
	if r == nil {
		return nil, failf(ErrRange, "read: the reader is nil")
	}
	in := bufio.NewReaderSize(r, 4096)
	head, err := in.Peek(4096)
	if err != nil && err != io.EOF {
		return nil, during("read", err)
	}
	if text := bytes.TrimLeft(head, blank); len(text) > 0 && text[0] == '{' {
		return l.readJSON(in, "JSON")
	}
	run, err := readCSV(in, "CSV", l)
	if err != nil {
		return nil, err
	}
	return &Inference{Posterior: run.Posterior, Warmup: run.Warmup, Attrs: run.Attrs, Notes: run.Notes}, nil
}

func (l Limits) openJSON(path string) (*Inference, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("store: read JSON: %w", err)
	}
	defer f.Close()
	return l.readJSON(f, path)
}

func (l Limits) readJSON(r io.Reader, file string) (*Inference, error) {
	c, err := readInferenceData(r, file, l)
	if err != nil {
		return nil, err
	}
	coords := c.Coords
	inf, err := decode(c, file, anyName)
	if err != nil {
		return nil, err
	}
	inf.Coords = coords
	if inf.Posterior == nil { // these stand beside CSV files, whose dimensions have no group of their own here
		for name, dims := range c.Dims {
			if _, ok := inf.Dims[name]; !ok {
				inf.Dims[name] = dims
			}
		}
	}
	return inf, nil
}

// openCSV reads the files of a run, and what [WriteCSV] has put beside them.
func (l Limits) openCSV(files []string) (*Inference, error) {
	run, err := readCSVFiles(l, files...)
	if err != nil {
		return nil, err
	}
	inf := &Inference{Posterior: run.Posterior, Warmup: run.Warmup, Attrs: run.Attrs, Notes: run.Notes}
	base := csvBase(files)
	if base == "" {
		return inf, nil
	}
	beside, err := l.openJSON(base + besideCSV)
	if errors.Is(err, fs.ErrNotExist) {
		return inf, nil
	}
	if err != nil {
		return nil, err
	}
	of, _ := beside.Attrs[digestsKey].([]any)
	if len(of) != len(run.Digests) || slices.ContainsFunc(run.Digests, func(d string) bool {
		return !slices.Contains(of, any(d))
	}) {
		inf.Notes = append(inf.Notes, base+besideCSV+" was left out: it belongs to other CSV files, or to more of them; "+
			"name all chains of a run to have its log likelihoods")
		return inf, nil
	}
	delete(beside.Attrs, digestsKey)
	for key, value := range inf.Attrs {
		if _, ok := beside.Attrs[key]; !ok {
			beside.Attrs[key] = value
		}
	}
	beside.Posterior, beside.Warmup = inf.Posterior, inf.Warmup
	beside.Notes = append(inf.Notes, beside.Notes...)
	return beside, nil
}

const (
	// besideCSV ends the name of the file with the groups that CSV has no place for.
	besideCSV = ".groups.json"
	// digestsKey is the attribute with the digests of the CSV files that the groups belong to.
	digestsKey = "kelvin_csv"
)

var csvName = regexp.MustCompile(`_[0-9]+\.csv$`)

// csvBase is base if the files are base_1.csv and so on, else empty.
func csvBase(files []string) string {
	base := csvName.ReplaceAllString(files[0], "")
	for _, file := range files {
		if !csvName.MatchString(file) || csvName.ReplaceAllString(file, "") != base {
			return ""
		}
	}
	return base
}

// The formats.
const (
	formatCSV  = "csv"
	formatJSON = "json"
	formatZarr = "zarr"
)

// blank may stand before the content: a byte order mark, spaces, ends of lines.
const blank = "\ufeff \t\r\n"

// detect says of which format a file or directory is, by its content.
func detect(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", during("open", err)
	}
	if info.IsDir() {
		return formatZarr, nil // expand puts files in the place of other directories
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
	wrong := func(kind error, text string) error {
		return &ParseError{File: path, Err: because(kind, "%s", text)}
	}
	text := bytes.TrimLeft(head[:n], blank)
	switch {
	case n == 0:
		return "", wrong(ErrFormat, "the file is empty")
	case bytes.HasPrefix(text, []byte("{")):
		return formatJSON, nil
	case bytes.HasPrefix(text, []byte("\x89HDF")) || bytes.HasPrefix(text, []byte("CDF")):
		return "", wrong(ErrUnsupported, "a NetCDF file: in Python, "+
			`arviz.from_netcdf("FILE").to_json("draws.json") writes what Kelvin reads`)
	case bytes.IndexByte(text, 0) >= 0:
		return "", wrong(ErrFormat, "neither CSV nor JSON: it has a zero byte")
	}
	return formatCSV, nil
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
				return nil, &ParseError{File: path,
					Err: because(ErrFormat, "neither a Zarr store nor a directory with CSV files")}
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

// escaped is a path in which a pattern finds no special character.
func escaped(path string) string {
	if filepath.Separator == '\\' {
		return path
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// naturalOrder sorts chain_2 before chain_10.
func naturalOrder(a, b string) int {
	for a != "" && b != "" {
		x, y := leading(a), leading(b)
		if x != "" && y != "" {
			p, q := strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if c := cmp.Or(cmp.Compare(len(p), len(q)), cmp.Compare(p, q)); c != 0 {
				return c
			}
			a, b = a[len(x):], b[len(y):]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// leading are the digits at the start.
func leading(s string) string {
	if i := strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsDigit(r) }); i >= 0 {
		return s[:i]
	}
	return s
}
