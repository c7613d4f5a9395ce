package store

import (
	"bufio"
	"encoding/json"
	"io"
	"math"
	"strconv"
)

// mostNested bounds how deep a value may be nested.
const mostNested = 64

// jsonScanner reads JSON from a stream, with the literals NaN, Infinity and -Infinity that Python's json module writes and
// reads, and Go's refuses. Errors are [ParseError]s.
type jsonScanner struct {
	in        *bufio.Reader
	file      string
	what      string // the place, for errors
	line, col int
	last      byte
	err       error // of the reader, other than its end
	word      []byte
}

func newJSONScanner(r io.Reader, file string) *jsonScanner {
	return &jsonScanner{in: bufio.NewReaderSize(r, 1<<16), file: file, line: 1}
}

// byte is the next byte, 0 at the end.
func (s *jsonScanner) byte() byte {
	c, err := s.in.ReadByte()
	if err != nil {
		if err != io.EOF {
			s.err = err
		}
		s.last, s.col = 0, s.col+1
		return 0
	}
	if s.last == '\n' {
		s.line, s.col = s.line+1, 0
	}
	s.last, s.col = c, s.col+1
	return c
}

// peek is the next byte that is no space, which stays; 0 at the end.
func (s *jsonScanner) peek() byte {
	for {
		next, err := s.in.Peek(1)
		if err != nil {
			if err != io.EOF {
				s.err = err
			}
			return 0
		}
		switch next[0] {
		case ' ', '\t', '\n', '\r':
			s.byte()
		default:
			return next[0]
		}
	}
}

func (s *jsonScanner) fail(format string, args ...any) error {
	err := because(ErrFormat, format, args...)
	if s.err != nil {
		err = s.err
	}
	return &ParseError{File: s.file, Line: s.line, Column: s.col, What: s.what, Err: err}
}

// expect reads one of the bytes.
func (s *jsonScanner) expect(allowed string) (byte, error) {
	s.peek()
	c := s.byte()
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
		return 0, s.fail("the file ends, %s", want)
	}
	return 0, s.fail("%q, %s", string(rune(c)), want)
}

// object calls f for each key, which reads the value.
func (s *jsonScanner) object(f func(key string) error) error {
	if _, err := s.expect("{"); err != nil {
		return err
	}
	if s.peek() == '}' {
		s.byte()
		return nil
	}
	for {
		key, err := s.string()
		if err != nil {
			return err
		}
		if _, err := s.expect(":"); err != nil {
			return err
		}
		if err := f(key); err != nil {
			return err
		}
		c, err := s.expect(",}")
		if err != nil || c == '}' {
			return err
		}
	}
}

// string reads a string.
func (s *jsonScanner) string() (string, error) {
	if _, err := s.expect(`"`); err != nil {
		return "", err
	}
	text := append(s.word[:0], '"')
	for {
		c := s.byte()
		switch {
		case c == 0 && s.last == 0:
			return "", s.fail("the file ends inside a string")
		case c < ' ':
			return "", s.fail("a control character inside a string")
		}
		text = append(text, c)
		if c == '\\' {
			text = append(text, s.byte())
		}
		if c == '"' {
			break
		}
	}
	s.word = text
	var out string
	if err := json.Unmarshal(text, &out); err != nil {
		return "", s.fail("a wrong string: %v", err)
	}
	return out, nil
}

// scalar reads a number, a boolean (1 or 0) or null (NaN).
func (s *jsonScanner) scalar() (v float64, kind byte, err error) {
	s.peek()
	word := s.word[:0]
	for {
		next, err := s.in.Peek(1)
		if err != nil {
			break
		}
		c := next[0]
		if !(c == '-' || c == '+' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') || len(word) > 400 {
			break
		}
		word = append(word, s.byte())
	}
	s.word = word
	switch text := string(word); text {
	case "":
		s.byte()
		if s.last == 0 {
			return 0, 0, s.fail("the file ends where a value should be")
		}
		return 0, 0, s.fail("%q, want a value", string(rune(s.last)))
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
		if c := text[len(text)-1]; !(text[0] == '-' || text[0] >= '0' && text[0] <= '9') || c < '0' || c > '9' || !numeric(text) {
			return 0, 0, s.fail("%q is not a number", text)
		}
		if v, err = strconv.ParseFloat(text, 64); err != nil {
			return 0, 0, s.fail("%v", notNumber(text, err))
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

// value reads anything.
func (s *jsonScanner) value(depth int) (any, error) {
	if depth > mostNested {
		return nil, s.fail("nested deeper than %d", mostNested)
	}
	switch s.peek() {
	case '{':
		out := map[string]any{}
		err := s.object(func(key string) (err error) {
			out[key], err = s.value(depth + 1)
			return err
		})
		return out, err
	case '[':
		out := []any{}
		s.byte()
		if s.peek() == ']' {
			s.byte()
			return out, nil
		}
		for {
			v, err := s.value(depth + 1)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
			c, err := s.expect(",]")
			if err != nil {
				return nil, err
			}
			if c == ']' {
				return out, nil
			}
		}
	case '"':
		return s.string()
	}
	v, kind, err := s.scalar()
	switch kind {
	case 'b':
		return v == 1, err
	case 'n':
		return nil, err
	}
	return v, err
}
