package cluster

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/sugarme/gotch"
)

// job is what workers need to know of a run.
type job struct {
	ID       string
	Model    string
	Method   string
	Data     string // hash
	Layout   string
	Identity identity

	Chains, Warmup, Draws, Thin, Group int
	Seed, FirstChain                   uint64
	Cycles                             *infer.Cycles
	Discard                            bool
	Native                             native.Tier
	Every                              int64
	MaxBytes                           int64
}

func (j job) tasks() int { return (j.Chains + j.Group - 1) / j.Group }

// part is the first chain of a task and how many it has.
func (j job) part(task int) (from, size int) {
	from = task * j.Group
	return from, min(j.Group, j.Chains-from)
}

// options are those of a task.
func (j job) options(task int) infer.Options {
	from, size := j.part(task)
	return infer.Options{Chains: size, Warmup: j.Warmup, Draws: j.Draws, Thin: j.Thin, Seed: j.Seed,
		FirstChain: j.FirstChain + uint64(from), Cycles: j.Cycles, Discard: j.Discard, Native: j.Native,
		Observer: infer.Silent}
}

// message is a task in the stream.
type message struct {
	Job  string
	Task int
}

// result is how a task ended: what the key of the task holds, written once.
type result struct {
	Object string // with the draws; "" where there is an error
	Text   string // the error
	Tries  int
	CPU    string
	Steps  int64
}

// desk holds what belongs to one job: keys, and objects of any size.
type desk struct {
	keys    jetstream.KeyValue
	objects jetstream.ObjectStore
	limit   int64
}

func bucket(job string) string { return "kelvin_" + job }

func (l *link) desk(ctx context.Context, id string) (*desk, error) {
	d := &desk{}
	return d, persist(ctx, func(ctx context.Context) (err error) {
		if d.keys, err = l.js.KeyValue(ctx, bucket(id)); err != nil {
			return err
		}
		d.objects, err = l.js.ObjectStore(ctx, bucket(id))
		return err
	})
}

// put stores an object.
func (d *desk) put(ctx context.Context, name string, body []byte) error {
	if n := int64(len(body)); n > d.limit {
		return &infer.MemoryError{What: "the object " + name, Bytes: n, Allowed: d.limit, Field: optionsName + ".MaxBytes",
			Instead: "fewer draws, or a larger Thin"}
	}
	return persist(ctx, func(ctx context.Context) error {
		_, err := d.objects.PutBytes(ctx, name, body)
		return err
	})
}

func (d *desk) get(ctx context.Context, name string) (body []byte, err error) {
	return body, persist(ctx, func(ctx context.Context) (err error) {
		info, err := d.objects.GetInfo(ctx, name)
		if err != nil {
			return err
		}
		if int64(info.Size) > d.limit {
			return &infer.FieldError{Type: optionsName, Field: "MaxBytes", Value: d.limit,
				Allowed: fmt.Sprintf("the object %s has %d bytes", name, info.Size)}
		}
		body, err = d.objects.GetBytes(ctx, name)
		return err
	})
}

// write sets a key; read gets it, and says whether it is there.
func (d *desk) write(ctx context.Context, key string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return persist(ctx, func(ctx context.Context) error {
		_, err := d.keys.Put(ctx, key, text)
		return err
	})
}

func (d *desk) read(ctx context.Context, key string, v any) (found bool, err error) {
	var entry jetstream.KeyValueEntry
	err = persist(ctx, func(ctx context.Context) (err error) {
		entry, err = d.keys.Get(ctx, key)
		return err
	})
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal(entry.Value(), v)
}

// once writes a key that nobody has written: whoever comes later changes nothing.
func (d *desk) once(ctx context.Context, key string, v any) (first bool, err error) {
	text, err := json.Marshal(v)
	if err != nil {
		return false, err
	}
	err = persist(ctx, func(ctx context.Context) error {
		_, err := d.keys.Create(ctx, key, text)
		return err
	})
	if errors.Is(err, jetstream.ErrKeyExists) {
		return false, nil
	}
	return err == nil, err
}

// packed is a batch, or draws, as bytes.
type packed struct {
	Sites  []draws.Site
	Stats  []string
	Attrs  map[string]string
	Notes  []draws.Note
	Rows   [][]float64 // one for each chain: the rows, values before statistics
	Tensor []packedTensor
}

type packedTensor struct {
	Name    string
	Shape   []int64
	DType   int
	Floats  []float64
	Numbers []int64 // of integers of 64 bits
}

func (p packed) bytes() ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(p)
	return b.Bytes(), err
}

func unpack(b []byte) (p packed, err error) { return p, gob.NewDecoder(bytes.NewReader(b)).Decode(&p) }

func packBatch(b infer.Batch) (p packed, err error) {
	for name, t := range b {
		item := packedTensor{Name: name}
		if item.Shape, err = torch.Shape(t); err != nil {
			return p, err
		}
		dtype, err := torch.DTypeOfTensor(t)
		if err != nil {
			return p, err
		}
		item.DType = int(dtype.CInt())
		if dtype == gotch.Int64 {
			item.Numbers, err = torch.ToSlice[int64](t)
		} else {
			item.Floats, err = torch.ToSlice[float64](t)
		}
		if err != nil {
			return p, fmt.Errorf("data %q: %w", name, err)
		}
		p.Tensor = append(p.Tensor, item)
	}
	return p, nil
}

func (p packed) batch() (infer.Batch, error) {
	b := infer.Batch{}
	for _, t := range p.Tensor {
		var err error
		dtype := gotch.CKind2DType(int32(t.DType))
		if dtype == gotch.Int64 {
			b[t.Name], err = torch.FromSliceOn(torch.CPU, dtype, t.Numbers, t.Shape...)
		} else {
			b[t.Name], err = torch.FromSliceOn(torch.CPU, dtype, t.Floats, t.Shape...)
		}
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}

func packDraws(d *draws.Draws) (p packed, err error) {
	if d == nil {
		return p, nil
	}
	p = packed{Sites: d.Sites(), Stats: d.Stats(), Attrs: d.Attrs(), Notes: d.Notes()}
	for c := range d.Chains() {
		stats := make([][]float64, len(p.Stats))
		for i, name := range p.Stats {
			if stats[i], err = d.Stat(name, c); err != nil {
				return p, err
			}
		}
		rows := make([]float64, 0, d.Len(c)*(d.Dim()+len(stats)))
		for i := range d.Len(c) {
			rows = append(rows, d.Row(c, i)...)
			for _, s := range stats {
				rows = append(rows, s[i])
			}
		}
		p.Rows = append(p.Rows, rows)
	}
	return p, nil
}

// into appends the draws of a task, whose first chain is from.
func (p packed) into(d *draws.Draws, from int) error {
	width := d.Dim() + len(p.Stats)
	if !slices.Equal(p.Stats, d.Stats()) {
		return fmt.Errorf("a task has the statistics %q, another %q", p.Stats, d.Stats())
	}
	for c, rows := range p.Rows {
		for ; len(rows) >= width && width > 0; rows = rows[width:] {
			if err := d.AppendChain(from+c, rows[:d.Dim()], rows[d.Dim():width]); err != nil {
				return err
			}
		}
	}
	for k, v := range p.Attrs {
		d.SetAttr(k, v)
	}
	for _, n := range p.Notes {
		if !slices.Contains(d.Notes(), n) {
			d.AddNote(n)
		}
	}
	return nil
}

// hash is the hash of data.
func hash(b infer.Batch) (string, error) { return infer.Full(b).Fingerprint() }
