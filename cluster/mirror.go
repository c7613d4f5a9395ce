package cluster

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// mirror keeps the files of a run's checkpoints on the server too. A checkpoint is new blocks, and then one change of
// the state that names them, so that a crash in between leaves the one before.
type mirror struct {
	*attempt
	ctx    context.Context
	dir    string
	sizes  map[string]int // of the files that grow, as far as the server has them
	number int
	saved  time.Time
}

// restEvery is the least time between checkpoints on the server where nobody has said after how many updates they are
// due. A small model makes a thousand updates in milliseconds.
const restEvery = time.Second

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
		f, err := atomicfile.Open(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		for _, block := range p.Blocks {
			data, err := m.bucket.checkpoints.get(m.ctx, block)
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
	if m.task.Options.Every == 0 && time.Since(m.saved) < restEvery {
		return nil
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
			old = append(old, p.Blocks...)
			p = parts{}
		}
		block := m.block(fmt.Sprintf("%s-%06d", base64.RawURLEncoding.EncodeToString([]byte(name)), m.number))
		if len(data) > m.bucket.limit {
			return m.bucket.tooLarge(name, len(data))
		}
		if err := m.bucket.checkpoints.put(m.ctx, block, data); err != nil {
			return err
		}
		p.Blocks = append(append([]string(nil), p.Blocks...), block)
		p.Size += len(data)
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
	m.bucket.checkpoints.drop(m.ctx, old...)
	m.saved = time.Now()
	return nil
}

// block names a block of this attempt, which no other attempt has.
func (a *attempt) block(name string) string {
	return fmt.Sprintf("%s.%06d.%s", a.task.name(), a.state.Attempt, name)
}

// readFrom reads a file from a place on.
func readFrom(path string, from int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(int64(from), io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}
