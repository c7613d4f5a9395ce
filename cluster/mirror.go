package cluster

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
)

// mirror keeps the files of a run's checkpoints on the server too. A checkpoint is new objects, and then one change of
// the state that names them, so that a crash in between leaves the one before.
type mirror struct {
	*attempt
	ctx    context.Context
	dir    string
	sizes  map[string]int64 // of the files that grow, as far as the server has them
	number int
}

// growing is the file of the draws, which checkpoints only make longer.
const growing = "draws.kelvin"

// restore writes the files of the last checkpoint.
func (m *mirror) restore() error {
	for name, p := range m.state.Files {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return fmt.Errorf("checkpoint file %q is outside the folder of the task", name)
		}
		path := filepath.Join(m.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		for _, object := range p.Objects {
			data, err := m.bucket.get(m.ctx, object)
			if err == nil {
				_, err = f.Write(data)
			}
			if err != nil {
				_ = f.Close()
				return fmt.Errorf("checkpoint file %s: %w", name, err)
			}
		}
		if err := f.Close(); err != nil {
			return err
		}
		if filepath.Base(name) == growing {
			m.sizes[name] = p.Size
		}
	}
	return nil
}

// save copies the files of dir, which have changed.
func (m *mirror) save(dir string) error {
	if err := context.Cause(m.ctx); err != nil {
		return err
	}
	m.number++
	files := maps.Clone(m.state.Files)
	if files == nil {
		files = map[string]parts{}
	}
	var old []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || filepath.Ext(path) != ".kelvin" {
			return err
		}
		name, err := filepath.Rel(m.dir, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		grows := filepath.Base(name) == growing
		data, err := readFrom(path, m.sizes[name])
		if err != nil || grows && len(data) == 0 {
			return err
		}
		p := files[name]
		if !grows {
			old = append(old, p.Objects...)
			p = parts{}
		}
		object := m.object(fmt.Sprintf("%s-%06d", name, m.number))
		if err := m.bucket.put(m.ctx, object, data); err != nil {
			return err
		}
		p.Objects = append(append([]string(nil), p.Objects...), object)
		p.Size += int64(len(data))
		files[name] = p
		return nil
	})
	if err != nil {
		return err
	}
	m.state.Files, m.state.Crashes = files, 1
	if err := m.attempt.save(m.ctx); err != nil {
		return err
	}
	for name, p := range files {
		if filepath.Base(name) == growing {
			m.sizes[name] = p.Size
		}
	}
	m.bucket.drop(m.ctx, old...)
	return nil
}

// object names an object of this attempt, which no other attempt has.
func (a *attempt) object(name string) string {
	return fmt.Sprintf("%06d/%06d-%s/%s", a.task.Number, a.state.Attempt, a.name, name)
}

// readFrom reads a file from a place on.
func readFrom(path string, from int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}
