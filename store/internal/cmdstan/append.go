package cmdstan

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/store/internal/content"
)

// Mark is the state of a file at some time: its draws and the digest of all lines without the trailer.
type Mark struct {
	Rows   int    `json:"rows"`
	Digest string `json:"digest"`
}

// Append resumes a file that [Create] began. It cuts off an incomplete last line, the trailer, the times of
// [Writer.Finish], and all draws behind the first keep (those of the warm-up count) with the adaptation block after
// them. keep = -1 keeps all; a run that resumes from a checkpoint keeps what the checkpoint covers.
//
// The head stays as it is. An [content.ErrLayout] says that the file has other columns, an [content.ErrRange] that it
// has fewer than keep draws. A file that was killed before its head was complete is begun anew.
//
// What is kept is checked: each line must have the columns' values, the trailer's digest must fit if there is one, and
// so must that of a mark with keep rows. Otherwise the error is an [content.ErrFormat].
func Append(path string, sites []draws.Site, stats []string, opt Options, keep int, marks ...Mark) (*Writer, error) {
	if keep < -1 {
		return nil, content.Failf(content.ErrRange, "append to %s: keep is %d, want a number of draws, or -1 for all", path,
			keep)
	}
	w, head, err := newWriter(path, sites, stats, opt)
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
func (w *Writer) resume(f *os.File, head string, keep int, marks []Mark) error {
	lines := strings.Split(strings.TrimSuffix(head, "\n"), "\n")
	columns, layout := lines[len(lines)-1], lines[len(lines)-2]
	scan, headed, done := newScanner(f), false, false
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
			if id, ok := scan.own(content.RunKey); ok && !headed {
				found = id
			}
			if have, ok := scan.own(content.LayoutKey); ok && !headed && text != layout {
				return wrong(content.Because(content.ErrLayout, "the sites and statistics are %s, not %s", have,
					strings.TrimPrefix(layout, "# "+content.LayoutKey+" ")))
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
				return wrong(content.Because(content.ErrLayout, "the file has other columns"))
			}
			if run := oneLine(w.opt.Run); run != "" && found != run {
				return content.Because(content.ErrExists, "the file is of another run, %q, and not of %q", found, run)
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
		return content.Because(content.ErrRange, "the file has %d draws, fewer than the %d to keep", w.rows, keep)
	}
	if len(block.lines) > 0 && !block.whole() && w.rows == blockRows { // the kill came while it was written
		w.size, w.sum, block.lines = blockStart, blockSum, nil
	}
	w.adapted = block.String()
	for _, m := range marks {
		if have := content.Digest(w.sum); m.Rows == w.rows && m.Digest != have {
			return content.Because(content.ErrFormat, "the first %d draws are damaged or were changed: their digest was %s"+
				" when they were written, and is %s", m.Rows, m.Digest, have)
		}
	}
	return nil
}

// Adaptation is what warm-up has found.
type Adaptation struct {
	// StepSize is that of the leapfrog from here on.
	StepSize float64
	// Diagonal is the diagonal of the inverse mass matrix (metric diag_e), Dense its rows (dense_e); both
	// are nil for unit_e.
	Diagonal []float64
	Dense    [][]float64
}

// HasAdaptation says whether the file has an adaptation block.
func (w *Writer) HasAdaptation() bool { return w.adapted != "" }

// Adapted writes the adaptation block and flushes. It stands between the draws of the warm-up, if they are saved, and
// the others. Writing the same block again does nothing, as a resumed run may do. Another block is an
// [content.ErrLayout], and so is one that is not of the file's metric. Files of the algorithm fixed_param have none.
func (w *Writer) Adapted(a Adaptation) error {
	if w.err != nil {
		return w.err
	}
	text, err := a.text(w.opt)
	switch {
	case err != nil:
		return content.Failf(content.ErrLayout, "adaptation of %s: %v", w.path, err)
	case w.adapted == text:
		return nil
	case w.adapted != "":
		return content.Failf(content.ErrLayout, "adaptation of %s: the file has one already, and another", w.path)
	}
	w.adapted = text
	w.write([]byte(text))
	return w.Flush()
}

const (
	adaptedLine  = "# Adaptation terminated"
	stepSizeLine = "# Step size = "
)

// text is the block as CmdStan writes it.
func (a Adaptation) text(o Options) (string, error) {
	metric := "unit_e"
	switch {
	case a.Diagonal != nil && a.Dense != nil:
		return "", content.Because(content.ErrLayout, "both Diagonal and Dense are given")
	case a.Diagonal != nil:
		metric = "diag_e"
	case a.Dense != nil:
		metric = "dense_e"
	}
	if o.Algorithm != "hmc" {
		return "", content.Because(content.ErrLayout, "the algorithm is %s, which adapts nothing", o.Algorithm)
	}
	if metric != o.Metric {
		return "", content.Because(content.ErrLayout, "it is of the metric %s, the file is of %s", metric, o.Metric)
	}
	var b strings.Builder
	b.WriteString(adaptedLine + "\n" + stepSizeLine + number(a.StepSize) + "\n")
	row := func(values []float64) {
		for i, v := range values {
			if i > 0 {
				b.WriteString(", ")
			} else {
				b.WriteString("# ")
			}
			b.WriteString(number(v))
		}
		b.WriteString("\n")
	}
	switch metric {
	case "unit_e":
		b.WriteString("# No free parameters for unit metric\n")
	case "diag_e":
		b.WriteString("# Diagonal elements of inverse mass matrix:\n")
		row(a.Diagonal)
	case "dense_e":
		b.WriteString("# Elements of inverse mass matrix:\n")
		for i, values := range a.Dense {
			if len(values) != len(a.Dense) {
				return "", content.Because(content.ErrLayout, "row %d of Dense has %d numbers, want %d", i, len(values),
					len(a.Dense))
			}
			row(values)
		}
	}
	return b.String(), nil
}
