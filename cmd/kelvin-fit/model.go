package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/pathfinder"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/regression"
	"github.com/kelvin-ppl/kelvin/store"
)

// The files of the folder of a fit.
const dataFile, modelFile, drawsFile, pageFile = "data.csv", "model.json", "draws.zarr", "report.html"

// version is that of model.json.
const version = 1

// saved is what model.json has: all that makes the model of the data anew.
type saved struct {
	Version      int               `json:"version"`
	Source       string            `json:"source"` // the file that the data came from
	SHA256       string            `json:"sha256"` // of data.csv
	Reader       data.CSV          `json:"reader"`
	Formula      string            `json:"formula"`
	Family       string            `json:"family"`
	Link         string            `json:"link,omitempty"`
	Params       map[string]string `json:"params,omitempty"`
	Priors       map[string]string `json:"priors,omitempty"`
	DropMissing  bool              `json:"drop_missing,omitempty"`
	Method       string            `json:"method"`
	TargetAccept float64           `json:"target_accept,omitempty"` // 0 is 0.95; of those below 0 is the method's own
	Chains       int               `json:"chains,omitempty"`
	Warmup       int               `json:"warmup,omitempty"`
	Draws        int               `json:"draws,omitempty"`
	Seed         uint64            `json:"seed"`
}

func digest(raw []byte) string { return fmt.Sprintf("%x", sha256.Sum256(raw)) }

// formula is the regression.
func (s *saved) formula() (f regression.Formula, err error) {
	f = regression.Formula{Mean: s.Formula, Params: s.Params, DropMissing: s.DropMissing, Priors: regression.Priors{}}
	if f.Family, err = regression.FamilyNamed(s.Family, s.Link); err != nil {
		return f, err
	}
	for name, text := range s.Priors {
		if f.Priors[name], _, err = parseLaw(text); err != nil {
			return f, fmt.Errorf("the prior of %s: %w", name, err)
		}
	}
	return f, nil
}

// reads says how the columns of the formula are read, and no others, which may have anything.
func (s *saved) reads(path string) (data.CSV, error) {
	f, err := s.formula()
	if err != nil {
		return data.CSV{}, err
	}
	of := s.Reader
	of.Name = path
	if of.Columns, err = f.Columns(); err != nil {
		return of, err
	}
	of.Columns = append(of.Columns, of.Factors...)
	for name := range of.Levels {
		of.Columns = append(of.Columns, name)
	}
	slices.Sort(of.Columns)
	of.Columns = slices.Compact(of.Columns)
	return of, nil
}

// fit reads the data and makes the model.
func (s *saved) fit(raw []byte, path string) (*regression.Model, error) {
	of, err := s.reads(path)
	if err != nil {
		return nil, err
	}
	table, err := of.Read(bytes.NewReader(raw))
	if err != nil && strings.Contains(err.Error(), "CSV.Columns names") {
		of.Columns = nil // the error of the formula names the nearest column
		table, err = of.Read(bytes.NewReader(raw))
	}
	if err != nil {
		return nil, err
	}
	f, err := s.formula()
	if err != nil {
		return nil, err
	}
	model, err := f.Fit(table)
	if e := (*data.Error)(nil); errors.As(err, &e) && e.Source == "" {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return model, err
}

// fitted is a fit that was read from its folder.
type fitted struct {
	saved
	dir   string
	model *regression.Model
	inf   *store.Inference
}

// readSaved reads model.json and the draws.
func readSaved(dir string) (*fitted, error) {
	f := &fitted{dir: dir}
	text, err := os.ReadFile(filepath.Join(dir, modelFile))
	if err != nil {
		return nil, fmt.Errorf("%s is not the folder of a fit, which kelvin fit makes: %w", dir, err)
	}
	if err = json.Unmarshal(text, &f.saved); err == nil && f.Version != version {
		err = fmt.Errorf("version %d is not %d, that of this kelvin: fit again", f.Version, version)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, modelFile), err)
	}
	if f.inf, err = store.Open(filepath.Join(dir, drawsFile)); err == nil && f.inf.Posterior == nil {
		err = fmt.Errorf("%s has no draws", filepath.Join(dir, drawsFile))
	}
	return f, err
}

// open reads the folder of a fit, and makes its model of the data anew.
func open(dir string) (*fitted, error) {
	f, err := readSaved(dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, dataFile)
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if digest(raw) != f.SHA256 {
		return nil, fmt.Errorf("%s has changed since the fit, and the draws are not of it: fit again", path)
	}
	f.model, err = f.fit(raw, path)
	return f, err
}

// methods are the ways to the posterior. Groups and smooths have funnels, at whose entrance larger steps diverge.
var methods = map[string]infer.Method{"nuts": hmc.NUTS{TargetAccept: 0.95}, "mams": hmc.MAMS{}, "vi": vi.Dense{},
	"meanfield": vi.Diag{}, "laplace": laplace.DenseHessian{}, "pathfinder": pathfinder.Pathfinder{}}

func methodNames() string { return strings.Join(slices.Sorted(maps.Keys(methods)), ", ") }

// method is that of a fit, with its options.
func (s *saved) method() infer.Method {
	if s.TargetAccept != 0 { // of nuts alone
		return hmc.NUTS{TargetAccept: s.TargetAccept}
	}
	return methods[s.Method]
}

// options are those of the run.
func (s *saved) options() infer.Options {
	return infer.Options{Chains: s.Chains, Warmup: s.Warmup, Draws: s.Draws, Seed: s.Seed}
}
