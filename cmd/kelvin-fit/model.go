package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/regression"
	"github.com/kelvin-ppl/kelvin/store"
)

// The files of the folder of a fit.
const (
	dataFile  = "data.csv"
	modelFile = "model.json"
	drawsFile = "draws.zarr"
	pageFile  = "report.html"
)

// version is that of model.json.
const version = 1

// saved is what model.json has: all that makes the model of the data anew.
type saved struct {
	Format      int               `json:"format"`
	Source      string            `json:"source"` // the file that the data came from
	SHA256      string            `json:"sha256"` // of data.csv
	Formula     string            `json:"formula"`
	Family      string            `json:"family"`
	Link        string            `json:"link,omitempty"`
	Params      map[string]string `json:"params,omitempty"`
	Priors      map[string]string `json:"priors,omitempty"`
	DropMissing bool              `json:"drop_missing,omitempty"`
	Reader      reader            `json:"reader"`
	Method      string            `json:"method"`
	Chains      int               `json:"chains,omitempty"` // 0 is the method's own, as are those below
	Warmup      int               `json:"warmup,omitempty"`
	Draws       int               `json:"draws,omitempty"`
	Seed        uint64            `json:"seed"`
	// TargetAccept is that of NUTS; 0 is its default.
	TargetAccept float64 `json:"target_accept,omitempty"`
}

// reader says how a file is read.
type reader struct {
	Factors []string            `json:"factors,omitempty"`
	Numbers []string            `json:"numbers,omitempty"`
	Levels  map[string][]string `json:"levels,omitempty"`
	Missing []string            `json:"missing,omitempty"`
	Comma   string              `json:"comma,omitempty"`
	Decimal string              `json:"decimal,omitempty"`
}

// csv is the reader of package data.
func (r reader) csv(name string) data.CSV {
	return data.CSV{Factors: r.Factors, Numbers: r.Numbers, Levels: r.Levels, Missing: r.Missing, Comma: first(r.Comma),
		Decimal: first(r.Decimal), Name: name}
}

// first is the character of a text of one.
func first(text string) rune {
	for _, r := range text {
		return r
	}
	return 0
}

// records reads the lines of a file.
func (r reader) records(raw []byte) *csv.Reader {
	records := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(raw, []byte("\ufeff"))))
	if r.Comma != "" {
		records.Comma = first(r.Comma)
	}
	return records
}

// header are the names of the columns of a file, none where it has no first line.
func (r reader) header(raw []byte) []string {
	names, err := r.records(raw).Read()
	if err != nil {
		return nil
	}
	for i, name := range names {
		names[i] = string(bytes.TrimSpace([]byte(name)))
	}
	return names
}

// digest names the content of a file.
func digest(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// formula is the regression that is saved.
func (s *saved) formula() (f regression.Formula, err error) {
	f = regression.Formula{Mean: s.Formula, Params: s.Params, DropMissing: s.DropMissing}
	if f.Family, err = regression.FamilyNamed(s.Family, s.Link); err != nil {
		return f, err
	}
	for name, text := range s.Priors {
		l, numbers, err := parseLaw(text)
		if err != nil {
			return f, fmt.Errorf("the prior of %s: %w", name, err)
		}
		if f.Priors == nil {
			f.Priors = regression.Priors{}
		}
		f.Priors[name] = l.make(numbers)
	}
	return f, nil
}

// table reads the columns of the formula. Where the file lacks one all are read, so that the error can name the nearest.
func (s *saved) table(f regression.Formula, raw []byte, path string) (*data.Table, error) {
	columns, err := f.Columns()
	if err != nil {
		return nil, err
	}
	of, names := s.Reader.csv(path), s.Reader.header(raw)
	lacks := func(name string) bool { return !slices.Contains(names, name) }
	if !slices.ContainsFunc(columns, lacks) {
		of.Columns = append(columns, slices.Concat(of.Factors, of.Numbers)...)
		for name := range of.Levels {
			of.Columns = append(of.Columns, name)
		}
		slices.Sort(of.Columns)
		of.Columns = slices.Compact(of.Columns)
	}
	return of.Read(bytes.NewReader(raw))
}

// inFile is an error of a table with the name of the file that it was read from.
func inFile(err error, path string) error {
	var e *data.Error
	if !errors.As(err, &e) || e.Source != "" {
		return err
	}
	if error(e) != err {
		return fmt.Errorf("%s: %w", path, err)
	}
	named := *e
	named.Source = path
	return &named
}

// fitted is a fit that was read from its folder.
type fitted struct {
	saved
	dir   string
	table *data.Table
	model *regression.Model
	inf   *store.Inference
}

// readSaved reads model.json.
func readSaved(dir string) (*saved, error) {
	path := filepath.Join(dir, modelFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not the folder of a fit: it has no %s; kelvin fit makes one", dir, modelFile)
	}
	if err != nil {
		return nil, err
	}
	s := &saved{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if s.Format != version {
		return nil, fmt.Errorf("%s is of format %d, and this is kelvin of format %d: fit again", path, s.Format, version)
	}
	return s, nil
}

// open reads the folder of a fit: its model is made of the data anew.
func open(dir string) (*fitted, error) {
	s, err := readSaved(dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, dataFile)
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if digest(raw) != s.SHA256 {
		return nil, fmt.Errorf("%s has changed since the fit, and the draws are not of it: fit again", path)
	}
	out := &fitted{saved: *s, dir: dir}
	formula, err := s.formula()
	if err != nil {
		return nil, err
	}
	if out.table, err = s.table(formula, raw, path); err != nil {
		return nil, err
	}
	if s.DropMissing {
		columns, err := formula.Columns()
		if err != nil {
			return nil, err
		}
		if out.table, _, err = out.table.DropMissing(columns...); err != nil {
			return nil, err
		}
	}
	if out.model, err = formula.Fit(out.table); err != nil {
		return nil, err
	}
	out.inf, err = openDraws(dir)
	return out, err
}

// openDraws reads the draws of a fit.
func openDraws(dir string) (*store.Inference, error) {
	inf, err := store.Open(filepath.Join(dir, drawsFile))
	if err != nil {
		return nil, err
	}
	if inf.Posterior == nil || inf.Posterior.Total() == 0 {
		return nil, fmt.Errorf("%s has no draws", filepath.Join(dir, drawsFile))
	}
	return inf, nil
}
