package infer

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc64"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Checkpoint says where and how often a run saves itself. A run that was killed, in its warm-up or after, goes on from
// its last checkpoint and ends with the draws that it would have had, bit for bit. Its folder is locked while it runs.
type Checkpoint struct {
	// Folder of this run alone; made when it does not exist. A run whose folder is removed or made anew ends in an error.
	Dir string
	// updates between checkpoints, default 1000; of a method that drives itself transitions of each chain, where the
	// default is 100 and at least a second, from the beginning to the first checkpoint too
	Every int
	// Resume goes on from the checkpoint in Dir, if there is one. Without it a checkpoint there is an error, so that no
	// run is overwritten by accident. So are, always, the draws of a run whose checkpoint is gone, and a symbolic link.
	Resume bool
	// Model names the model and the method's settings, in your words: a checkpoint with another name is refused. Method,
	// layout, data, the log density at one point, seed, chains, warm-up, thinning, and the type of the parameters are
	// always compared; Draws may grow. A method of updates may go on with other fields, such as another LR.
	Model string
	// Saved is called after each checkpoint, when its files are complete in dir, to copy them elsewhere; nil for nothing.
	// An error ends the run.
	Saved func(dir string) error
}

// checkpointHeader is the readable part of a checkpoint.
type checkpointHeader struct {
	Model    string            `json:"model"`
	Method   string            `json:"method"`
	Sites    []Site            `json:"sites"`
	Chains   int               `json:"chains"`
	Seed     uint64            `json:"seed"`
	First    uint64            `json:"first_chain"`
	Cycles   Cycles            `json:"cycles"` // zero for none
	Ended    bool              `json:"ended"`
	Average  bool              `json:"average"`
	Weight   float64           `json:"average_weight"`
	Warmup   int               `json:"warmup"`
	Thin     int               `json:"thin"`
	NoDraws  bool              `json:"no_draws"`
	Data     string            `json:"data"`
	Position Position          `json:"position"`
	Steps    int               `json:"steps"`
	Held     int               `json:"held"`            // or divergent transitions
	Stuck    []bool            `json:"stuck,omitempty"` // chains that the last update held
	Stats    []string          `json:"stats"`
	Counts   []int             `json:"draws"`      // of each chain in the draws file
	DrawsCRC uint64            `json:"draws_crc"`  // of those bytes
	State    int               `json:"state_step"` // the state's own counter
	Streams  torch.Streams     `json:"streams"`
	Tensors  []savedTensorInfo `json:"tensors"`
	Extra    []byte            `json:"extra"` // of the method, in its own format
	Gradient native.Tier       `json:"gradient"`
	Density  *float64          `json:"density,omitempty"` // see probe
}

// checkpointer writes the checkpoints of one group of chains.
type checkpointer struct {
	g      *group
	dir    string
	want   checkpointHeader // what a checkpoint of this run says about the run
	probe  probe
	look   func() (probe, error) // takes it again
	old    *checkpointHeader
	blobs  [][]byte
	lock   *atomicfile.Lock
	buffer []byte // draws that the next checkpoint will cover
	draws  *os.File
	bytes  int
	counts []int
	fresh  []int // in the buffer
	crc    uint64

	written bool // a checkpoint, by this run
}

var crcTable = crc64.MakeTable(crc64.ECMA)

// inFolder names the folder of the checkpoint before an error, where there is one.
func (g *group) inFolder(err error) error {
	if g.checkpoint.Dir == "" {
		return err
	}
	return fmt.Errorf("checkpoint in %s: %w", g.checkpoint.Dir, err)
}

