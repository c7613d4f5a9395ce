package large

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	magic      = "\x93NUMPY"
	mostHeader = 1 << 20 // bytes of a header; NumPy's have about 128
	mostDims   = 64      // dimensions; NumPy has at most as many
)

// kind is a type of numbers.
type kind struct {
	name  string // in Go and in NumPy
	descr string // in a header
	bytes int64
}

var kinds = []kind{{"float64", "<f8", 8}, {"float32", "<f4", 4}, {"int64", "<i8", 8}, {"int32", "<i4", 4},
	{"uint8", "|u1", 1}}

// header is what a file says about its numbers.
type header struct {
	kind  kind
	rows  int64
	shape []int64 // of a row
	row   int64   // bytes of a row
	start int64   // of the numbers in the file
	text  []byte  // all bytes before start
}

// readHeader reads and checks the header of a file of so many bytes. An error says what is wrong and what was expected.
func readHeader(f io.ReaderAt, size int64) (*header, error) {
	fixed := make([]byte, 12)
	n, err := f.ReadAt(fixed, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if n < 10 || string(fixed[:6]) != magic {
		return nil, fmt.Errorf("it is no .npy file: expected that it begins with %q and a header", magic)
	}
	h, length := &header{start: 10}, int64(binary.LittleEndian.Uint16(fixed[8:]))
	switch major, minor := fixed[6], fixed[7]; {
	case major == 1 && minor == 0:
	case (major == 2 || major == 3) && minor == 0 && n == 12:
		h.start, length = 12, int64(binary.LittleEndian.Uint32(fixed[8:]))
	default:
		return nil, fmt.Errorf("it has format %d.%d of .npy and %d bytes: expected 1.0, 2.0 or 3.0", major, minor, size)
	}
	if length > mostHeader || h.start+length > size {
		return nil, fmt.Errorf("its header claims %d bytes, the file has %d: expected at most %d, and no more than the file",
			length, size, mostHeader)
	}
	h.text = make([]byte, h.start+length)
	if _, err := f.ReadAt(h.text, 0); err != nil && err != io.EOF {
		return nil, err
	}
	if err := h.parse(string(h.text[h.start:])); err != nil {
		return nil, err
	}
	h.start += length
	return h, h.fits(size)
}

// fits checks the shape against the size of the file.
func (h *header) fits(size int64) error {
	h.row = h.kind.bytes
	for _, n := range h.shape {
		high, low := bits.Mul64(uint64(h.row), uint64(n))
		if n < 1 || high != 0 || low >= 1<<62 {
			return fmt.Errorf("a row has shape %v: expected dimensions of at least 1, and fewer than 2^62 bytes", h.shape)
		}
		h.row = int64(low)
	}
	have := size - h.start
	if high, low := bits.Mul64(uint64(h.rows), uint64(h.row)); h.rows < 1 || high != 0 || low != uint64(have) {
		return fmt.Errorf("its header claims %d rows of %d bytes (%s, shape %v), the file has %d bytes after it: "+
			"expected at least one row and just these bytes", h.rows, h.row, h.kind.name, h.shape, have)
	}
	return nil
}

// parse reads the dictionary of a header: {'descr': '<f8', 'fortran_order': False, 'shape': (10, 3), }.
func (h *header) parse(text string) error {
	if !utf8.ValidString(text) {
		return fmt.Errorf("its header has other bytes: expected UTF-8")
	}
	p := &literal{rest: text}
	var descr, order string
	var shape []int64
	seen := []string{}
	err := p.dictionary(func(key string) (err error) {
		if slices.Contains(seen, key) {
			return fmt.Errorf("%q comes twice", key)
		}
		switch seen = append(seen, key); key {
		case "descr":
			if descr, err = p.text(); err != nil {
				err = fmt.Errorf("descr is not the name of one type (a column is a file of its own): %w", err)
			}
		case "fortran_order":
			order = p.word()
		case "shape":
			shape, err = p.tuple()
		default:
			err = fmt.Errorf("unknown key %q", key)
		}
		return err
	})
	if err == nil && len(seen) != 3 {
		err = fmt.Errorf("it has %q", seen)
	}
	if err != nil {
		return fmt.Errorf("its header is damaged: %w: expected a dictionary of descr, fortran_order and shape", err)
	}
	switch order {
	case "False":
	case "True":
		return fmt.Errorf("it is in the order of Fortran: expected that of C, as np.ascontiguousarray gives it")
	default:
		return fmt.Errorf("its fortran_order is %q: expected False", order)
	}
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.descr == descr })
	if i < 0 {
		return fmt.Errorf("its type is %q: expected <f8, <f4, <i8, <i4 or |u1, as x.astype('<f8') gives it", descr)
	}
	if len(shape) == 0 {
		return fmt.Errorf("its shape is (): expected a first dimension that counts the rows")
	}
	h.kind, h.rows, h.shape = kinds[i], shape[0], shape[1:]
	return nil
}

// literal is what is left of a Python literal.
type literal struct{ rest string }

// take takes a token from the beginning, and says whether it was there.
func (p *literal) take(token string) bool {
	p.rest = strings.TrimLeft(p.rest, " \t\n")
	rest, found := strings.CutPrefix(p.rest, token)
	p.rest = rest
	return found
}

// dictionary calls a function for each key, which takes the value.
func (p *literal) dictionary(value func(key string) error) error {
	if !p.take("{") {
		return fmt.Errorf("there is no {")
	}
	for !p.take("}") {
		key, err := p.text()
		if err != nil {
			return err
		}
		if !p.take(":") {
			return fmt.Errorf("there is no : after %q", key)
		}
		if err := value(key); err != nil {
			return err
		}
		if !p.take(",") {
			if !p.take("}") {
				return fmt.Errorf("there is no } at the end")
			}
			break
		}
	}
	if p.take(""); p.rest != "" {
		return fmt.Errorf("%q follows the }", p.rest[:min(len(p.rest), 20)])
	}
	return nil
}

// text is a string in quotes, without escapes.
func (p *literal) text() (string, error) {
	for _, quote := range []string{"'", `"`} {
		if !p.take(quote) {
			continue
		}
		if s, rest, found := strings.Cut(p.rest, quote); found && len(s) < 100 && !strings.Contains(s, `\`) {
			p.rest = rest
			return s, nil
		}
		break
	}
	return "", fmt.Errorf("no string at %q", p.rest[:min(len(p.rest), 20)])
}

// word is what comes before the next delimiter.
func (p *literal) word() string {
	p.take("")
	n := strings.IndexAny(p.rest, " \t\n,:(){}'\"")
	if n < 0 {
		n = len(p.rest)
	}
	w := p.rest[:n]
	p.rest = p.rest[n:]
	return w
}

// tuple is a tuple of sizes.
func (p *literal) tuple() ([]int64, error) {
	if !p.take("(") {
		return nil, fmt.Errorf("the shape is no tuple")
	}
	out := []int64{}
	for !p.take(")") {
		w := strings.TrimSuffix(p.word(), "L") // of Python 2
		n, err := strconv.ParseInt(w, 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("the shape has the size %.30q", w)
		}
		if out = append(out, n); len(out) > mostDims {
			return nil, fmt.Errorf("the shape has more than %d dimensions", mostDims)
		}
		if !p.take(",") {
			if len(out) == 1 || !p.take(")") {
				return nil, fmt.Errorf("the shape is no tuple")
			}
			break
		}
	}
	return out, nil
}
