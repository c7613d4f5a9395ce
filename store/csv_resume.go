package store

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// csvMark is the state of a file at some time: its draws and the digest of all lines without the trailer.
type csvMark struct {
	Rows   int    `json:"rows"`
	Digest string `json:"digest"`
}

// appendCSV resumes a file that [createCSV] began. It cuts off an incomplete last line, the trailer, the times,
// and all draws behind the first keep (those of the warm-up count) with the adaptation block after
// them. keep = -1 keeps all; a run that resumes from a checkpoint keeps what the checkpoint covers.
//
// The head stays as it is. An [ErrLayout] says that the file has other columns, an [ErrRange] that it
// has fewer than keep draws. A file that was killed before its head was complete is begun anew.
//
// What is kept is checked: each line must have the columns' values, the trailer's digest must fit if there is one, and
// so must that of a mark with keep rows. Otherwise the error is an [ErrFormat].
func appendCSV(path string, sites []draws.Site, stats []string, opt csvHead, keep int,
	marks ...csvMark) (*csvWriter, error) {
	if keep < -1 {
		return nil, failf(ErrRange, "append to %s: keep is %d, want a number of draws, or -1 for all", path,
			keep)
	}
	w, head, err := newCSVWriter(path, sites, stats, opt)
	if err != nil {
		return nil, err
	}
	f, err := atomicfile.Open(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("store: append to CSV: %w", err)
	}
	err = w.resume(f, head, keep, marks)
	if err == nil {
		if err = f.Truncate(int64(w.size)); err == nil {
			_, err = f.Seek(int64(w.size), io.SeekStart)
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("store: append to %s: %w", path, err)
	}
	w.attach(f)
	if w.size == 0 {
		w.write([]byte(head))
	}
	return w, w.Flush()
}

// resume finds where the kept part of the file ends, and counts its draws.
func (w *csvWriter) resume(f *os.File, head string, keep int, marks []csvMark) error {
	lines := strings.Split(strings.TrimSuffix(head, "\n"), "\n")
	r := &csvResumption{csvWriter: w, scan: newCSVScanner(f), columns: lines[len(lines)-1], layout: lines[len(lines)-2]}
	for {
		r.start = r.scan.offset
		ok, err := r.scan.next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if err := r.line(keep); err != nil {
			return fmt.Errorf("line %d: %w", r.scan.line, err)
		}
	}
	if run := oneLine(w.head.Run); r.headed && run != "" && r.run != run {
		return because(ErrExists, "the file is of another run, %q, and not of %q", r.run, run)
	}
	if w.rows < keep {
		return because(ErrRange, "the file has %d draws, fewer than the %d to keep", w.rows, keep)
	}
	if len(r.block.lines) > 0 && !r.block.whole() && w.rows == r.before.rows { // the kill came while it was written
		w.size, w.sum, r.block.lines = r.before.size, r.before.sum, nil
	}
	w.adapted = r.block.String()
	for _, m := range marks {
		if have := digestText(w.sum); m.Rows == w.rows && m.Digest != have {
			return because(ErrFormat, "the first %d draws are damaged or were changed: their digest was %s"+
				" when they were written, and is %s", m.Rows, m.Digest, have)
		}
	}
	return nil
}

// csvResumption is a file that is read to be resumed.
type csvResumption struct {
	*csvWriter
	scan            *csvScanner
	columns, layout string // the lines of the head that must be these
	start           int    // of the line
	run             string // that the file is of
	headed, done    bool
	block           adaptBlock
	before          struct { // the block
		size int
		sum  uint32
		rows int
	}
}

// line takes the next line. What it keeps is up to here.
func (r *csvResumption) line(keep int) error {
	switch {
	case r.scan.comment():
		if err := r.scan.digest(); err != nil || r.done {
			return err
		}
		if keep, err := r.comment(); err != nil || !keep {
			return err
		}
	case r.scan.blank():
		return nil
	case !r.headed:
		if string(r.scan.text) != r.columns {
			return because(ErrLayout, "the file has other columns")
		}
		r.headed = true
	case r.rows == keep:
		r.done = true // the rest is read for its digest only
		return nil
	default:
		if err := checkRow(r.scan.text, len(r.source)); err != nil {
			return err
		}
		r.rows++
		r.block.open = false
	}
	r.size, r.sum = r.scan.offset, r.scan.sum
	return nil
}

// comment takes a comment, and says whether it stays: those behind the head do where they are of the adaptation block.
func (r *csvResumption) comment() (keep bool, err error) {
	text := string(r.scan.text)
	if !r.headed {
		if id, ok := r.scan.own(runKey); ok {
			r.run = id
		}
		if have, ok := r.scan.own(layoutKey); ok && text != r.layout {
			return false, because(ErrLayout, "the sites and statistics are %s, not %s", have,
				strings.TrimPrefix(r.layout, "# "+layoutKey+" "))
		}
		return false, nil
	}
	if strings.HasPrefix(text, adaptedLine) {
		r.before.size, r.before.sum, r.before.rows = r.start, r.scan.before, r.rows
	}
	return r.block.add(text), nil
}

const (
	adaptedLine  = "# Adaptation terminated"
	stepSizeLine = "# Step size = "
)

// Adapted writes CmdStan's adaptation block, with the step size and the unit metric, and flushes. It stands between the
// draws of the warm-up, if they are saved, and the others. Writing the same block again does nothing, as a resumed run
// may do. Another block is an [ErrLayout].
func (w *csvWriter) Adapted(step float64) error {
	text := adaptedLine + "\n" + stepSizeLine + csvNumber(step) + "\n# No free parameters for unit metric\n"
	switch {
	case w.err != nil:
		return w.err
	case w.adapted == text:
		return nil
	case w.adapted != "":
		return failf(ErrLayout, "adaptation of %s: the file has one already, and another", w.path)
	}
	w.adapted = text
	w.write([]byte(text))
	return w.Flush()
}
