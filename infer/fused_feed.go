package infer

import (
	"unsafe"

	"github.com/kelvin-ppl/kelvin/infer/internal/fuse"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// feed is where the next n updates have their data from: one batch for all of them, minibatches that each takes by
// itself from all of the data, or batches of the user's, which are copied one after another.
type feed struct {
	n      int
	size   int     // rows that an update takes; 0 for one batch
	window *window // nil for one batch
	// next takes the batches of n updates, or of fewer. It may set size and window.
	next func(n int) (b Batch, taken int, err error)
}

// feed says from where at most n updates have their data.
func (f *fused) feed(n int) (*feed, error) {
	switch b := f.batches.(type) {
	case *full:
		return &feed{n: n, next: func(n int) (Batch, int, error) {
			b.given.Add(int64(n))
			batch, err := b.typed.of(b.batch)
			return batch, n, err
		}}, nil
	case *minibatches:
		if f.watched {
			break
		}
		n, size := b.alike(n)
		data, err := b.typed.of(b.data)
		if err != nil {
			return nil, err
		}
		w, ok := f.windows[size]
		if !ok {
			if w, err = newWindow(data, b.n, size); err == nil && w != nil && b.uneven() {
				err = w.perEpoch(b.per)
			}
			if err != nil {
				return nil, err
			}
			f.windows[size] = w
		}
		if w == nil {
			break
		}
		return &feed{n: n, size: size, window: w, next: func(n int) (Batch, int, error) {
			f.index = b.take(n, f.index[:0])
			return w.batch, n, nil
		}}, nil
	default:
		if !f.watched {
			d := &feed{n: n}
			d.next = func(n int) (Batch, int, error) { return f.queue.take(f, d, n) }
			return d, nil
		}
	}
	return &feed{n: 1, next: func(int) (Batch, int, error) {
		b, err := f.batches.Next()
		return b, 1, err
	}}, nil
}

// alike is how many batches from the next one on have its size, at most n.
func (m *walk) alike(n int) (alike, size int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rest := m.n % m.o.Size
	switch {
	case !m.uneven():
		return n, m.o.Size
	case m.at.Index == m.per-1:
		return 1, rest
	}
	return min(n, m.per-1-m.at.Index), m.o.Size
}

// take appends the indices of the next n batches.
func (m *walk) take(n int, index []int) []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	for range n {
		if m.ready != m.at.Epoch+1 {
			m.shuffle()
		}
		from := m.at.Index * m.o.Size
		index = append(index, m.order[from:min(from+m.o.Size, m.n)]...)
		if m.at.Index++; m.at.Index == m.per {
			m.at = Position{Epoch: m.at.Epoch + 1}
		}
	}
	return index
}

// window are tensors that native code puts one minibatch after another in.
type window struct {
	batch   Batch
	rows    []fuse.Rows
	tensors []torch.Tensor
}

// widths are the bytes of the elements that native code reads.
var widths = map[gotch.DType]int{gotch.Double: 8, gotch.Float: 4, gotch.Int64: 8, gotch.Uint8: 1, gotch.Bool: 1}

// newWindow is a window on n data for minibatches of a size; nil where native code cannot read them.
func newWindow(data Batch, n, size int) (*window, error) {
	w := &window{batch: Batch{}}
	for _, name := range data.names() {
		from, err := data[name].T().Contiguous(false)
		if err != nil {
			return nil, err
		}
		to, err := torch.Copy(torch.Of(torch.Must(from.Narrow(0, 0, int64(size), false))))
		if err != nil {
			return nil, err
		}
		torch.Detach(torch.Of(from), to)
		w.tensors = append(w.tensors, torch.Of(from), to)
		device, err := torch.DeviceOf(torch.Of(from))
		if err != nil {
			return nil, err
		}
		dtype, err := torch.DTypeOfTensor(torch.Of(from))
		if err != nil {
			return nil, err
		}
		if widths[dtype] == 0 || device != torch.CPU {
			w.free()
			return nil, nil
		}
		count, err := torch.Numel(torch.Of(from))
		if err != nil {
			return nil, err
		}
		r := fuse.Rows{Bytes: count / n * widths[dtype]}
		for _, a := range []struct {
			of torch.Tensor
			to *unsafe.Pointer
		}{{torch.Of(from), &r.From}, {to, &r.To}} {
			if *a.to, err = ts.KelvinData(a.of.T(), int(dtype.CInt())); err != nil {
				return nil, err
			}
		}
		w.rows, w.batch[name] = append(w.rows, r), to
	}
	return w, nil
}

// perEpoch makes the batch one of an epoch of unequal ones.
func (w *window) perEpoch(batches int) error {
	if err := w.batch.SetPerEpoch(batches); err != nil {
		return err
	}
	t := w.batch[epochEntry]
	torch.Detach(t)
	w.tensors = append(w.tensors, t)
	return nil
}

func (w *window) free() {
	if w != nil {
		torch.Free(w.tensors...)
	}
}
