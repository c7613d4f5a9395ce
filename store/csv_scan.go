package store

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
)

// csvScanner goes through the lines of a file. It serves the reader, and the writer that resumes a file.
type csvScanner struct {
	in     *bufio.Reader
	line   int    // number of the last line
	offset int    // of its end
	sum    uint32 // digest of all up to there
	before uint32 // digest of all before the last line
	text   []byte
	torn   bool // the file ended inside a line, which is not given
	long   []byte
}

func newCSVScanner(r io.Reader) *csvScanner { return &csvScanner{in: bufio.NewReaderSize(r, 1<<16)} }

// next is the next complete line, without its end. The text is valid until the next call.
func (s *csvScanner) next() (bool, error) {
	s.long = s.long[:0]
	for {
		part, err := s.in.ReadSlice('\n')
		if err == nil && len(s.long) == 0 {
			s.text = part
			break
		}
		s.long = append(s.long, part...)
		if err == nil {
			s.text = s.long
			break
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err == io.EOF {
			s.torn = len(s.long) > 0
			return false, nil
		}
		return false, err
	}
	s.line++
	s.offset += len(s.text)
	s.before, s.sum = s.sum, addSum(s.sum, s.text)
	s.text = bytes.TrimRight(s.text, "\r\n")
	return true, nil
}

func (s *csvScanner) comment() bool { return bytes.HasPrefix(s.text, []byte("#")) }

func (s *csvScanner) blank() bool { return len(bytes.TrimSpace(s.text)) == 0 }

// own is the text behind one of Kelvin's keys, if the line is a comment with it.
func (s *csvScanner) own(key string) (string, bool) {
	return strings.CutPrefix(string(s.text), "# "+key+" ")
}

// digest compares the digest of a comment with the lines before it. Other comments are right.
func (s *csvScanner) digest() error {
	want, ok := s.own(digestKey)
	if have := digestText(s.before); ok && want != have {
		return because(ErrFormat, "the file is damaged or was changed: its digest is %s, its content has %s;"+
			" if the change was meant, remove this line", want, have)
	}
	return nil
}

// adaptBlock collects the lines of an adaptation block.
type adaptBlock struct {
	lines []string
	open  bool
}

// add takes a comment; it is true for one that belongs to the block.
func (b *adaptBlock) add(comment string) bool {
	switch {
	case strings.HasPrefix(comment, adaptedLine):
		b.lines, b.open = []string{comment}, true
	case strings.TrimSpace(comment) == "#" || strings.Contains(comment, "Elapsed Time"):
		b.open = false
	case strings.HasPrefix(comment, "# kelvin_"):
		b.open = false
	case b.open:
		b.lines = append(b.lines, comment)
	}
	return b.open
}

// whole is true if no line of a block that Kelvin wrote is missing.
func (b *adaptBlock) whole() bool { return len(b.lines) >= 3 }

func (b *adaptBlock) String() string {
	if len(b.lines) == 0 {
		return ""
	}
	return strings.Join(b.lines, "\n") + "\n"
}
