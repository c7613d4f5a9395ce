package content

// Limits bound what a reader takes from a file. They have the meaning of store.Limits.
type Limits struct {
	Elements  int64
	Inflation int64
	Names     int
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
}

// NewBudget is a budget without bytes.
func NewBudget(l Limits) *Budget { return &Budget{Limits: l.Fill()} }

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
	return nil
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
