package infer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// Checkpoint says where and how often [Run] saves itself. A run that was killed goes on from its last checkpoint and ends
// with the draws that it would have had, bit for bit.
type Checkpoint struct {
	Dir   string // folder of this run alone; made when it does not exist
	Every int64  // updates between checkpoints; default 1000
	// Resume goes on from the checkpoint in Dir, if there is one. Without it a checkpoint there is an error, so that no
	// run is overwritten by accident.
	Resume bool
	// Model names the model and the method's settings, in your words: a checkpoint with another name is refused. Layout,
	// data, seed, chains, burn-in, thinning, and the type of the parameters are always compared.
	Model string
}

func (c *Checkpoint) every() int64 {
	if c.Every <= 0 {
		return 1000
	}
	return c.Every
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
	LastOnly bool              `json:"last_only"`
	Ended    bool              `json:"ended"`
	Average  bool              `json:"average"`
	Weight   float64           `json:"average_weight"`
	BurnIn   int64             `json:"burn_in"`
	Thin     int64             `json:"thin"`
	NoDraws  bool              `json:"no_draws"`
	Data     string            `json:"data"`
	Position Position          `json:"position"`
	Steps    int64             `json:"steps"`
	Diverged int64             `json:"diverged"`
	Stats    []string          `json:"stats"`
	Draws    int64             `json:"draws"`      // draws of each chain in the draws file
	DrawsCRC uint64            `json:"draws_crc"`  // of those bytes
	State    int64             `json:"state_step"` // the state's own counter
	Streams  torch.Streams     `json:"streams"`
	Tensors  []savedTensorInfo `json:"tensors"`
}

type savedTensorInfo struct {
	Name  string  `json:"name"`
	Shape []int64 `json:"shape"`
	DType int     `json:"dtype"` // libtorch's number: 6 float32, 7 float64
}

// elementBytes is how many bytes an element takes in the file: float32 is kept as it is, all others become float64.
func (i savedTensorInfo) elementBytes() int {
	if i.dtype() == gotch.Float {
		return 4
	}
	return 8
}

func (i savedTensorInfo) dtype() gotch.DType { return gotch.CKind2DType(int32(i.DType)) }

func (i savedTensorInfo) String() string { return fmt.Sprintf("%v %v", i.Shape, i.dtype()) }

// exact are the types whose values float64 holds without loss.
var exact = []gotch.DType{gotch.Double, gotch.Half, gotch.BFloat16, gotch.Int, gotch.Int16, gotch.Int8, gotch.Uint8, gotch.Bool}

const (
	checkpointName = "checkpoint.kelvin"
	drawsName      = "draws.kelvin"
)

// checkpointer writes the checkpoints of one run.
type checkpointer struct {
	c      *Checkpoint
	data   string // fingerprint of the batches
	buffer bytes.Buffer
	draws  *os.File
	count  int64
	crc    uint64
}

var crcTable = crc64.MakeTable(crc64.ECMA)

