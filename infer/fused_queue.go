package infer

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/kelvin-ppl/kelvin/infer/internal/fuse"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// queue holds batches of the user's for the updates of one call. They are copied as they come: an iterator may fill the
// same tensors again.
type queue struct {
	shelves []*shelf // for the shapes so far, at most mostShapes
	failed  error    // of a batch that no update has asked for yet
}

// take fills a feed with the batches of n updates, or of fewer: those that have the shapes of the first.
func (q *queue) take(f *fused, d *feed, n int) (b Batch, taken int, err error) {
	if q.failed != nil {
		return nil, 0, q.failed
	}
	if b, err = f.batches.Next(); err != nil {
		return nil, 0, err
	}
	s, err := q.shelf(b)
	if s == nil {
		return b, 1, err
	}
	f.index = f.index[:0]
	for {
		if err := s.put(b, taken); err != nil {
			if taken == 0 {
				return nil, 0, err
			}
			q.failed = err
			break
		}
		f.index = append(f.index, taken)
		if taken++; taken == min(n, s.room) {
			break
		}
		at := f.batches.Position()
		if b, q.failed = f.batches.Next(); q.failed != nil {
			break
		}
		if !s.fits(b) {
			q.failed = f.batches.Seek(at)
			break
		}
	}
	d.window, d.size = s.window, 1
	return s.window.batch, taken, nil
}

// shelf is the one for the shapes of a batch; nil where its data are not copied.
func (q *queue) shelf(b Batch) (*shelf, error) {
	for _, s := range q.shelves {
		if s.fits(b) {
			return s, nil
		}
	}
	if len(q.shelves) == mostShapes {
		return nil, nil
	}
	s, err := newShelf(b)
	if s != nil {
		q.shelves = append(q.shelves, s)
	}
	return s, err
}

func (q *queue) free() {
	for _, s := range q.shelves {
		s.window.free()
	}
}

// shelf holds batches of one kind of shapes.
type shelf struct {
	window *window // what native code reads, and where the batches are
	slots  []slot
	room   int // batches
}

// slot is a tensor of the batches.
type slot struct {
	name  string
	shape []int
	dtype int
	bytes int
	to    unsafe.Pointer
}

// What a shelf holds at most, in bytes: a batch is copied where that takes less than an update.
const (
	shelfBytes = 1 << 22
	batchBytes = 1 << 18
)

// newShelf is a shelf for batches like b; nil where they are not copied.
func newShelf(b Batch) (*shelf, error) {
	s := &shelf{}
	total := 0
	for _, name := range b.names() {
		d, err := b[name].T().KelvinDescribe()
		if err != nil {
			return nil, nil // which find says better
		}
		t := slot{name: name, shape: torch.Ints(d.Shape), dtype: d.DType, bytes: widths[gotch.CKind2DType(int32(d.DType))]}
		for _, n := range d.Shape {
			t.bytes *= int(n)
		}
		if total += t.bytes; t.bytes == 0 && name != epochEntry || total > batchBytes {
			return nil, nil
		}
		s.slots = append(s.slots, t)
	}
	if len(s.slots) == 0 || !s.fits(b) {
		return nil, nil
	}
	s.room = min(shelfBytes/total, 1<<14)
	s.window = &window{batch: Batch{}}
	for i := range s.slots {
		t := &s.slots[i]
		to, err := torch.Copy(b[t.name])
		if err != nil {
			return nil, err
		}
		stock, err := ts.Zeros([]int64{int64(s.room * t.bytes)}, gotch.Uint8, torch.CPU)
		if err != nil {
			return nil, err
		}
		torch.Detach(to, torch.Of(stock))
		s.window.tensors, s.window.batch[t.name] = append(s.window.tensors, to, torch.Of(stock)), to
		r := fuse.Rows{Bytes: t.bytes}
		if r.To, err = ts.KelvinData(to.T(), t.dtype); err != nil {
			return nil, err
		}
		if r.From, err = ts.KelvinData(stock, int(gotch.Uint8.CInt())); err != nil {
			return nil, err
		}
		t.to = r.From
		s.window.rows = append(s.window.rows, r)
	}
	return s, nil
}

// fits says whether a batch is like those of the shelf.
func (s *shelf) fits(b Batch) bool {
	if len(b) != len(s.slots) {
		return false
	}
	for i := range s.slots {
		t := &s.slots[i]
		x := b[t.name]
		if x == (torch.Tensor{}) {
			return false
		}
		d, err := x.T().KelvinDescribe()
		if err != nil || d.Device >= 0 || !d.Contiguous || d.DType != t.dtype || !slices.Equal(torch.Ints(d.Shape), t.shape) {
			return false
		}
	}
	return true
}

// put copies a batch that fits, which nobody frees meanwhile.
func (s *shelf) put(b Batch, at int) error {
	for i := range s.slots {
		t := &s.slots[i]
		x := b[t.name].T()
		if err := ts.KelvinHold(x); err != nil {
			return fmt.Errorf("batch tensor %q: %w", t.name, err)
		}
		from, err := ts.KelvinData(x, t.dtype)
		if err == nil {
			copy(unsafe.Slice((*byte)(t.to), s.room*t.bytes)[at*t.bytes:],
				unsafe.Slice((*byte)(from), t.bytes))
		}
		ts.KelvinLet(x)
		if err != nil {
			return fmt.Errorf("batch tensor %q: %w", t.name, err)
		}
	}
	return nil
}
