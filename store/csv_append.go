package store

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
)

// AppendCSV goes on with a file that [CreateCSV] began: an incomplete last line is cut off, as are the times of
// [CSVWriter.Finish], and so is what lies behind the first keep draws (those of the warm-up count) and the adaptation
// block after them. keep = -1 keeps all; a run that goes on from a checkpoint keeps what the checkpoint covers.
//
// The head stays as it is. An [ErrLayout] says that the file has other columns, an [ErrRange] that it has fewer than
// keep draws. A file that was killed before its head was complete is begun anew.
func AppendCSV(path string, sites []draws.Site, stats []string, opt CSVOptions, keep int) (*CSVWriter, error) {
	if keep < -1 {
		return nil, failf(ErrRange, "append to %s: keep is %d, want a number of draws, or -1 for all", path, keep)
	}
	w, head, err := newCSVWriter(path, sites, stats, opt)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("store: append to CSV: %w", err)
	}
	end, err := w.resume(f, head, keep)
	if err == nil {
		if err = f.Truncate(end); err == nil {
			_, err = f.Seek(end, io.SeekStart)
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("store: append to %s: %w", path, err)
	}
	w.attach(f)
	if end == 0 {
		w.write([]byte(head))
	}
	return w, w.Flush()
}

// resume finds where the kept part of the file ends, and counts its draws.
func (w *CSVWriter) resume(f *os.File, head string, keep int) (end int64, err error) {
	lines := strings.Split(strings.TrimSuffix(head, "\n"), "\n")
	columns := lines[len(lines)-1]
	run := ""
	for _, line := range lines {
		if id, ok := strings.CutPrefix(line, "# "+runKey+" "); ok {
			run = id
		}
	}
	scan, headed := newCSVScanner(f), false
	found := "" // the run that the file is of
	var block adaptBlock
	var blockStart, before int64
	var blockRows int
scan:
	for {
		before = scan.offset
		ok, err := scan.next()
		if err != nil {
			return 0, err
		}
		if !ok {
			break
		}
		switch {
		case scan.comment():
			text := string(scan.text)
			if id, ok := strings.CutPrefix(text, "# "+runKey+" "); ok && !headed {
				found = id
			}
			if layout, ok := strings.CutPrefix(text, "# "+layoutKey+" "); ok && !headed {
				if want := lines[len(lines)-2]; text != want {
					return 0, because(ErrLayout, "line %d: the sites and statistics are %s, not %s", scan.line, layout, strings.TrimPrefix(want, "# "+layoutKey+" "))
				}
			}
			if headed && strings.HasPrefix(text, adaptedLine) {
				blockStart, blockRows = before, w.rows
			}
			if headed && block.add(text) {
				end = scan.offset
			}
		case scan.blank():
		case !headed:
			if string(scan.text) != columns {
				return 0, because(ErrLayout, "line %d: the file has other columns", scan.line)
			}
			if run != "" && found != run {
				return 0, because(ErrExists, "the file is of another run, %q, and not of %q", found, run)
			}
			headed, end = true, scan.offset
		default:
			if w.rows == keep {
				break scan
			}
			w.rows++
			block.open = false
			end = scan.offset
		}
	}
	if w.rows < keep {
		return 0, because(ErrRange, "the file has %d draws, fewer than the %d to keep", w.rows, keep)
	}
	if len(block.lines) > 0 && !block.whole() && w.rows == blockRows { // the kill came while it was written
		end, block.lines = blockStart, nil
	}
	w.adapted = block.String()
	return end, nil
}