// openCheckpoint takes the folder, and reads the checkpoint that is to be resumed. at is a point of the run.
func openCheckpoint(g *group, at torch.Tensor) (*checkpointer, error) {
	c := g.checkpoint
	if c.Dir == "" {
		return nil, &FieldError{Type: "infer.Checkpoint", Field: "Dir", Value: `""`, Allowed: "a folder is required"}
	}
	_, driver := g.transform.(Driver)
	if _, ok := g.transform.(Restorer); !ok && !driver {
		return nil, fmt.Errorf("the method %s cannot be restored from a checkpoint (it has no Restore): %w", g.name,
			ErrCheckpoint)
	}
	f := &checkpointer{g: g, dir: c.Dir, counts: make([]int, g.size), fresh: make([]int, g.size)}
	f.want = checkpointHeader{Model: c.Model, Method: g.name, Sites: g.layout.Sites, Chains: g.size, Seed: g.o.Seed,
		First:  g.first(),
		Warmup: g.o.Warmup, Thin: g.o.Thin, NoDraws: g.o.Draws == 0 || g.o.Discard, Average: g.o.Average}
	if g.o.Cycles != nil {
		f.want.Cycles = *g.o.Cycles
	}
	if _, ok := g.transform.(Sampler); ok {
		f.want.Warmup = 0 // a fit may go on for longer
	}
	var err error
	if f.want.Data, err = g.batches.Fingerprint(); err != nil {
		return nil, err
	}
	f.look = func() (probe, error) { return g.probe(at) }
	if f.probe, err = f.look(); err != nil {
		return nil, err
	}
	f.want.Density = f.probe.density
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	if f.lock, err = atomicfile.TakeLock(filepath.Join(c.Dir, lockName)); err != nil {
		var held *atomicfile.HeldError
		if errors.As(err, &held) {
			return nil, fmt.Errorf("it is in use by %s: choose another folder, or wait: %w", held.Holder(), ErrCheckpoint)
		}
		return nil, err
	}
	if err := f.read(); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// read reads the checkpoint that is to be resumed, and the draws that it covers.
func (f *checkpointer) read() error {
	c, g := f.g.checkpoint, f.g
	old, blobs, err := readCheckpoint(filepath.Join(c.Dir, checkpointName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !c.Resume:
		return fmt.Errorf("there is a checkpoint after %d updates; set Resume to go on from it, or remove the folder: %w",
			old.Steps, ErrCheckpoint)
	default:
		if err := f.same(old); err != nil {
			return err
		}
		if err := f.sameModel(old.Density); err != nil {
			return err
		}
		f.old, f.blobs = old, blobs
		if err := g.compilation.pin(old.Gradient); err != nil {
			return err
		}
	}
	if g.rows.id == "" {
		g.rows.id = f.identity()
	}
	if err := f.openDraws(); err != nil {
		return err
	}
	return f.restoreDraws()
}

// openDraws opens the file of the draws. One without a checkpoint that tells of it is written over only where the file
// begunName says that it is of a run that was killed before its first checkpoint.
func (f *checkpointer) openDraws() error {
	path, begun := filepath.Join(f.dir, drawsName), filepath.Join(f.dir, begunName)
	if f.old == nil {
		info, err := os.Lstat(path)
		_, first := os.Lstat(begun)
		if err == nil && info.Mode().IsRegular() && info.Size() > 0 && first != nil {
			return fmt.Errorf("it has %s of %d bytes and no %s that tells of them: put that back, choose another folder, or "+
				"remove %s to start again: %w", drawsName, info.Size(), checkpointName, drawsName, ErrCheckpoint)
		}
		if err := atomicfile.Write(begun, nil, 0o600); err != nil {
			return err
		}
	} else if err := atomicfile.Remove(begun); err != nil {
		return err
	}
	var err error
	f.draws, err = atomicfile.Open(path, os.O_RDWR|os.O_CREATE, 0o600)
	return err
}

// same compares what must not differ between a checkpoint and this run.
func (f *checkpointer) same(h *checkpointHeader) error {
	want := f.want
	for _, d := range []struct {
		what      string
		have, own any
	}{
		{"model", h.Model, want.Model}, {"method", h.Method, want.Method},
		{"sites", (&Layout{Sites: h.Sites}).String(), f.g.layout.String()}, {"chains", h.Chains, want.Chains},
		{"seed", h.Seed, want.Seed}, {"warm-up", h.Warmup, want.Warmup}, {"thinning", h.Thin, want.Thin},
		{"Discard", h.NoDraws, want.NoDraws},
		{"first chain", h.First, want.First}, {"cycles", h.Cycles, want.Cycles}, {"Average", h.Average, want.Average},
		{"data", h.Data, want.Data},
	} {
		if d.have != d.own {
			return fmt.Errorf("it is of another run: its %s is %v, this run's %v: %w", d.what, d.have, d.own, ErrCheckpoint)
		}
	}
	return nil
}

// identity names a run that can go on, for sinks.
func (f *checkpointer) identity() string {
	h := f.want
	h.Chains, h.First, h.Density = f.g.o.Chains, f.g.o.FirstChain, nil // whose last bits may differ
	text, err := h.marshal()
	if err != nil {
		text = []byte(err.Error())
	}
	if start := f.g.o.Start; start.Flat != (torch.Tensor{}) {
		x, err := start.Values()
		text = fmt.Appendf(text, "%v %v", x, err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// pending takes a draw that the next checkpoint will cover.
func (f *checkpointer) pending(chain int, values, stats []float64) {
	f.buffer = binary.LittleEndian.AppendUint64(f.buffer, uint64(chain))
	for _, v := range [][]float64{values, stats} {
		for _, x := range v {
			f.buffer = binary.LittleEndian.AppendUint64(f.buffer, math.Float64bits(x))
		}
	}
	f.fresh[chain]++
}

// append writes the new draws, where the folder is still that of this run.
func (f *checkpointer) append() error {
	if err := atomicfile.Present(f.draws); err != nil {
		return err
	}
	if len(f.buffer) == 0 {
		return nil
	}
	if _, err := f.draws.WriteAt(f.buffer, int64(f.bytes)); err != nil {
		return fmt.Errorf("writing draws: %w", err)
	}
	if err := f.draws.Sync(); err != nil {
		return fmt.Errorf("writing draws: %w", err)
	}
	f.crc = crc64.Update(f.crc, crcTable, f.buffer)
	f.bytes += len(f.buffer)
	for c, n := range f.fresh {
		f.counts[c] += n
		f.fresh[c] = 0
	}
	f.buffer = f.buffer[:0]
	return nil
}

// header is the checkpoint of what has been done.
func (f *checkpointer) header() checkpointHeader {
	h := f.want
	h.Stats, h.Counts, h.DrawsCRC = f.g.rows.stats, slices.Clone(f.counts), f.crc
	h.Position = f.g.batches.Position()
	h.Gradient = f.g.compilation.toPin()
	return h
}

// saveUpdates writes the new draws, and then the checkpoint in one move: a crash in between leaves the one before.
func (f *checkpointer) saveUpdates(r *updater) error {
	if err := f.append(); err != nil {
		return err
	}
	h := f.header()
	saved := r.state.Save()
	h.State, h.Streams, h.Extra = saved.Steps, saved.Streams, saved.Extra
	h.Steps, h.Held, h.Ended, h.Stuck = r.steps, r.held, r.ended, r.stuck
	tensors := maps.Clone(saved.Tensors)
	maps.Copy(tensors, saved.Shared)
	if r.average != nil {
		h.Weight = r.average.weight
		maps.Copy(tensors, r.average.save())
	}
	var blobs [][]byte
	for _, name := range Batch(tensors).names() {
		info, blob, err := saveTensor(name, tensors[name])
		if err != nil {
			return fmt.Errorf("saving %s: %w", name, err)
		}
		h.Tensors = append(h.Tensors, info)
		blobs = append(blobs, blob)
	}
	return f.write(h, blobs)
}

// saveDriven is saveUpdates of a method that drives itself.
func (f *checkpointer) saveDriven(r *driven, state []byte) error {
	if err := f.append(); err != nil {
		return err
	}
	h := f.header()
	h.Steps, h.Held, h.Ended, h.Extra = r.done, r.divergent, r.ended, state
	return f.write(h, nil)
}

func (f *checkpointer) write(h checkpointHeader, blobs [][]byte) error {
	if err := writeCheckpoint(filepath.Join(f.dir, checkpointName), h, blobs); err != nil {
		return err
	}
	if err := atomicfile.Present(f.draws); err != nil { // the folder was made anew in between
		return err
	}
	if !f.written {
		if err := atomicfile.Remove(filepath.Join(f.dir, begunName)); err != nil {
			return err
		}
		f.written = true
	}
	if saved := f.g.checkpoint.Saved; saved != nil {
		return calling("function Saved of the checkpoint", func() error { return saved(f.dir) })
	}
	return nil
}

func (f *checkpointer) close() {
	if f.draws != nil {
		_ = f.draws.Close()
	}
	_ = f.lock.Release()
}

// marshal is the header as JSON, for the file and for messages.
func (h checkpointHeader) marshal() ([]byte, error) { return json.Marshal(h) }
