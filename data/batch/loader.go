package batch

import (
	"fmt"
	"math/bits"

	"github.com/kelvin-ppl/kelvin/data/large"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/parallel"
	"github.com/kelvin-ppl/kelvin/torch"
)

// LoaderOptions are the options of [NewLoader].
type LoaderOptions struct {
	Size int    // rows in a batch; required
	Seed uint64 // of the shuffles
	// KeepOrder takes the rows in their order instead of shuffling them each epoch.
	KeepOrder bool
	// DropLast leaves out the rows of each epoch that do not fill a batch. Without it the last batch is smaller.
	DropLast bool
	// Ahead is how many batches are read ahead, each by a goroutine of its own: 0 is 4, and infer.None none. The
	// batches are the same whatever it is. All of them together may have 4 GiB.
	Ahead int
}

// mostBytes and mostAhead bound what is read ahead.
const (
	mostBytes = 1 << 32
	mostAhead = 1024
)

// Loader gives batches of a table without replacement: an infer.Batches. Tensor name of a batch of n rows has the
// shape [n, shape of a row...] and the type of the column, in main memory. Make one with [NewLoader].
//
// A goroutine reads one batch and ends; there are at most LoaderOptions.Ahead of them, and none starts but in Next. So
// none outlives a run by more than the batch that it reads, and a Loader needs no Close.
type Loader struct {
	table   *large.Table
	columns []large.Column
	o       LoaderOptions
	n       int
	per     int // batches in an epoch
	at      infer.Position
	queue   []*reading // those from at on, in their order
	last    *reading   // that of the batch before at, in case a run asks for it again
	shuffle *large.Shuffle
	epoch   int // of shuffle
}

var _ infer.Batches = (*Loader)(nil)

// NewLoader makes batches of a table, which must stay open meanwhile.
func NewLoader(table *large.Table, o LoaderOptions) (*Loader, error) {
	n := table.Rows()
	if n == 0 {
		return nil, fmt.Errorf("batch.NewLoader: the table is empty: expected one that large.Open made: %w", infer.ErrConfig)
	}
	if o.Size < 1 || o.Size > n {
		return nil, wrong("Size", o.Size, "it must be from 1 to the %d rows", n)
	}
	switch {
	case o.Ahead == 0:
		o.Ahead = 4
	case o.Ahead == infer.None:
		o.Ahead = 0
	case o.Ahead < 0 || o.Ahead > mostAhead:
		return nil, wrong("Ahead", o.Ahead, "it must be from 0 to %d, or infer.None", mostAhead)
	}
	if o.KeepOrder && o.DropLast && n%o.Size != 0 {
		return nil, wrong("DropLast", true, "with KeepOrder the last %d of %d rows would never be seen: shuffle, keep the "+
			"last batch, or give a Size that divides the rows", n%o.Size, n)
	}
	l := &Loader{table: table, columns: table.Columns(), o: o, n: n, per: n / o.Size, epoch: -1}
	if !o.DropLast && n%o.Size != 0 {
		l.per++
	}
	row := uint64(0)
	for _, c := range l.columns {
		row += min(uint64(c.Bytes), 2*mostBytes)
	}
	if high, low := bits.Mul64(row*uint64(o.Ahead+1), uint64(o.Size)); high != 0 || low > mostBytes {
		return nil, wrong("Size", o.Size, "with rows of %d bytes and %d batches ahead it takes more than %d bytes", row,
			o.Ahead, int(mostBytes))
	}
	return l, nil
}

func wrong(field string, value any, allowed string, args ...any) error {
	return &infer.FieldError{Type: "batch.LoaderOptions", Field: field, Value: value,
		Allowed: fmt.Sprintf(allowed, args...)}
}

// check refuses a Loader that NewLoader did not make.
func (l *Loader) check() error {
	if l == nil || l.table == nil {
		return fmt.Errorf("batch: the Loader is empty: use batch.NewLoader: %w", infer.ErrConfig)
	}
	return nil
}

// reading is a batch on its way.
type reading struct {
	at      infer.Position
	done    parallel.Group // which Wait ends when the others are there
	columns []func() (torch.Tensor, error)
	err     error
}

