package store

import (
	"bufio"
	"fmt"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"io"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/kelvin-ppl/kelvin/draws"
)

// CSVWriter writes the file of one chain while the run goes. What has been flushed outlives the program: a kill leaves at
// most one incomplete line at the end, which [ReadCSV] drops with a note and [AppendCSV] cuts off. A writer is for one
// goroutine.
type CSVWriter struct {
	path    string
	f       *os.File
	out     *bufio.Writer
	opt     CSVOptions
	dim     int
	stats   int
	source  []int
	line    []byte
	rows    int // in the file
	pending int // draws since the last flush
	adapted string
	done    bool // the times are written
	err     error
}

// CreateCSV begins the file of one chain and writes its head. sites and stats are the layout, as for [draws.New]; a
// breach is its error. A layout without any column is an [ErrLayout]. The file must not be there already
// ([io/fs.ErrExist]): [AppendCSV] goes on with one.
func CreateCSV(path string, sites []draws.Site, stats []string, opt CSVOptions) (*CSVWriter, error) {
	w, head, err := newCSVWriter(path, sites, stats, opt)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("store: create CSV: %w", err)
	}
	w.attach(f)
	w.write([]byte(head))
	return w, w.Flush()
}

func newCSVWriter(path string, sites []draws.Site, stats []string, opt CSVOptions) (*CSVWriter, string, error) {
	d, err := draws.New(sites, stats, 1)
	if err != nil {
		return nil, "", fmt.Errorf("store: create CSV: %w", err)
	}
	if err := opt.fill(stats); err != nil {
		return nil, "", err
	}
	columns, source := csvColumns(sites, stats)
	if len(columns) == 0 {
		return nil, "", failf(ErrLayout, "create CSV: %s: a draw has neither elements nor statistics", path)
	}
	return &CSVWriter{path: path, opt: opt, dim: d.Dim(), stats: len(stats), source: source},
		csvHead(opt, newLayout(sites, stats), columns), nil
}

func (w *CSVWriter) attach(f *os.File) {
	w.f, w.out = f, newBuffer(f)
}

// write keeps the first error, after which the file may end anywhere.
func (w *CSVWriter) write(text []byte) {
	if w.err == nil {
		if _, err := w.out.Write(text); err != nil {
			w.err = fmt.Errorf("store: write CSV: %w", err)
		}
	}
}

// Rows is the number of draws in the file, those of the warm-up among them.
func (w *CSVWriter) Rows() int { return w.rows }

// Append writes a draw: the flat vector and the statistics, which are copied. An [ErrLayout] says which length is wrong,
// and then nothing is written. An error of the disk stays: all further calls return it.
func (w *CSVWriter) Append(x, stats []float64) error {
	switch {
	case w.err != nil:
		return w.err
	case len(x) != w.dim:
		return failf(ErrLayout, "append to %s: x has %d numbers, want %d", w.path, len(x), w.dim)
	case len(stats) != w.stats:
		return failf(ErrLayout, "append to %s: stats has %d numbers, want %d", w.path, len(stats), w.stats)
	case w.done:
		return failf(ErrLayout, "append to %s: the times of the run are written already", w.path)
	}
	w.line = w.line[:0]
	for i, from := range w.source {
		if i > 0 {
			w.line = append(w.line, ',')
		}
		if from < w.dim {
			w.line = appendNumber(w.line, x[from])
		} else {
			w.line = appendNumber(w.line, stats[from-w.dim])
		}
	}
	w.line = append(w.line, '\n')
	w.write(w.line)
	w.rows++
	if w.pending++; w.pending >= w.opt.FlushEvery {
		return w.Flush()
	}
	return w.err
}

// appendNumber is the shortest text that reads back as the same float64; nan, inf and -inf as CmdStan has them.
func appendNumber(b []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(b, "nan"...)
	case math.IsInf(v, 1):
		return append(b, "inf"...)
	case math.IsInf(v, -1):
		return append(b, "-inf"...)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

func csvNumber(v float64) string { return string(appendNumber(nil, v)) }

// Finish writes how long warm-up and sampling took, as CmdStan does at the end, and flushes. No draw may follow; Close
// without Finish leaves a file that is as readable, and can be gone on with in the same way.
func (w *CSVWriter) Finish(warmup, sampling time.Duration) error {
	if w.err != nil {
		return w.err
	}
	if w.done {
		return failf(ErrLayout, "finish %s: the times of the run are written already", w.path)
	}
	w.done = true
	w.write(fmt.Appendf(nil, "# \n#  Elapsed Time: %.6g seconds (Warm-up)\n#                %.6g seconds (Sampling)\n#                %.6g seconds (Total)\n# \n",
		warmup.Seconds(), sampling.Seconds(), (warmup + sampling).Seconds()))
	return w.Flush()
}

// Flush hands all draws to the operating system.
func (w *CSVWriter) Flush() error {
	if w.err == nil {
		if err := w.out.Flush(); err != nil {
			w.err = fmt.Errorf("store: write CSV: %w", err)
		}
	}
	w.pending = 0
	return w.err
}

// Close flushes, waits for the disk and closes the file. After it, every call returns [ErrClosed].
func (w *CSVWriter) Close() error {
	if w.err == ErrClosed {
		return nil
	}
	err := w.Flush()
	if err == nil {
		if err = atomicfile.Sync(w.f); err != nil {
			err = fmt.Errorf("store: write CSV: %w", err)
		}
	}
	if e := w.f.Close(); err == nil && e != nil {
		err = fmt.Errorf("store: write CSV: %w", e)
	}
	w.err = ErrClosed
	return err
}

func newBuffer(to io.Writer) *bufio.Writer { return bufio.NewWriterSize(to, 1<<16) }
