package infer

import (
	"fmt"
	"hash/crc64"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Batch is the data of one update: named tensors whose first dimension counts the data. A Go number, torch.Of(3), is
// read as a tensor of shape []. A density reads it by Get, which names what is missing; of an unknown name the map
// itself gives the zero Tensor, which counts as 0.
type Batch map[string]torch.Tensor

// Get is a tensor of the batch. It is meant for use inside a model: an unknown name panics with an error that the
// caller of the model returns.
func (b Batch) Get(name string) torch.Tensor {
	t, ok := b[name]
	if !ok || t == (torch.Tensor{}) {
		panic(&ModelError{Name: name, What: "batch tensor",
			Have: slices.DeleteFunc(b.names(), func(n string) bool { return b[n] == (torch.Tensor{}) })})
	}
	return t
}

// Size is the number of data: the common size of the first dimensions.
func (b Batch) Size() (int, error) {
	size := int(-1)
	for _, name := range b.names() {
		shape, err := torch.Shape(b[name])
		if err != nil {
			return 0, fmt.Errorf("batch tensor %q: %w", name, err)
		}
		if len(shape) == 0 {
			return 0, fmt.Errorf("batch tensor %q has shape []: its first dimension must count the data", name)
		}
		if size >= 0 && shape[0] != size {
			return 0, fmt.Errorf("batch tensor %q has %d data, others %d", name, shape[0], size)
		}
		size = shape[0]
	}
	if size <= 0 {
		return 0, fmt.Errorf("the batch is empty")
	}
	return size, nil
}

// epochEntry is the entry of a batch, without elements, whose shape [n, batches, n, 0] says how many batches the epoch
// has that the n data are a part of. A part of the batch has another n, and is none of the epoch.
const epochEntry = "(batches of an epoch)"

// PerEpoch is the number of batches of the epoch that a batch of unequal ones is a part of: so many times its data
// count, that the mean over the epoch is the sum over all data. It is 0 where all batches have the same size, N/n times
// count then, and in a part of such a batch.
func (b Batch) PerEpoch() int {
	t, ok := b[epochEntry]
	if !ok {
		return 0
	}
	if shape := t.Shape(); len(shape) == 4 && shape[0] == shape[2] {
		return shape[1]
	}
	return 0
}

// SetPerEpoch makes a batch one of the unequal batches of an epoch: see [Batch.PerEpoch]. It is for authors of
// [Batches]; the entry belongs to the scope that is open.
func (b Batch) SetPerEpoch(batches int) error {
	n, err := b.Size()
	if err != nil {
		return err
	}
	b[epochEntry], err = torch.FromSlice([]float64{}, n, batches, n, 0)
	return err
}

// Alone is the batch as data of their own: N/n times count, as for methods that add up batches themselves.
func (b Batch) Alone() Batch {
	if _, ok := b[epochEntry]; !ok {
		return b
	}
	out := maps.Clone(b)
	delete(out, epochEntry)
	return out
}

// Tensors is the batch with its Go numbers made into tensors, once; b itself where it has none.
func (b Batch) Tensors() Batch {
	out, copied := b, false
	for name, t := range b {
		if _, number := t.Number(); number && t != (torch.Tensor{}) {
			if !copied {
				out, copied = maps.Clone(b), true
			}
			out[name] = torch.Of(t.T())
		}
	}
	return out
}

func (b Batch) names() []string {
	names := make([]string, 0, len(b))
	for name := range b {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Position is where an iterator of batches stands: a batch of an epoch.
type Position struct {
	Epoch int // passes over the data that are complete
	Index int // batches of this epoch already given
}

// Batches gives one batch after another, without end. Those that a run draws on are its own until it ends: a second run
// on them is refused, because no seed would tell which batches each of them sees. Those of [Full] may be shared.
type Batches interface {
	// Next is the next batch. Its tensors belong to the scope that is open. A run may ask for some ahead of its updates,
	// and copies them then.
	Next() (Batch, error)
	// Position says which batch Next gives, Seek goes there.
	Position() Position
	Seek(Position) error
	// Fingerprint identifies the data, the batch size and the order: runs with equal fingerprints see equal batches.
	Fingerprint() (string, error)
}

// inUse are the batches of the runs that are at work.
var inUse sync.Map

// hold takes the batches for a run, until release is called.
func hold(b Batches) (release func(), err error) {
	var key any = b
	switch own := b.(type) {
	case *full:
		return func() {}, nil
	case *minibatches:
		key = own.walk
	}
	// Values that are no pointers may be equal and yet two.
	if t := reflect.TypeOf(key); t == nil || t.Kind() != reflect.Pointer || t.Elem().Size() == 0 {
		return func() {}, nil
	}
	if _, taken := inUse.LoadOrStore(key, true); taken {
		return nil, &FieldError{Type: optionsName, Field: "Batches", Value: "shared",
			Allowed: "another run is drawing on them, and neither would know its batches: make some for each run"}
	}
	return func() { inUse.Delete(key) }, nil
}

// ofUser are batches of the user's, whose panics name them.
type ofUser struct{ b Batches }

func (u ofUser) Next() (b Batch, err error) {
	err = calling("function Next of Batches", func() (err error) { b, err = u.b.Next(); return err })
	return b, err
}

func (u ofUser) Position() Position { return calling("function Position of Batches", u.b.Position) }

func (u ofUser) Seek(p Position) error {
	return calling("function Seek of Batches", func() error { return u.b.Seek(p) })
}

func (u ofUser) Fingerprint() (text string, err error) {
	err = calling("function Fingerprint of Batches", func() (err error) { text, err = u.b.Fingerprint(); return err })
	return text, err
}

// Full gives the same batch each time: all of the data of a run. They take the place of the program's in every method,
// for updates, starts, notes and the deterministic values of draws. Another number of data than a compiled model counts
// is an error of the run, because each datum would have the wrong weight.
func Full(b Batch) Batches { return &full{batch: b, given: new(atomic.Int64)} }

type full struct {
	batch Batch
	typed *typed // what is given instead; nil for the batch itself
	given *atomic.Int64
}

func (f *full) Next() (Batch, error) {
	f.given.Add(1)
	return f.typed.of(f.batch)
}

func (f *full) Position() Position { return Position{Epoch: int(f.given.Load())} }

func (f *full) Seek(p Position) error {
	f.given.Store(int64(p.Epoch))
	return nil
}

func (f *full) Fingerprint() (string, error) {
	sum, err := checksum(f.batch)
	return "full " + sum, err
}

// MinibatchOptions are the options of [Minibatches].
type MinibatchOptions struct {
	Size int    // data in a batch; required
	Seed uint64 // of the shuffles
	// KeepOrder takes the data in their order instead of shuffling them each epoch.
	KeepOrder bool
	// DropLast leaves out the data of each epoch that do not fill a batch: with KeepOrder they are never seen, which is an
	// error. Without it the last batch is smaller, and data count as often as there are batches in an epoch, whatever the
	// size of theirs (see [Batch.PerEpoch]).
	DropLast bool
}

// Minibatches gives batches of the data without replacement, in an order that is shuffled anew for each epoch. The
// order depends on the seed and the epoch alone (PCG, Fisher-Yates). Goroutines that call Next get different batches.
func Minibatches(data Batch, o MinibatchOptions) (Batches, error) {
	n, err := data.Size()
	if err != nil {
		return nil, fmt.Errorf("infer.Minibatches: %w", err)
	}
	if o.Size < 1 || o.Size > n {
		return nil, &FieldError{Type: "infer.MinibatchOptions", Field: "Size", Value: o.Size,
			Allowed: fmt.Sprintf("it must be from 1 to the %d data", n)}
	}
	if o.KeepOrder && o.DropLast && n%o.Size != 0 {
		return nil, &FieldError{Type: "infer.MinibatchOptions", Field: "DropLast", Value: true,
			Allowed: fmt.Sprintf("with KeepOrder the last %d of %d data would never be seen: shuffle, keep the last batch, or "+
				"give a Size that divides the data", n%o.Size, n)}
	}
	m := &minibatches{data: data, walk: &walk{n: n, o: o, per: n / o.Size}}
	if m.uneven() {
		m.per++
	}
	return m, nil
}

type minibatches struct {
	data  Batch
	typed *typed // of what minibatches are parts instead; nil for the data themselves
	*walk
}

// walk is where minibatches stand. Those of the same data in other types share it.
type walk struct {
	n     int
	per   int // batches in an epoch
	o     MinibatchOptions
	at    Position
	order []int // of epoch ordered-1; kept to be drawn once an epoch
	ready int   // epoch+1 that order belongs to
	mu    sync.Mutex
}

func (m *minibatches) Next() (Batch, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ready != m.at.Epoch+1 {
		m.shuffle()
	}
	from := m.at.Index * m.o.Size
	to := min(from+m.o.Size, m.n)
	data, err := m.typed.of(m.data)
	if err != nil {
		return nil, err
	}
	out := Batch{}
	err = torch.Do(func(s *torch.Scope) error {
		index, err := torch.FromSlice(m.order[from:to])
		if err != nil {
			return err
		}
		moved := map[string]torch.Tensor{}
		for name, t := range data {
			device, err := torch.DeviceOf(t)
			if err != nil {
				return fmt.Errorf("batch tensor %q: %w", name, err)
			}
			at, ok := moved[device.Name]
			if !ok {
				if at, err = torch.To(index, device, torch.DTypeOf[int]()); err != nil {
					return err
				}
				moved[device.Name] = at
			}
			if out[name], err = raw.Of(t.T().IndexSelect(0, at.T(), false)); err != nil {
				return fmt.Errorf("batch tensor %q: %w", name, err)
			}
			s.Keep(out[name])
		}
		if !m.uneven() {
			return nil
		}
		if err := out.SetPerEpoch(m.per); err != nil {
			return err
		}
		s.Keep(out[epochEntry])
		return nil
	})
	if err != nil {
		return nil, err
	}
	if m.at.Index++; m.at.Index == m.per {
		m.at = Position{Epoch: m.at.Epoch + 1}
	}
	return out, nil
}

// uneven says whether the last batch of an epoch is smaller than the others.
func (m *walk) uneven() bool { return !m.o.DropLast && m.n%m.o.Size != 0 }

func (m *walk) shuffle() {
	if m.order == nil {
		m.order = make([]int, m.n)
	}
	for i := range m.order {
		m.order[i] = i
	}
	if !m.o.KeepOrder {
		r := rand.New(rand.NewPCG(m.o.Seed, uint64(m.at.Epoch)))
		r.Shuffle(len(m.order), func(i, j int) { m.order[i], m.order[j] = m.order[j], m.order[i] })
	}
	m.ready = m.at.Epoch + 1
}

func (m *walk) Position() Position {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at
}

func (m *walk) Seek(p Position) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.Epoch < 0 || p.Index < 0 || p.Index >= m.per {
		return fmt.Errorf("infer.Minibatches: there is no batch %d of epoch %d: an epoch has %d batches",
			p.Index, p.Epoch, m.per)
	}
	m.at = p
	return nil
}

func (m *minibatches) Fingerprint() (string, error) {
	sum, err := checksum(m.data)
	return fmt.Sprintf("minibatches of %d, seed %d, keep order %v, drop last %v, %s", m.o.Size, m.o.Seed, m.o.KeepOrder,
		m.o.DropLast, sum), err
}

// checksum identifies named tensors by their shapes, types and values.
func checksum(b Batch) (string, error) {
	table := crc64.MakeTable(crc64.ECMA)
	var sum uint64
	out := ""
	for _, name := range b.names() {
		shape, err := torch.Shape(b[name])
		if err != nil {
			return "", fmt.Errorf("batch tensor %q: %w", name, err)
		}
		dtype, err := torch.DTypeOfTensor(b[name])
		if err != nil {
			return "", fmt.Errorf("batch tensor %q: %w", name, err)
		}
		values, err := torch.ToSlice[float64](b[name])
		if err != nil {
			return "", fmt.Errorf("batch tensor %q: %w", name, err)
		}
		sum = crc64.Update(sum, table, float64Bytes(values))
		out += fmt.Sprintf("%s%v %v ", name, shape, dtype)
	}
	return fmt.Sprintf("%s%016x", out, sum), nil
}
