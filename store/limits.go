package store

import (
	"io"
	"time"
)

// Limits bound what a reader takes from a file, so that a damaged or hostile one cannot end the program. A file over a
// limit is an [ErrLimit] that names the limit. The zero value has the defaults, which [Open] and [Read] use.
type Limits struct {
	// Elements is the largest count of numbers in one array, or in the draws of one group; 0 is 2^31 (16 GiB).
	Elements int
	// Inflation is how many bytes of memory a reader may use for each byte that is stored, beside a free 64 MiB; 0 is
	// 100. Compressed chunks and shapes without data can ask for more.
	Inflation int
	// Names is the largest count of sites and statistics, or of variables of a group; 0 is 2^20.
	Names int
	// Time is how long the reading of a file, or of a Zarr store, may take; 0 is a minute, and a second for each MiB.
	Time time.Duration
}

// filled has the defaults.
func (l Limits) filled() Limits {
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

// freeMemory is the memory that a reader may use whatever the size of the files.
const freeMemory = 64 << 20

// readBudget grants memory in proportion to the bytes that are present. A file of a few bytes can ask for terabytes, by
// a shape without chunks or by a chunk of zeros; such a request is refused before the memory is taken.
type readBudget struct {
	Limits
	present, used int
	began         time.Time
}

// newBudget is a budget without bytes, whose time begins now.
func newBudget(l Limits) *readBudget { return &readBudget{Limits: l.filled(), began: time.Now()} }

// InTime is an error when the reader has taken too long: by default longer than a minute, and a second for each MiB.
func (b *readBudget) InTime() error {
	allowed := b.Time
	if allowed <= 0 {
		allowed = time.Minute + time.Duration(b.present>>20)*time.Second
	}
	if taken := time.Since(b.began); taken > allowed {
		return because(ErrLimit, "reading takes too long; the limit Time is %v here", allowed)
	}
	return nil
}

// Reader counts the bytes of r as present and stops reading when the time is over.
func (b *readBudget) Reader(r io.Reader) io.Reader { return &countedReader{r, b} }

type countedReader struct {
	r io.Reader
	b *readBudget
}

func (c *countedReader) Read(p []byte) (int, error) {
	if err := c.b.InTime(); err != nil {
		return 0, err
	}
	n, err := c.r.Read(p)
	c.b.Found(n)
	return n, err
}

// Found tells of further bytes that are present.
func (b *readBudget) Found(bytes int) { b.present += bytes }

// Take asks for memory. Give returns what is no longer used.
func (b *readBudget) Take(bytes int) error {
	room := freeMemory + b.present*b.Inflation - b.used
	if bytes < 0 || bytes > room {
		return because(ErrLimit,
			"it takes %d bytes of memory, but only %d are stored; the limit Inflation allows %d times as much and %d MiB",
			max(bytes, 0), b.present, b.Inflation, freeMemory>>20)
	}
	b.used += bytes
	return b.InTime()
}

// Give returns memory.
func (b *readBudget) Give(bytes int) { b.used -= bytes }

// Numbers checks the count of numbers of one array and takes the memory for them.
func (b *readBudget) Numbers(n int) error {
	if err := b.Count(n); err != nil {
		return err
	}
	return b.Take(8 * n)
}

// Count checks the count of numbers of one array.
func (b *readBudget) Count(n int) error {
	if n < 0 || n > b.Elements {
		return because(ErrLimit, "%d numbers are too many; the limit Elements is %d", n, b.Elements)
	}
	return nil
}

// Named checks a count of names: variables, sites, statistics.
func (b *readBudget) Named(n int) error {
	if n > b.Names {
		return because(ErrLimit, "%d names are too many; the limit Names is %d", n, b.Names)
	}
	return nil
}
