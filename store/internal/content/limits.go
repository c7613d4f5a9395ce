package content

import (
	"io"
	"time"
)

// Limits bound what a reader takes from a file. They have the meaning of store.Limits.
type Limits struct {
	Elements  int64
	Inflation int64
	Names     int
	Time      time.Duration
}

// Fill sets the defaults.
func (l Limits) Fill() Limits {
	if l.Elements <= 0 {
		l.Elements = 1 << 31
	}
	if l.Inflation <= 0 {
		l.Inflation = 100
	}
	if l.Names <= 0 {
		l.Names = 1 << 20
	}
	return l
}

// free is the memory that a reader may use whatever the size of the files.
const free = 64 << 20

// Budget grants memory in proportion to the bytes that are present. A file of a few bytes can ask for terabytes, by a
// shape without chunks or by a chunk of zeros; such a request is refused before the memory is taken.
type Budget struct {
	Limits
	present, used int64
	began         time.Time
}

// NewBudget is a budget without bytes, whose time begins now.
func NewBudget(l Limits) *Budget { return &Budget{Limits: l.Fill(), began: time.Now()} }

// InTime is an error when the reader has taken too long: by default longer than a minute, and a second for each MiB.
func (b *Budget) InTime() error {
	allowed := b.Time
	if allowed <= 0 {
		allowed = time.Minute + time.Duration(b.present>>20)*time.Second
	}
	if taken := time.Since(b.began); taken > allowed {
		return Because(ErrLimit, "reading takes too long; the limit Time is %v here", allowed)
	}
	return nil
}

// Reader counts the bytes of r as present and stops reading when the time is over.
func (b *Budget) Reader(r io.Reader) io.Reader { return &counted{r, b} }

type counted struct {
	r io.Reader
	b *Budget
}

func (c *counted) Read(p []byte) (int, error) {
	if err := c.b.InTime(); err != nil {
		return 0, err
	}
	n, err := c.r.Read(p)
	c.b.Found(int64(n))
	return n, err
}

// Found tells of further bytes that are present.
func (b *Budget) Found(bytes int64) { b.present += bytes }

// Take asks for memory. Give returns what is no longer used.
func (b *Budget) Take(bytes int64) error {
	room := free + b.present*b.Inflation - b.used
	if bytes < 0 || bytes > room {
		return Because(ErrLimit,
			"it takes %d bytes of memory, but only %d are stored; the limit Inflation allows %d times as much and %d MiB",
			max(bytes, 0), b.present, b.Inflation, free>>20)
	}
	b.used += bytes
	return b.InTime()
}

// Give returns memory.
func (b *Budget) Give(bytes int64) { b.used -= bytes }

// Numbers checks the count of numbers of one array and takes the memory for them.
func (b *Budget) Numbers(n int64) error {
	if err := b.Count(n); err != nil {
		return err
	}
	return b.Take(8 * n)
}

// Count checks the count of numbers of one array.
func (b *Budget) Count(n int64) error {
	if n < 0 || n > b.Elements {
		return Because(ErrLimit, "%d numbers are too many; the limit Elements is %d", n, b.Elements)
	}
	return nil
}

// Named checks a count of names: variables, sites, statistics.
func (b *Budget) Named(n int) error {
	if n > b.Names {
		return Because(ErrLimit, "%d names are too many; the limit Names is %d", n, b.Names)
	}
	return nil
}
