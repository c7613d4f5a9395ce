package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxHeader is the longest header that the format allows.
const maxHeader = 100_000_000

// File is an open file. Its methods may be called from any goroutine, Close apart.
type File struct {
	// Metadata are the texts beside the tensors; nil for none.
	Metadata map[string]string
	path     string
	tensors  []Tensor // in the order of their bytes
	data     io.ReaderAt
	close    func() error
}

// Open reads the header of a file, and leaves the elements for later. Close it when done.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	file, err := open(f)
	if err != nil {
		_ = f.Close()
		return nil, in(path, err)
	}
	file.path, file.close = path, f.Close
	return file, nil
}

func open(f *os.File) (*File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, &Error{Reason: "it is no regular file"}
	}
	return Read(f, int(info.Size()))
}

// Read is [Open] of size bytes that are elsewhere, such as those of a bytes.Reader.
func Read(data io.ReaderAt, size int) (*File, error) {
	if data == nil {
		return nil, &Error{Reason: "there are no bytes to read"}
	}
	if size < 8 {
		return nil, &Error{Reason: fmt.Sprintf("it has %d bytes: expected 8 for the length of the header", size)}
	}
	var length [8]byte
	if _, err := data.ReadAt(length[:], 0); err != nil {
		return nil, fmt.Errorf("safetensors: the length of the header: %w", err)
	}
	claimed, rest := binary.LittleEndian.Uint64(length[:]), size-8
	if claimed > maxHeader || claimed > uint64(rest) {
		return nil, &Error{Reason: fmt.Sprintf("its header claims %d bytes: expected at most the %d that follow, and "+
			"at most %d", claimed, rest, maxHeader)}
	}
	text := make([]byte, claimed)
	if _, err := data.ReadAt(text, 8); err != nil {
		return nil, fmt.Errorf("safetensors: the header: %w", err)
	}
	f := &File{data: io.NewSectionReader(data, int64(8+int(claimed)), int64(rest-int(claimed)))}
	if err := f.header(text, rest-int(claimed)); err != nil {
		return nil, err
	}
	return f, nil
}

// entry is a tensor in the header.
type entry struct {
	DType   *string `json:"dtype"`
	Shape   *[]int  `json:"shape"`
	Offsets *[]int  `json:"data_offsets"`
}

// header reads the tensors, for elements of so many bytes.
func (f *File) header(text []byte, size int) error {
	if !utf8.Valid(text) {
		return &Error{Reason: "its header is no UTF-8"}
	}
	if !bytes.HasPrefix(text, []byte("{")) {
		return &Error{Reason: "its header does not begin with {: expected a JSON object"}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	_, _ = d.Token() // the brace
	seen := map[string]bool{}
	end := map[string]int{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return &Error{Reason: "its header is no JSON: " + err.Error()}
		}
		name := token.(string) // the key of an object
		if seen[name] {
			return &Error{Tensor: name, Reason: "it is in the header twice"}
		}
		seen[name] = true
		if name == "__metadata__" {
			if err := d.Decode(&f.Metadata); err != nil {
				return &Error{Reason: "its __metadata__: expected texts: " + err.Error()}
			}
			continue
		}
		var e entry
		if err := d.Decode(&e); err != nil {
			return &Error{Tensor: name, Reason: "its entry in the header: " + err.Error()}
		}
		if e.DType == nil || e.Shape == nil || e.Offsets == nil || len(*e.Offsets) != 2 {
			return &Error{Tensor: name, Reason: "its entry must have dtype, shape and two data_offsets"}
		}
		t := Tensor{Name: name, DType: *e.DType, Shape: *e.Shape, begin: (*e.Offsets)[0]}
		length, err := t.bytes()
		if err != nil {
			return err
		}
		if from, to := t.begin, (*e.Offsets)[1]; from < 0 || to > size || from > to || to-from != length {
			return &Error{Tensor: name,
				Reason: fmt.Sprintf("its data_offsets are %d to %d: expected the %d bytes of %s %v "+
					"within the %d of the file", from, to, length, t.DType, t.Shape, size)}
		}
		f.tensors, end[name] = append(f.tensors, t), (*e.Offsets)[1]
	}
	if _, err := d.Token(); err != nil {
		return &Error{Reason: "its header is no JSON: " + err.Error()}
	}
	if rest := strings.TrimRight(string(text[d.InputOffset():]), " \t\r\n\x00"); rest != "" {
		return &Error{Reason: "its header goes on after the object"}
	}
	slices.SortStableFunc(f.tensors, func(a, b Tensor) int {
		if a.begin != b.begin {
			return min(1, max(-1, a.begin-b.begin))
		}
		return min(1, max(-1, end[a.Name]-end[b.Name]))
	})
	at := 0
	for _, t := range f.tensors {
		if t.begin != at {
			return &Error{Tensor: t.Name,
				Reason: fmt.Sprintf("it begins at byte %d: expected %d, where the one before ends",
					t.begin, at)}
		}
		at = end[t.Name]
	}
	if at != size {
		return &Error{Reason: fmt.Sprintf("it has %d bytes of elements: expected the %d of its tensors", size, at)}
	}
	return nil
}