// openCheckpoint prepares the folder and, when there is a checkpoint to resume, puts the run where it was.
func openCheckpoint(r *run) (*checkpointer, error) {
	c := r.c.Checkpoint
	if c.Dir == "" {
		return nil, &FieldError{Type: "infer.Checkpoint", Field: "Dir", Value: `""`, Allowed: "a folder is required"}
	}
	if _, ok := r.t.(Restorer); !ok {
		return nil, fmt.Errorf("the method %T cannot be restored from a checkpoint (it has no Restore): %w", r.t, ErrCheckpoint)
	}
	data, err := r.batches.Fingerprint()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, err
	}
	f := &checkpointer{c: c, data: data}
	header, blobs, err := readCheckpoint(filepath.Join(c.Dir, checkpointName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case !c.Resume:
		return nil, fmt.Errorf("there is a checkpoint after %d updates; set Resume to go on from it, or remove the folder: %w", header.Steps, ErrCheckpoint)
	default:
		if err := f.resume(r, header, blobs); err != nil {
			return nil, err
		}
	}
	f.draws, err = os.OpenFile(filepath.Join(c.Dir, drawsName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	// What was written after the last checkpoint is written again.
	at := f.count * int64(8*f.width(r))
	if err := f.draws.Truncate(at); err != nil {
		return nil, err
	}
	_, err = f.draws.Seek(at, io.SeekStart)
	return f, err
}

// width is the number of values of one draw of all chains in the draws file.
func (f *checkpointer) width(r *run) int {
	if r.draws == nil {
		return 0
	}
	return r.chains * (r.layout.Dim() + len(r.draws.Stats()))
}

// pending takes a draw that the next checkpoint will cover.
func (f *checkpointer) pending(values, stats []float64) {
	f.buffer.Write(float64Bytes(values))
	f.buffer.Write(float64Bytes(stats))
}

// save writes the new draws, and then the checkpoint in one move: a crash in between leaves the one before.
func (f *checkpointer) save(r *run) error {
	if f.buffer.Len() > 0 {
		f.crc = crc64.Update(f.crc, crcTable, f.buffer.Bytes())
		f.count = int64(r.draws.MinLen())
		if _, err := f.draws.Write(f.buffer.Bytes()); err != nil {
			return fmt.Errorf("writing draws: %w", err)
		}
		if err := f.draws.Sync(); err != nil {
			return fmt.Errorf("writing draws: %w", err)
		}
		f.buffer.Reset()
	}
	header := f.header(r)
	saved := r.state.Save()
	header.State, header.Streams = saved.Steps, saved.Streams
	tensors := maps.Clone(saved.Tensors)
	maps.Copy(tensors, saved.Shared)
	if r.average != nil {
		header.Weight = r.average.weight
		maps.Copy(tensors, r.average.save())
	}
	var blobs [][]byte
	for _, name := range Batch(tensors).names() {
		info, blob, err := saveTensor(name, tensors[name])
		if err != nil {
			return fmt.Errorf("saving %s: %w", name, err)
		}
		header.Tensors = append(header.Tensors, info)
		blobs = append(blobs, blob)
	}
	return writeCheckpoint(filepath.Join(f.c.Dir, checkpointName), header, blobs)
}

func (f *checkpointer) close() { _ = f.draws.Close() }

// methodName is the type of a transform, and its Name where one type serves several methods.
func methodName(t Transform) string {
	if named, ok := t.(interface{ Name() string }); ok {
		return named.Name()
	}
	return fmt.Sprintf("%T", t)
}

// header is what a checkpoint of this run says about the run.
func (f *checkpointer) header(r *run) checkpointHeader {
	h := checkpointHeader{Model: f.c.Model, Method: methodName(r.t), Sites: r.layout.Sites, Chains: r.chains, Seed: r.c.Seed,
		First: r.c.FirstChain, BurnIn: r.c.BurnIn, Thin: r.c.Thin, NoDraws: r.c.NoDraws, LastOnly: r.c.lastOnly, Ended: r.ended, Average: r.c.Average, Data: f.data, Position: r.batches.Position(), Steps: r.steps, Diverged: r.diverged,
		Draws: f.count, DrawsCRC: f.crc}
	if r.c.Cycles != nil {
		h.Cycles = *r.c.Cycles
	}
	if r.draws != nil {
		h.Stats = r.draws.Stats()
	}
	return h
}

// resume puts the run where the checkpoint says, after comparing what must not differ.
func (f *checkpointer) resume(r *run, h *checkpointHeader, blobs [][]byte) error {
	want := f.header(r)
	point, err := describe("params", r.state.Position().Flat)
	if err != nil {
		return err
	}
	saved := point // what does not name its position "params" is not compared
	if i := slices.IndexFunc(h.Tensors, func(i savedTensorInfo) bool { return i.Name == "params" }); i >= 0 {
		saved = h.Tensors[i]
	}
	for _, d := range []struct {
		what      string
		have, own any
	}{
		{"model", h.Model, want.Model}, {"method", h.Method, want.Method},
		{"sites", (&Layout{Sites: h.Sites}).String(), r.layout.String()}, {"chains", h.Chains, want.Chains},
		{"seed", h.Seed, want.Seed}, {"burn-in", h.BurnIn, want.BurnIn}, {"thinning", h.Thin, want.Thin}, {"NoDraws", h.NoDraws, want.NoDraws},
		{"first chain", h.First, want.First}, {"cycles", h.Cycles, want.Cycles}, {"Average", h.Average, want.Average}, {"LastOnly", h.LastOnly, want.LastOnly},
		{"data", h.Data, want.Data}, {"point", saved.String(), point.String()},
	} {
		if d.have != d.own {
			return fmt.Errorf("it is of another run: its %s is %v, this run's %v: %w", d.what, d.have, d.own, ErrCheckpoint)
		}
	}
	tensors := map[string]*ts.Tensor{}
	for i, info := range h.Tensors {
		like := r.state.Save().Tensors[info.Name]
		if like == nil {
			like = r.state.Position().Flat
		}
		t, err := restoreTensor(info, blobs[i], like)
		if err != nil {
			return fmt.Errorf("restoring %s: %w", info.Name, err)
		}
		tensors[info.Name] = t
	}
	if r.average != nil {
		r.average.restore(h.Weight, tensors)
	}
	state, err := r.t.(Restorer).Restore(r.layout, Saved{Steps: h.State, Streams: h.Streams, Tensors: tensors})
	if err != nil {
		return err
	}
	Free(r.state)
	r.state = state
	if err := r.batches.Seek(h.Position); err != nil {
		return err
	}
	r.steps, r.resumed, r.diverged, r.ended = h.Steps, h.Steps, h.Diverged, h.Ended
	f.count, f.crc = h.Draws, h.DrawsCRC
	return f.restoreDraws(r, h)
}

// restoreDraws reads the draws that the checkpoint covers.
func (f *checkpointer) restoreDraws(r *run, h *checkpointHeader) error {
	if h.Draws == 0 {
		return nil
	}
	if len(h.Stats) < 3 {
		return fmt.Errorf("it has %d statistics of each draw, expected at least 3: %w", len(h.Stats), ErrCheckpoint)
	}
	r.extra = h.Stats[3:]
	if err := r.newDraws(); err != nil {
		return err
	}
	raw, err := os.ReadFile(filepath.Join(f.c.Dir, drawsName))
	if err != nil {
		return fmt.Errorf("reading draws: %w", err)
	}
	size := int(h.Draws) * 8 * f.width(r)
	if len(raw) < size || crc64.Checksum(raw[:size], crcTable) != h.DrawsCRC {
		return fmt.Errorf("the draws file is truncated or damaged: the checkpoint covers %d bytes, the file has %d: %w", size, len(raw), ErrCheckpoint)
	}
	values := float64Values(raw[:size])
	d := r.chains * r.layout.Dim()
	for w := f.width(r); len(values) > 0; values = values[w:] {
		if err := r.draws.Append(values[:d], values[d:w]); err != nil {
			return err
		}
	}
	return nil
}

func describe(name string, t *ts.Tensor) (savedTensorInfo, error) {
	shape, err := torch.Shape(t)
	if err != nil {
		return savedTensorInfo{}, err
	}
	dtype, err := torch.DTypeOfTensor(t)
	return savedTensorInfo{Name: name, Shape: shape, DType: int(dtype.CInt())}, err
}

// saveTensor copies the values of a tensor, without loss.
func saveTensor(name string, t *ts.Tensor) (savedTensorInfo, []byte, error) {
	info, err := describe(name, t)
	if err != nil {
		return info, nil, err
	}
	if info.dtype() == gotch.Float {
		values, err := torch.ToSlice[float32](t)
		return info, float32Bytes(values), err
	}
	if !slices.Contains(exact, info.dtype()) {
		return info, nil, fmt.Errorf("a tensor of type %v cannot be saved: %w", info.dtype(), ErrCheckpoint)
	}
	values, err := torch.ToSlice[float64](t)
	return info, float64Bytes(values), err
}

// restoreTensor makes the tensor again, on the device of the one that it replaces.
func restoreTensor(info savedTensorInfo, blob []byte, like *ts.Tensor) (*ts.Tensor, error) {
	device := torch.CPU
	if like != nil {
		var err error
		if device, err = torch.DeviceOf(like); err != nil {
			return nil, err
		}
	}
	if info.dtype() == gotch.Float {
		return torch.FromSliceOn(device, gotch.Float, float32Values(blob), info.Shape...)
	}
	return torch.FromSliceOn(device, info.dtype(), float64Values(blob), info.Shape...)
}

// marshal is the header as JSON, for the file and for messages.
func (h checkpointHeader) marshal() ([]byte, error) { return json.Marshal(h) }
