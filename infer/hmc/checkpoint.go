package hmc

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/internal/filelock"
)

// Checkpoint says where and how often a run saves itself. A run that was killed, in its warm-up or after, goes on from its last
// checkpoint and ends with the draws that it would have had, bit for bit.
type Checkpoint struct {
	Dir   string // folder of this run alone; made when it does not exist
	Every int    // transitions of each chain between checkpoints; default 100
	// Resume goes on from the checkpoint in Dir, if there is one. Without it a checkpoint there is an error, so that no run
	// is overwritten by accident.
	Resume bool
	// Model names the model in your words: a checkpoint with another name is refused. Sites, data and options are always
	// compared, and only Draws may grow. StepSize, InitialMetric and Init count at the beginning only. A folder that another
	// run is using is refused.
	Model string
}

func (c *Checkpoint) every() int { return max(c.Every, 0) } // 0: the kernel's default

// The folder holds the state, which is replaced in one move, and the draws, which are only appended to: the state says how
// much of them it covers.
const (
	stateFile = "hmc.state"
	drawsFile = "hmc.draws"
	magic     = "kelvin hmc checkpoint 1\n"
)

// savedRun is the content of the state file.
type savedRun struct {
	Model, Layout, Data string
	Width               int      // numbers of a draw
	Counts              []int    // draws of each chain
	Bytes               int64    // of the draws file
	Sum                 [32]byte // SHA-256 of them
	Done                int64
	Divergences         int64
	Snapshot            kernel.Snapshot
}

// saver writes a run's checkpoints.
type saver struct {
	run      *run
	dir      string
	saved    savedRun
	draws    *os.File
	sum      hash.Hash
	snapshot *kernel.Snapshot // to go on from; nil at the start
}

func (c *Checkpoint) open(r *run) (*saver, error) {
	fail := func(err error) (*saver, error) { return nil, fmt.Errorf("hmc: checkpoint: %w", err) }
	if c.Dir == "" {
		return nil, &infer.FieldError{Type: "hmc.Checkpoint", Field: "Dir", Value: `""`, Allowed: "it must name a folder"}
	}
	if c.Every < 0 {
		return nil, &infer.FieldError{Type: "hmc.Checkpoint", Field: "Every", Value: c.Every, Allowed: "it must be at least 1, or 0 for the default of 100"}
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return fail(err)
	}
	data, err := infer.Full(r.batch).Fingerprint()
	if err != nil {
		return fail(err)
	}
	want := savedRun{Model: c.Model, Layout: r.layout.String(), Data: data, Width: r.layout.Dim() + len(statNames), Counts: make([]int, len(r.rows))}
	s := &saver{run: r, dir: c.Dir, saved: want, sum: sha256.New()}
	if s.draws, err = os.OpenFile(filepath.Join(c.Dir, drawsFile), os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return fail(err)
	}
	if err := s.begin(c, want); err != nil {
		_ = s.draws.Close()
		return fail(err)
	}
	return s, nil
}