// Close closes the file.
func (f *File) Close() error {
	if f == nil || f.close == nil {
		return nil
	}
	return f.close()
}

// Tensors are the tensors in the order of the file.
func (f *File) Tensors() []Tensor {
	if f == nil {
		return nil
	}
	out := slices.Clone(f.tensors)
	for i := range out {
		out[i].Shape = slices.Clone(out[i].Shape)
	}
	return out
}

// Values are the elements of a tensor in row-major order. Integers that a float64 cannot hold are an error, and so are
// types of the format that are not read, such as U16 and F8_E4M3.
func (f *File) Values(name string) ([]float64, error) {
	if f == nil {
		return nil, &Error{Tensor: name, Reason: "there is no file"}
	}
	i := slices.IndexFunc(f.tensors, func(t Tensor) bool { return t.Name == name })
	if i < 0 {
		var names []string
		for _, t := range f.tensors {
			names = append(names, t.Name)
		}
		slices.Sort(names)
		return nil, in(f.path, &Error{Tensor: name, Reason: fmt.Sprintf("it is not in the file, which has %q", names)})
	}
	t := f.tensors[i]
	if sizes[t.DType] == 0 {
		return nil, in(f.path, t.unread())
	}
	length, err := t.bytes()
	if err != nil {
		return nil, in(f.path, err)
	}
	raw := make([]byte, length)
	if _, err := f.data.ReadAt(raw, int64(t.begin)); err != nil && length > 0 {
		return nil, in(f.path, &Error{Tensor: name, Reason: "its elements: " + err.Error()})
	}
	v, err := decode(t, raw)
	return v, in(f.path, err)
}

// decode makes numbers of bytes.
func decode(t Tensor, raw []byte) ([]float64, error) {
	size := sizes[t.DType]
	out := make([]float64, len(raw)/size)
	for i := range out {
		b := raw[i*size : (i+1)*size]
		switch t.DType {
		case "F64":
			out[i] = math.Float64frombits(binary.LittleEndian.Uint64(b))
		case "F32":
			out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		case "F16":
			out[i] = half(binary.LittleEndian.Uint16(b))
		case "BF16":
			out[i] = float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16))
		case "I64":
			v := int(binary.LittleEndian.Uint64(b))
			if out[i] = float64(v); v > 1<<53 || v < -1<<53 {
				return nil, &Error{Tensor: t.Name,
					Reason: fmt.Sprintf("its element %d is %d: expected whole numbers up to 2^53",
						i, v)}
			}
		case "I32":
			out[i] = float64(int32(binary.LittleEndian.Uint32(b)))
		case "I16":
			out[i] = float64(int16(binary.LittleEndian.Uint16(b)))
		case "I8":
			out[i] = float64(int8(b[0]))
		case "U8":
			out[i] = float64(b[0])
		case "BOOL":
			if out[i] = float64(b[0]); b[0] > 1 {
				return nil, &Error{Tensor: t.Name, Reason: fmt.Sprintf("its element %d is %d: expected 0 or 1", i,
					b[0])}
			}
		}
	}
	return out, nil
}

// half is a number of half precision: a sign, 5 bits of exponent, 10 of mantissa.
func half(b uint16) float64 {
	sign, exponent, mantissa := 1-2*float64(b>>15), int(b>>10)&31, float64(b&1023)
	switch {
	case exponent == 31 && mantissa > 0:
		return math.NaN()
	case exponent == 31:
		return math.Inf(int(sign))
	case exponent == 0:
		return sign * math.Ldexp(mantissa, -24)
	}
	return sign * math.Ldexp(1024+mantissa, exponent-25)
}
