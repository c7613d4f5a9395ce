package store

import (
	"bufio"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"strconv"
)

// mostNested bounds how deep a value may be nested.
const mostNested = 64

// jsonScanner reads JSON from a stream. Errors are [ParseError]s.
type jsonScanner struct {
	What string // the place, for errors
	Err  error  // of the reader, other than its end

	in        *bufio.Reader
	file      string
	line, col int
	last      byte
	word      []byte
	sum       uint32 // CRC-32C of the bytes so far
	mark      uint32 // sum before the last string
	markCol   int    // the column of the last string
}

// newJSONScanner begins a stream; file names it in errors.
func newJSONScanner(r io.Reader, file string) *jsonScanner {
	return &jsonScanner{in: bufio.NewReaderSize(r, 1<<16), file: file, line: 1}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Byte is the next byte, 0 at the end.
func (s *jsonScanner) Byte() byte {
	c, err := s.in.ReadByte()
	if err != nil {
		if err != io.EOF {
			s.Err = err
		}
		s.last, s.col = 0, s.col+1
		return 0
	}
	if s.last == '\n' {
		s.line, s.col = s.line+1, 0
	}
	s.last, s.col = c, s.col+1
	s.sum = ^(castagnoli[byte(^s.sum)^c] ^ ^s.sum>>8)
	return c
}

// Peek is the next byte that is no space, which stays; 0 at the end.
func (s *jsonScanner) Peek() byte {
	for {
		next, err := s.in.Peek(1)
		if err != nil {
			if err != io.EOF {
				s.Err = err
			}
			return 0
		}
		switch next[0] {
		case ' ', '\t', '\n', '\r':
			s.Byte()
		default:
			return next[0]
		}
	}
}

// Fail is an error of the format at this place.
func (s *jsonScanner) Fail(format string, args ...any) error {
	return s.Wrong(because(ErrFormat, format, args...))
}

// Wrong is an error at this place. An error of the reader comes first.
func (s *jsonScanner) Wrong(err error) error {
	if s.Err != nil {
		err = s.Err
	}
	return &ParseError{File: s.file, Line: s.line, Column: s.col, What: s.What, Err: err}
}

// Expect reads one of the bytes.
func (s *jsonScanner) Expect(allowed string) (byte, error) {
	s.Peek()
	c := s.Byte()
	for i := range len(allowed) {
		if c != 0 && c == allowed[i] {
			return c, nil
		}
	}
	want := "want " + strconv.Quote(allowed[:1])
	for i := 1; i < len(allowed); i++ {
		want += " or " + strconv.Quote(allowed[i:i+1])
	}
	if c == 0 {
		return 0, s.Fail("the file ends, %s", want)
	}
	return 0, s.Fail("%q, %s", string(rune(c)), want)
}

// Object calls f for each key, which reads the value.
func (s *jsonScanner) Object(f func(key string) error) error {
	if _, err := s.Expect("{"); err != nil {
		return err
	}
	if s.Peek() == '}' {
		s.Byte()
		return nil
	}
	for {
		key, err := s.String()
		if err != nil {
			return err
		}
		if _, err := s.Expect(":"); err != nil {
			return err
		}
		if err := f(key); err != nil {
			return err
		}
		c, err := s.Expect(",}")
		if err != nil || c == '}' {
			return err
		}
	}
}

// String reads a string.
func (s *jsonScanner) String() (string, error) {
	s.Peek()
	s.mark, s.markCol = s.sum, s.col
	if s.last == '\n' {
		s.markCol = 0
	}
	if _, err := s.Expect(`"`); err != nil {
		return "", err
	}
	text := append(s.word[:0], '"')
	for {
		c := s.Byte()
		switch {
		case c == 0 && s.last == 0:
			return "", s.Fail("the file ends inside a string")
		case c < ' ':
			return "", s.Fail("a control character inside a string")
		}
		text = append(text, c)
		if c == '\\' {
			text = append(text, s.Byte())
		}
		if c == '"' {
			break
		}
	}
	s.word = text
	var out string
	if err := json.Unmarshal(text, &out); err != nil {
		return "", s.Fail("a wrong string: %v", err)
	}
	return out, nil
}

// Scalar reads a number, a boolean (1 or 0) or null (NaN).
func (s *jsonScanner) Scalar() (v float64, kind byte, err error) {
	s.Peek()
	word := s.word[:0]
	for {
		next, err := s.in.Peek(1)
		if err != nil {
			break
		}
		c := next[0]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !(c == '-' || c == '+' || c == '.' || c >= '0' && c <= '9' || letter) || len(word) > 400 {
			break
		}
		word = append(word, s.Byte())
	}
	s.word = word
	switch text := string(word); text {
	case "":
		s.Byte()
		if s.last == 0 {
			return 0, 0, s.Fail("the file ends where a value should be")
		}
		return 0, 0, s.Fail("%q, want a value", string(rune(s.last)))
	case "true":
		return 1, 'b', nil
	case "false":
		return 0, 'b', nil
	case "null":
		return math.NaN(), 'n', nil
	case "NaN":
		return math.NaN(), 'f', nil
	case "Infinity":
		return math.Inf(1), 'f', nil
	case "-Infinity":
		return math.Inf(-1), 'f', nil
	default:
		first, last := text[0], text[len(text)-1]
		if !(first == '-' || first >= '0' && first <= '9') || last < '0' || last > '9' || !numeric(text) {
			return 0, 0, s.Fail("%q is not a number", text)
		}
		if v, err = strconv.ParseFloat(text, 64); err != nil {
			return 0, 0, s.Fail("%v", notNumber(text, err))
		}
		return v, 'f', nil
	}
}

// numeric refuses what ParseFloat takes and JSON does not have: hexadecimal numbers, words.
func numeric(text string) bool {
	for _, c := range []byte(text) {
		if !(c == '-' || c == '+' || c == '.' || c >= '0' && c <= '9' || c == 'e' || c == 'E') {
			return false
		}
	}
	return true
}

// Value reads anything.
func (s *jsonScanner) Value(depth int) (any, error) {
	if depth > mostNested {
		return nil, s.Fail("nested deeper than %d", mostNested)
	}
	switch s.Peek() {
	case '{':
		out := map[string]any{}
		err := s.Object(func(key string) (err error) {
			out[key], err = s.Value(depth + 1)
			return err
		})
		return out, err
	case '[':
		out := []any{}
		s.Byte()
		if s.Peek() == ']' {
			s.Byte()
			return out, nil
		}
		for {
			v, err := s.Value(depth + 1)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
			c, err := s.Expect(",]")
			if err != nil {
				return nil, err
			}
			if c == ']' {
				return out, nil
			}
		}
	case '"':
		return s.String()
	}
	v, kind, err := s.Scalar()
	switch kind {
	case 'b':
		return v == 1, err
	case 'n':
		return nil, err
	}
	return v, err
}

// Map reads an object.
func (s *jsonScanner) Map() (map[string]any, error) {
	v, err := s.Value(0)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, s.Fail("want an object")
	}
	return m, nil
}

// Digest reads the value of the key [digestKey], whose name was read just before, and compares it. Only a key
// at the start of a line is one that Kelvin wrote; elsewhere another program has written the file anew.
func (s *jsonScanner) Digest() error {
	sum, own := s.mark, s.markCol == 0
	v, err := s.Value(0)
	if err != nil || !own {
		return err
	}
	if want := digestText(sum); v != want {
		return s.Fail(
			"the file is damaged or was changed: its digest is %v, its content has %s; if the change was meant, remove %s", v,
			want, digestKey)
	}
	return nil
}

// End checks that nothing follows.
func (s *jsonScanner) End() error {
	if s.Peek() != 0 {
		s.Byte()
		return s.Fail("there is more after the end")
	}
	if s.Err != nil {
		return s.Fail("")
	}
	return nil
}

// digestText is the text of a digest.
func digestText(sum uint32) string { return fmt.Sprintf("crc32c:%08x", sum) }

// addSum adds bytes to a digest, which begins as 0.
func addSum(sum uint32, b []byte) uint32 { return crc32.Update(sum, castagnoli, b) }