// begin takes the folder, and goes on from what is there or starts afresh.
func (s *saver) begin(c *Checkpoint, want savedRun) error {
	if !filelock.Try(s.draws) {
		return fmt.Errorf("%s is in use by another run: choose another folder: %w", c.Dir, infer.ErrCheckpoint)
	}
	old, err := readState(filepath.Join(c.Dir, stateFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s.draws.Truncate(0)
	case err != nil:
		return err
	case !c.Resume:
		return fmt.Errorf("%s has a checkpoint already: set Resume to go on from it, or choose another folder: %w", c.Dir, infer.ErrCheckpoint)
	}
	if err := s.restore(old, want); err != nil {
		return fmt.Errorf("%s: %w", c.Dir, err)
	}
	return nil
}

// restore reads the draws that a state covers, and cuts off what was written after it.
func (s *saver) restore(old *savedRun, want savedRun) error {
	for _, f := range []struct{ what, have, want string }{
		{"model", old.Model, want.Model}, {"sites", old.Layout, want.Layout}, {"data", old.Data, want.Data},
		{"chains", fmt.Sprint(len(old.Counts)), fmt.Sprint(len(want.Counts))}, {"statistics", fmt.Sprint(old.Width), fmt.Sprint(want.Width)},
	} {
		if f.have != f.want {
			return fmt.Errorf("the checkpoint is of another run: its %s: %q, expected %q: %w", f.what, f.have, f.want, infer.ErrCheckpoint)
		}
	}
	raw := make([]byte, old.Bytes)
	if _, err := io.ReadFull(s.draws, raw); err != nil {
		return fmt.Errorf("%s has fewer than the %d bytes that the checkpoint covers: %w", drawsFile, old.Bytes, infer.ErrCheckpoint)
	}
	s.sum.Write(raw)
	if !bytes.Equal(s.sum.Sum(nil), old.Sum[:]) {
		return fmt.Errorf("%s is damaged: its checksum is wrong: %w", drawsFile, infer.ErrCheckpoint)
	}
	if err := s.draws.Truncate(old.Bytes); err != nil {
		return err
	}
	rows := make([]float64, want.Width)
	for len(raw) > 0 {
		chain := binary.LittleEndian.Uint64(raw)
		raw = raw[8:]
		for i := range rows {
			rows[i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:]))
		}
		raw = raw[8*want.Width:]
		s.run.rows[chain] = append(s.run.rows[chain], rows...)
	}
	p := &s.run.progress
	p.Done, p.Resumed, p.Divergences = old.Done, old.Done, old.Divergences
	for c, n := range old.Counts {
		p.Draws += int64(n)
		if len(s.run.rows[c]) != n*want.Width {
			return fmt.Errorf("%s is damaged: chain %d has %d draws of %d: %w", drawsFile, c, len(s.run.rows[c])/want.Width, n, infer.ErrCheckpoint)
		}
		if n > 0 {
			p.Warming--
		}
	}
	s.saved, s.snapshot = *old, &old.Snapshot
	return nil
}

// save appends the new draws and then replaces the state.
func (s *saver) save(snapshot *kernel.Snapshot) error {
	var b bytes.Buffer
	w := s.saved.Width
	counts := append([]int(nil), s.saved.Counts...)
	for chain, rows := range s.run.rows {
		for i := counts[chain] * w; i < len(rows); i += w {
			b.Write(binary.LittleEndian.AppendUint64(nil, uint64(chain)))
			for _, v := range rows[i : i+w] {
				b.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)))
			}
		}
		counts[chain] = len(rows) / w
	}
	if _, err := s.draws.WriteAt(b.Bytes(), s.saved.Bytes); err != nil {
		return err
	}
	if err := s.draws.Sync(); err != nil {
		return err
	}
	s.sum.Write(b.Bytes())
	next := s.saved
	next.Counts, next.Bytes, next.Snapshot = counts, s.saved.Bytes+int64(b.Len()), *snapshot
	copy(next.Sum[:], s.sum.Sum(nil))
	p := s.run.progress
	next.Done, next.Divergences = p.Done, p.Divergences
	if err := writeState(filepath.Join(s.dir, stateFile), next); err != nil {
		return err
	}
	s.saved = next
	return nil
}

func (s *saver) close() { _ = s.draws.Close() }

// writeState replaces the file in one move, after the new one is on the disk.
func writeState(path string, s savedRun) error {
	var b bytes.Buffer
	b.WriteString(magic)
	if err := gob.NewEncoder(&b).Encode(s); err != nil {
		return err
	}
	sum := sha256.Sum256(b.Bytes())
	b.Write(sum[:])
	return atomicfile.Replace(path, func(w io.Writer) error {
		_, err := w.Write(b.Bytes())
		return err
	})
}

// readState reads and checks a state file.
func readState(path string) (*savedRun, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	n := len(raw) - sha256.Size
	if n < len(magic) || string(raw[:len(magic)]) != magic {
		return nil, fmt.Errorf("%s is not a checkpoint, or is cut off: %w", path, infer.ErrCheckpoint)
	}
	if sum := sha256.Sum256(raw[:n]); !bytes.Equal(sum[:], raw[n:]) {
		return nil, fmt.Errorf("%s is damaged: its checksum is wrong: %w", path, infer.ErrCheckpoint)
	}
	s := &savedRun{}
	if err := gob.NewDecoder(bytes.NewReader(raw[len(magic):n])).Decode(s); err != nil {
		return nil, fmt.Errorf("%s cannot be read: %v: %w", path, err, infer.ErrCheckpoint)
	}
	return s, nil
}
