package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
)

// csvChain is one file as it was read.
type csvChain struct {
	file   string
	config map[string]string // the comments "# key = value", without "(Default)"
	own    *layout           // Kelvin's layout, if it fits the header
	layout layout
	width  int
	rows   []float64 // flat vectors and statistics, one after the other
	n      int
	warmup int // how many of the rows are of the warm-up
	step   float64
	block  adaptBlock
	notes  []string
}

// readCSVFile reads a chain from a file.
func readCSVFile(path string) (*csvChain, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("store: read CSV: %w", err)
	}
	defer f.Close()
	return readCSVChain(f, path)
}

// readCSVChain reads a chain. Errors are [ParseError]s, or those of r.
func readCSVChain(r io.Reader, file string) (*csvChain, error) {
	c := &csvChain{file: file, config: map[string]string{}}
	scan := newCSVScanner(r)
	var header []string
	var source []int
	var written *layout // before it is known to fit
	adaptedAt := -1
	for {
		ok, err := scan.next()
		if err != nil {
			return nil, fmt.Errorf("store: read %s: %w", file, err)
		}
		if !ok {
			break
		}
		switch {
		case scan.comment():
			text := string(scan.text)
			if l, ok := strings.CutPrefix(text, "# "+layoutKey+" "); ok && header == nil {
				written = parseLayout(l)
			}
			if strings.HasPrefix(text, adaptedLine) && header != nil {
				adaptedAt = c.n
			}
			c.block.add(text)
			c.setting(text)
		case scan.blank():
		case header == nil:
			header = strings.Split(string(scan.text), ",")
			for i := range header {
				header[i] = strings.TrimSpace(header[i])
			}
			if source, err = c.columns(header, written, scan.line); err != nil {
				return nil, err
			}
		default:
			c.block.open = false
			if err := c.row(scan, header, source); err != nil {
				return nil, err
			}
		}
	}
	if header == nil {
		return nil, &ParseError{File: file, Line: scan.line, Err: because(ErrFormat, "the file ends before the names of the columns")}
	}
	if scan.torn {
		c.notes = append(c.notes, fmt.Sprintf("%s: line %d is incomplete, as a killed run leaves it, and was dropped", file, scan.line+1))
	}
	c.countWarmup(adaptedAt)
	return c, nil
}

// columns finds the layout that the header tells of, or Kelvin's own.
func (c *csvChain) columns(header []string, own *layout, line int) (source []int, err error) {
	c.width = len(header)
	if own != nil {
		dim := 0
		for _, s := range own.sites() {
			dim += s.Size
		}
		if dim <= len(header) && len(own.Sites) <= 1<<20 {
			if names, source := csvColumns(own.sites(), own.Stats); slices.Equal(names, header) {
				c.own, c.layout = own, *own
				return source, nil
			}
		}
	}
	l, source, at, err := columnsLayout(header)
	if err != nil {
		e := &ParseError{File: c.file, Line: line, Err: err}
		if at >= 0 {
			e.Column, e.What = at+1, header[at]
		}
		return nil, e
	}
	c.layout = l
	return source, nil
}

// row reads a draw.
func (c *csvChain) row(scan *csvScanner, header []string, source []int) error {
	if n := bytes.Count(scan.text, []byte(",")) + 1; n != len(header) {
		return &ParseError{File: c.file, Line: scan.line, Err: because(ErrFormat, "%d values, want %d, one for each column", n, len(header))}
	}
	start := len(c.rows)
	c.rows = append(c.rows, make([]float64, len(header))...)
	row, rest := c.rows[start:], scan.text
	for i, to := range source {
		field := rest
		if k := bytes.IndexByte(rest, ','); k >= 0 {
			field, rest = rest[:k], rest[k+1:]
		}
		v, err := strconv.ParseFloat(string(bytes.TrimSpace(field)), 64)
		if err != nil {
			return &ParseError{File: c.file, Line: scan.line, Column: i + 1, What: header[i], Err: notNumber(string(field), err)}
		}
		row[to] = v
	}
	c.n++
	return nil
}

func notNumber(text string, err error) error {
	if len(text) > 40 {
		text = text[:40] + "..."
	}
	if errors.Is(err, strconv.ErrRange) {
		return because(ErrFormat, "%q is too large for a float64", text)
	}
	return because(ErrFormat, "%q is not a number", text)
}

// setting keeps a comment of the form key = value.
func (c *csvChain) setting(comment string) {
	key, value, ok := strings.Cut(strings.Trim(comment, "# \t"), " = ")
	if !ok || strings.Contains(key, layoutKey) {
		return
	}
	value = strings.TrimSpace(strings.Replace(value, "(Default)", "", 1))
	if key == "Step size" {
		c.step, _ = strconv.ParseFloat(value, 64)
		return
	}
	if _, ok := c.config[key]; !ok {
		c.config[key] = value
	}
}

// countWarmup says how many of the draws are of the warm-up: those before the adaptation block; without one, in a file
// that says that it has them, as many as were asked for.
func (c *csvChain) countWarmup(adaptedAt int) {
	if adaptedAt >= 0 {
		c.warmup = adaptedAt
		return
	}
	saved := c.config["save_warmup"] == "true" || c.config["save_warmup"] == "1"
	if !saved || (c.own == nil && c.config["algorithm"] == "fixed_param") {
		return
	}
	asked, err := strconv.Atoi(c.config["num_warmup"])
	thin, e := strconv.Atoi(c.config["thin"])
	if e != nil || thin < 1 {
		thin = 1
	}
	if err == nil && asked > 0 {
		c.warmup = min(c.n, (asked-1)/thin+1)
	}
}

// fill copies the rows from to to-1 into a chain of d.
func (c *csvChain) fill(d *draws.Draws, chain, from, to int) error {
	for i := from; i < to; i++ {
		row := c.rows[i*c.width : (i+1)*c.width]
		if err := d.AppendChain(chain, row[:d.Dim()], row[d.Dim():]); err != nil {
			return err
		}
	}
	return nil
}
