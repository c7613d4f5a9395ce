package posteriors

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Database is a checkout of posteriordb (Magnusson et al. 2025, posteriordb: Testing, Benchmarking and Developing
// Bayesian Inference Algorithms, AISTATS; github.com/stan-dev/posteriordb), or a part of one:
//
//	posteriors/NAME.json                              names the data and the reference draws
//	data/data/DATA.json.zip                           an object of numbers and lists
//	reference_posteriors/draws/draws/NAME.json.zip    a list of chains, each an object of parameters and their draws
type Database struct{ root string }

// Open finds the database in a checkout, or in its folder posterior_database.
func Open(dir string) (Database, error) {
	if dir == "" {
		return Database{}, errors.New("where is posteriordb? Give -path DIR, or set POSTERIORDB, to a checkout of " +
			"github.com/stan-dev/posteriordb")
	}
	for _, root := range []string{filepath.Join(dir, "posterior_database"), dir} {
		if info, err := os.Stat(filepath.Join(root, "posteriors")); err == nil && info.IsDir() {
			return Database{root}, nil
		}
	}
	return Database{}, fmt.Errorf("%s is not a checkout of posteriordb: it has no folder posterior_database/posteriors",
		dir)
}

// Reference is the reference draws of each parameter, by name, chain by chain.
type Reference map[string][][]float64

// Read reads the data and the reference draws of a posterior.
func (db Database) Read(name string) (*Data, Reference, error) {
	fail := func(err error) (*Data, Reference, error) {
		return nil, nil, fmt.Errorf("posteriordb, %s: %w", name, err)
	}
	var about struct {
		Data      string  `json:"data_name"`
		Reference *string `json:"reference_posterior_name"`
	}
	if err := db.decode(&about, "posteriors", name+".json"); err != nil {
		return fail(err)
	}
	if about.Data == "" || about.Reference == nil || *about.Reference == "" {
		return fail(errors.New("its file names no data or no reference draws"))
	}
	d := &Data{name: about.Data}
	if err := db.decode(&d.values, "data", "data", about.Data+".json"); err != nil {
		return fail(err)
	}
	var chains []map[string][]float64
	if err := db.decode(&chains, "reference_posteriors", "draws", "draws", *about.Reference+".json"); err != nil {
		return fail(err)
	}
	r, err := newReference(chains)
	if err != nil {
		return fail(fmt.Errorf("reference draws: %w", err))
	}
	return d, r, nil
}

// newReference turns the chains around: each must have the same parameters, all with equally many draws.
func newReference(chains []map[string][]float64) (Reference, error) {
	if len(chains) == 0 || len(chains[0]) == 0 {
		return nil, errors.New("there are none")
	}
	r, n := Reference{}, -1
	for i, c := range chains {
		if len(c) != len(chains[0]) {
			return nil, fmt.Errorf("chain %d has %d parameters and chain 1 has %d", i+1, len(c), len(chains[0]))
		}
		for name, x := range c {
			if n < 0 {
				n = len(x)
			}
			if len(x) != n || len(r[name]) != i {
				return nil, fmt.Errorf("chain %d has %d draws of %s, where others have %d or none", i+1, len(x), name, n)
			}
			r[name] = append(r[name], x)
		}
	}
	return r, nil
}

// decode reads a JSON file: the file itself, or the one in a zip beside it.
func (db Database) decode(into any, parts ...string) error {
	file := filepath.Join(append([]string{db.root}, parts...)...)
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		zipped, e := unzip(file + ".zip")
		if errors.Is(e, fs.ErrNotExist) {
			return fmt.Errorf("%w, nor is there %s.zip", err, filepath.Base(file))
		}
		file, raw, err = file+".zip", zipped, e
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// unzip is the JSON file in a zip.
func unzip(file string) ([]byte, error) {
	z, err := zip.OpenReader(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	defer z.Close()
	want := strings.TrimSuffix(filepath.Base(file), ".zip")
	for _, f := range z.File {
		if path.Base(f.Name) != want || strings.HasPrefix(f.Name, "__MACOSX") {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		defer r.Close()
		raw, err := io.ReadAll(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		return raw, nil
	}
	return nil, fmt.Errorf("%s: there is no %s in it", file, want)
}