// Next is the next batch. A file that cannot be read, or has become shorter, is an error; the position stays.
func (l *Loader) Next() (infer.Batch, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	for len(l.queue) < l.o.Ahead+1 {
		at := l.at
		if k := len(l.queue); k > 0 {
			at = l.after(l.queue[k-1].at)
		}
		r, err := l.start(at)
		if err != nil {
			return nil, err
		}
		l.queue = append(l.queue, r)
	}
	r := l.queue[0]
	r.done.Wait()
	if r.err != nil {
		l.queue = nil // so that another call tries again
		return nil, fmt.Errorf("loader: batch %d of epoch %d: %w", r.at.Index, r.at.Epoch, r.err)
	}
	out := infer.Batch{}
	for i, c := range l.columns {
		t, err := r.columns[i]()
		if err != nil {
			return nil, fmt.Errorf("loader: column %q: %w", c.Name, err)
		}
		out[c.Name] = t
	}
	if l.per*l.o.Size != l.n && !l.o.DropLast {
		if err := out.SetPerEpoch(l.per); err != nil {
			return nil, fmt.Errorf("loader: %w", err)
		}
	}
	l.queue, l.last, l.at = l.queue[1:], r, l.after(r.at)
	return out, nil
}

// after is the position that follows.
func (l *Loader) after(p infer.Position) infer.Position {
	if p.Index++; p.Index == l.per {
		return infer.Position{Epoch: p.Epoch + 1}
	}
	return p
}

// start begins to read a batch.
func (l *Loader) start(at infer.Position) (*reading, error) {
	if l.epoch != at.Epoch && !l.o.KeepOrder {
		s, err := large.NewShuffle(l.n, l.o.Seed, uint64(at.Epoch))
		if err != nil {
			return nil, err
		}
		l.shuffle, l.epoch = s, at.Epoch
	}
	r := &reading{at: at, columns: make([]func() (torch.Tensor, error), len(l.columns))}
	// What the goroutine sees of the loader does not change.
	table, columns, shuffle, from := l.table, l.columns, l.shuffle, at.Index*l.o.Size
	size := min(l.o.Size, l.n-from)
	read := func() {
		rows := make([]int, size)
		for i := range rows {
			if rows[i] = from + i; shuffle != nil {
				rows[i] = shuffle.At(rows[i])
			}
		}
		for i, c := range columns {
			if r.columns[i], r.err = gather(table, c, rows); r.err != nil {
				return
			}
		}
	}
	if l.o.Ahead == 0 {
		read()
	} else {
		r.done.Go(read)
	}
	return r, nil
}

// gather reads rows of a column. What it returns makes a tensor of them.
func gather(t *large.Table, c large.Column, rows []int) (func() (torch.Tensor, error), error) {
	switch c.Type {
	case "float64":
		return gatherOf[float64](t, c, rows)
	case "float32":
		return gatherOf[float32](t, c, rows)
	case "int64":
		return gatherOf[int64](t, c, rows)
	case "int32":
		return gatherOf[int32](t, c, rows)
	}
	return gatherOf[uint8](t, c, rows)
}

func gatherOf[T large.Value](t *large.Table, c large.Column, rows []int) (func() (torch.Tensor, error), error) {
	values, err := large.Gather[T](t, c.Name, rows)
	return func() (torch.Tensor, error) {
		return torch.FromSlice(values, append([]int{len(rows)}, torch.Ints(c.Shape)...)...)
	}, err
}

// Position says which batch Next gives.
func (l *Loader) Position() infer.Position {
	if l == nil {
		return infer.Position{}
	}
	return l.at
}

// Seek goes to a batch. It reads nothing, and no row is drawn in vain: the cost is the same for every position.
func (l *Loader) Seek(p infer.Position) error {
	if err := l.check(); err != nil {
		return err
	}
	if p.Epoch < 0 || p.Index < 0 || p.Index >= l.per {
		return fmt.Errorf("loader: there is no batch %d of epoch %d: an epoch has %d batches", p.Index, p.Epoch, l.per)
	}
	switch {
	case p == l.at:
	case l.last != nil && l.last.at == p: // a run goes back by one where it took one too many
		l.queue = append([]*reading{l.last}, l.queue...)
	default:
		l.queue = nil
	}
	l.at, l.last = p, nil
	return nil
}

// Fingerprint identifies the table, by [large.Table.Fingerprint], the size of the batches and their order. A file whose
// size has changed since it was opened is an error.
func (l *Loader) Fingerprint() (string, error) {
	if err := l.check(); err != nil {
		return "", err
	}
	sum, err := l.table.Fingerprint()
	if err != nil {
		return "", fmt.Errorf("loader: %w", err)
	}
	return fmt.Sprintf("loader of %d, seed %d, keep order %v, drop last %v, %s", l.o.Size, l.o.Seed, l.o.KeepOrder,
		l.o.DropLast, sum), nil
}
