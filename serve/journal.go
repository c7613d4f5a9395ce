package serve

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// journal keeps updates in a folder: rows.jsonl has a line for each, and cloud the particles after the last update that
// moved them, so that a restart need not move them again.
type journal struct {
	dir    string
	f      *os.File
	lock   *atomicfile.Lock
	end    int64  // of the last whole line
	sum    uint32 // of all whole lines, CRC-32
	broken error  // after which nothing more is taken
}

// entry is a line of rows.jsonl.
type entry struct {
	Rows int                  `json:"rows"`
	Key  string               `json:"key,omitempty"`
	Data map[string][]float64 `json:"data"`
}

// line is what stands in the file: a JSON value with its checksum, CRC-32.
type line struct {
	Check uint32          `json:"check"`
	Of    json.RawMessage `json:"of"`
}

// about is the first line: what the updates are of.
type about struct {
	Model string `json:"model"` // SHA-256 of the file
	Seed  uint64 `json:"seed"`
}

// open reads a folder, and keeps the updates in it that come.
func (u *Online) open(dir string) (err error) {
	if err = os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	j := &journal{dir: dir}
	if j.lock, err = atomicfile.TakeLock(filepath.Join(dir, "lock")); err != nil {
		return err
	}
	u.journal = j
	if err = u.replay(about{hex.EncodeToString(u.model.file.Sum[:]), u.seed}); err != nil {
		_ = u.Close()
	}
	return err
}

// Close gives the folder back. Updates after it are errors where there was one.
func (u *Online) Close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.journal == nil || u.journal.lock == nil {
		return nil
	}
	j := u.journal
	j.broken = errors.New("the folder was closed")
	err := j.lock.Release()
	if j.lock = nil; j.f != nil {
		err = errors.Join(err, j.f.Close())
	}
	return err
}

// replay reads the folder.
func (u *Online) replay(want about) (err error) {
	j := u.journal
	path := filepath.Join(j.dir, "rows.jsonl")
	if j.f, err = atomicfile.Open(path, os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return err
	}
	r := bufio.NewReader(j.f)
	text, err := next(r)
	if errors.Is(err, io.EOF) {
		if err := j.f.Truncate(0); err != nil {
			return err
		}
		if err := j.write(want); err != nil {
			return err
		}
		return atomicfile.SyncDir(j.dir)
	}
	var have about
	if err := decode(text, err, &have); err != nil {
		return fmt.Errorf("%s, line 1: %w", path, err)
	}
	if have != want {
		return fmt.Errorf("%s is of another model file or seed: give those, or another folder", path)
	}
	j.took(text)
	kept := j.cloud(u)
	for n := 2; ; n++ {
		text, err := next(r)
		if errors.Is(err, io.EOF) {
			if had := u.now.Load().updates; kept != nil && had < kept.Updates {
				return fmt.Errorf("%s has %d updates, and %s was made after %d: lines are missing", path, had, j.path(),
					kept.Updates)
			}
			return j.f.Truncate(j.end) // a part of a line was never acknowledged
		}
		var e entry
		if err := decode(text, err, &e); err != nil {
			return fmt.Errorf("%s, line %d: %w", path, n, err)
		}
		c, err := u.again(e, kept)
		if err != nil {
			return fmt.Errorf("%s, line %d: %w", path, n, err)
		}
		u.now.Store(c)
		u.remember(e.Key, e.Data, c)
		j.took(text)
		if kept != nil && c.updates == kept.Updates && j.sum != kept.Lines {
			return fmt.Errorf("%s was made of other rows than %s has: remove it", j.path(), path)
		}
	}
}

// next is a whole line. It is io.EOF where there is none.
func next(r *bufio.Reader) ([]byte, error) { return r.ReadBytes('\n') }

// decode reads a line whose checksum is right.
func decode(text []byte, failed error, to any) error {
	if failed != nil {
		return failed
	}
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("the line is damaged: %w", err)
	}
	if crc32.ChecksumIEEE(l.Of) != l.Check {
		return errors.New("the line is damaged: its checksum is another")
	}
	return json.Unmarshal(l.Of, to)
}

// again is the next cloud of an update that was kept: that of the file where it is not beyond that.
func (u *Online) again(e entry, kept *particles) (*cloud, error) {
	c := u.now.Load()
	if kept == nil || c.updates >= kept.Updates {
		return u.after(context.Background(), c, e.Rows, e.Data)
	}
	data, err := u.ofRows(e.Rows, e.Data)
	if err != nil {
		return nil, err
	}
	out := *c
	out.updates, out.rows, out.data = c.updates+1, c.rows+e.Rows, c.with(data)
	if out.updates == kept.Updates {
		out.points, out.weights, out.likelihood = kept.Points, kept.Weights, kept.Likelihood
		out.named, out.density, err = u.at(out.points)
	}
	return &out, err
}

// errNotKept is the error of an update that the disk did not take.
var errNotKept = errors.New("the update could not be kept")

// add puts an update on the disk.
func (j *journal) add(e entry, c *cloud) error {
	if j == nil {
		return nil
	}
	if j.broken != nil {
		return fmt.Errorf("%w: %w", errNotKept, j.broken)
	}
	if err := j.write(e); err != nil {
		return fmt.Errorf("%w: %w", errNotKept, err)
	}
	if c.moved {
		_ = j.keep(c) // the lines are enough
	}
	return nil
}

// write appends a line, and waits for the disk. What was written of a line that failed is taken back.
func (j *journal) write(v any) error {
	of, err := json.Marshal(v)
	if err != nil {
		return err
	}
	text, err := json.Marshal(line{crc32.ChecksumIEEE(of), of})
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if _, err = j.f.WriteAt(text, j.end); err == nil {
		err = atomicfile.Sync(j.f)
	}
	if err != nil {
		j.broken = errors.Join(j.f.Truncate(j.end), atomicfile.Sync(j.f))
		return err
	}
	j.took(text)
	return nil
}

// took counts a whole line.
func (j *journal) took(text []byte) {
	j.end += int64(len(text))
	j.sum = crc32.Update(j.sum, crc32.IEEETable, text)
}

// particles are those of a cloud, as they are kept.
type particles struct {
	Updates             int
	Lines               uint32 // the CRC-32 of the lines of rows.jsonl up to there
	Points              [][]float64
	Weights, Likelihood []float64
}

func (j *journal) path() string { return filepath.Join(j.dir, "cloud") }

// keep writes the particles, behind their checksum.
func (j *journal) keep(c *cloud) error {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(particles{c.updates, j.sum, c.points, c.weights, c.likelihood}); err != nil {
		return err
	}
	sum := sha256.Sum256(b.Bytes())
	return atomicfile.Replace(j.path(), func(w io.Writer) error {
		_, err := w.Write(append(sum[:], b.Bytes()...))
		return err
	})
}

// cloud reads them: nil where there are none that fit, since the lines make them anew.
func (j *journal) cloud(u *Online) *particles {
	text, err := os.ReadFile(j.path())
	if err != nil || len(text) < sha256.Size {
		return nil
	}
	if sha256.Sum256(text[sha256.Size:]) != [sha256.Size]byte(text[:sha256.Size]) {
		return nil
	}
	var p particles
	n, d := len(u.model.file.Points), u.model.Dim()
	if gob.NewDecoder(bytes.NewReader(text[sha256.Size:])).Decode(&p) != nil || len(p.Points) != n ||
		len(p.Weights) != n || len(p.Likelihood) != n ||
		slices.ContainsFunc(p.Points, func(x []float64) bool { return len(x) != d }) {
		return nil
	}
	return &p
}
