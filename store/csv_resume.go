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
		if err = f.Truncate(w.size); err == nil {
			_, err = f.Seek(w.size, io.SeekStart)
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
	columns, layout := lines[len(lines)-1], lines[len(lines)-2]
	scan, headed, done := newCSVScanner(f), false, false
	found := "" // the run that the file is of
	var block adaptBlock
	var blockStart int64
	var blockSum uint32
	var blockRows int
	for {
		start := scan.offset
		ok, err := scan.next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		wrong := func(err error) error { return fmt.Errorf("line %d: %w", scan.line, err) }
		switch {
		case scan.comment():
			if err := scan.digest(); err != nil {
				return wrong(err)
			}
			if done {
				continue
			}
			text := string(scan.text)
			if id, ok := scan.own(runKey); ok && !headed {
				found = id
			}
			if have, ok := scan.own(layoutKey); ok && !headed && text != layout {
				return wrong(because(ErrLayout, "the sites and statistics are %s, not %s", have,
					strings.TrimPrefix(layout, "# "+layoutKey+" ")))
			}
			if headed && strings.HasPrefix(text, adaptedLine) {
				blockStart, blockSum, blockRows = start, scan.before, w.rows
			}
			if headed && block.add(text) {
				w.size, w.sum = scan.offset, scan.sum
			}
		case scan.blank():
		case !headed:
			if string(scan.text) != columns {
				return wrong(because(ErrLayout, "the file has other columns"))
			}
			if run := oneLine(w.head.Run); run != "" && found != run {
				return because(ErrExists, "the file is of another run, %q, and not of %q", found, run)
			}
			headed, w.size, w.sum = true, scan.offset, scan.sum
		default:
			if w.rows == keep {
				done = true // the rest is read for its digest only
				continue
			}
			if err := checkRow(scan.text, len(w.source)); err != nil {
				return wrong(err)
			}
			w.rows++
			block.open = false
			w.size, w.sum = scan.offset, scan.sum
		}
	}
	if w.rows < keep {
		return because(ErrRange, "the file has %d draws, fewer than the %d to keep", w.rows, keep)
	}
	if len(block.lines) > 0 && !block.whole() && w.rows == blockRows { // the kill came while it was written
		w.size, w.sum, block.lines = blockStart, blockSum, nil
	}
	w.adapted = block.String()
	for _, m := range marks {
		if have := digestText(w.sum); m.Rows == w.rows && m.Digest != have {
			return because(ErrFormat, "the first %d draws are damaged or were changed: their digest was %s"+
				" when they were written, and is %s", m.Rows, m.Digest, have)
		}
	}
	return nil
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
