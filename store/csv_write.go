package store

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// csvWriter writes the file of one chain while the run goes. What has been flushed outlives the program: a kill leaves
// at most one incomplete line at the end, which readers drop with a note and [appendCSV] cuts off.
//
// After each flush the file ends in a trailer of comments: attributes, notes, and the digest of all lines before it.
// The next draw cuts the trailer off first, so a reader that finds one knows that nothing is missing.
//
// A writer is for one goroutine.
type csvWriter struct {
	path    string
	f       *os.File // nil where the whole file is written at once
	out     *bufio.Writer
	head    csvHead
	dim     int
	stats   int
	source  []int
	line    []byte
	rows    int // in the file
	pending int // draws since the last flush
	adapted string
	facts   runFacts
	sum     uint32 // digest of all that was written, without the trailer
	size    int    // bytes of all that was written, without the trailer
	trailer bool   // the file has one
	err     error
}

// createCSV begins the file of one chain and writes its head. sites and stats are the layout, as for [draws.New]. A
// layout without any column is an [ErrLayout]. The file must not be there already ([io/fs.ErrExist]).
func createCSV(path string, sites []draws.Site, stats []string, opt csvHead) (*csvWriter, error) {
	w, head, err := newCSVWriter(path, sites, stats, opt)
	if err != nil {
		return nil, err
	}
	f, err := atomicfile.Open(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("store: create CSV: %w", err)
	}
	w.attach(f)
	w.write([]byte(head))
	return w, w.Flush()
}

func newCSVWriter(path string, sites []draws.Site, stats []string, opt csvHead) (*csvWriter, string, error) {
	d, err := draws.New(sites, stats, 1)
	if err != nil {
		return nil, "", fmt.Errorf("store: create CSV: %w", err)
	}
	if err := opt.fill(stats); err != nil {
		return nil, "", err
	}
	columns, source := columnsOf(sites, stats)
	if len(columns) == 0 {
		return nil, "", failf(ErrLayout, "create CSV: %s: a draw has neither elements nor statistics", path)
	}
	return &csvWriter{path: path, head: opt, dim: d.Dim(), stats: len(stats), source: source},
		csvHeader(opt, newLayout(sites, stats), columns), nil
}

func (w *csvWriter) attach(f *os.File) { w.f, w.out = f, bufio.NewWriterSize(f, 1<<16) }

// write keeps the first error, after which the file may end anywhere.
func (w *csvWriter) write(text []byte) {
	if w.err != nil {
		return
	}
	if w.trailer {
		w.trailer = false
		if w.failed(w.f.Truncate(int64(w.size))) {
			return
		}
		if _, err := w.f.Seek(int64(w.size), io.SeekStart); w.failed(err) {
			return
		}
	}
	_, err := w.out.Write(text)
	w.failed(err)
	w.sum = addSum(w.sum, text)
	w.size += len(text)
}

func (w *csvWriter) failed(err error) bool {
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("store: write CSV: %w", err)
	}
	return err != nil
}

// Rows is the number of draws in the file, those of the warm-up among them.
func (w *csvWriter) Rows() int { return w.rows }

// Digest is that of all lines without the trailer.
func (w *csvWriter) Digest() string { return digestText(w.sum) }

// Describe sets the attributes and notes, which the next flush writes.
func (w *csvWriter) Describe(f runFacts) {
	if f != w.facts {
		w.facts = f
		w.write(nil) // cuts off a trailer that has the old ones
	}
}

// Append writes a draw: the flat vector and the statistics, which are copied. An [ErrLayout] says which length
// is wrong, and then nothing is written. An error of the disk stays: all further calls return it.
func (w *csvWriter) Append(x, stats []float64) error {
	switch {
	case w.err != nil:
		return w.err
	case len(x) != w.dim:
		return failf(ErrLayout, "append to %s: x has %d numbers, want %d", w.path, len(x), w.dim)
	case len(stats) != w.stats:
		return failf(ErrLayout, "append to %s: stats has %d numbers, want %d", w.path, len(stats), w.stats)
	}
	w.line = w.line[:0]
	for i, from := range w.source {
		if i > 0 {
			w.line = append(w.line, ',')
		}
		if from < w.dim {
			w.line = appendCSVNumber(w.line, x[from])
		} else {
			w.line = appendCSVNumber(w.line, stats[from-w.dim])
		}
	}
	w.line = append(w.line, '\n')
	w.write(w.line)
	w.rows++
	if w.pending++; w.pending >= w.head.FlushEvery {
		return w.Flush()
	}
	return w.err
}

// AppendAll writes the draws of one chain.
func (w *csvWriter) AppendAll(d *draws.Draws, chain int) error {
	for i := range d.Len(chain) {
		if err := w.Append(d.Row(chain, i), d.StatRow(chain, i)); err != nil {
			return err
		}
	}
	return nil
}

// appendCSVNumber is the shortest text that reads back as the same float64; nan, inf and -inf as CmdStan has them.
func appendCSVNumber(b []byte, v float64) []byte {
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

func csvNumber(v float64) string { return string(appendCSVNumber(nil, v)) }

// elapsed stands behind the draws in CmdStan's files: how long a run took, which draws do not keep.
const elapsed = "# \n#  Elapsed Time: 0 seconds (Warm-up)\n#                0 seconds (Sampling)\n" +
	"#                0 seconds (Total)\n# \n"

// Flush hands all draws to the operating system, with a trailer.
func (w *csvWriter) Flush() error {
	w.pending = 0
	if w.err != nil || w.f == nil {
		return w.err
	}
	if !w.trailer {
		if w.failed(w.out.Flush()) {
			return w.err
		}
		w.trailer = true
		_, err := w.f.WriteString(w.end())
		w.failed(err)
	}
	return w.err
}

// end is the trailer. Its digest covers the lines of the trailer before it too.
func (w *csvWriter) end() string {
	text := ""
	for _, c := range [][2]string{{attrsKey, w.facts.Attrs}, {notesKey, w.facts.Notes}} {
		if c[1] != "" {
			text += "# " + c[0] + " " + strings.ReplaceAll(c[1], "=", `\u003d`) + "\n"
		}
	}
	return text + "# " + digestKey + " " + digestText(addSum(w.sum, []byte(text))) + "\n"
}

// Sync flushes and waits for the disk. A file that was removed or replaced since it was opened is an error.
func (w *csvWriter) Sync() error {
	if w.Flush() == nil && !w.failed(atomicfile.Sync(w.f)) {
		w.failed(atomicfile.Present(w.f))
	}
	return w.err
}

// Close flushes, waits for the disk and closes the file. After it, every call returns [errClosed].
func (w *csvWriter) Close() error {
	if w.err == errClosed {
		return nil
	}
	err := w.Sync()
	if e := w.f.Close(); err == nil && e != nil {
		err = fmt.Errorf("store: write CSV: %w", e)
	}
	w.err = errClosed
	return err
}

// writeCSVFiles writes base_1.csv, base_2.csv, ... and returns the paths and the digests.
func writeCSVFiles(base string, posterior, warmup *draws.Draws, opt csvHead) (paths, digests []string, err error) {
	d := posterior
	if d == nil {
		return nil, nil, failf(ErrLayout, "write CSV: there is no posterior")
	}
	if w := warmup; w != nil && (w.Chains() != d.Chains() || !sameSites(w.Sites(), d.Sites()) ||
		!slices.Equal(w.Stats(), d.Stats())) {
		return nil, nil, failf(ErrLayout,
			"write CSV: the warm-up has other chains, sites or statistics than the posterior")
	}
	for chain := range d.Chains() {
		path := fmt.Sprintf("%s_%d.csv", base, chain+1)
		opt.Chain = chain + 1
		digest := ""
		if err := atomicfile.Replace(path, func(to io.Writer) (err error) {
			digest, err = writeCSVChain(to, path, d, warmup, chain, opt)
			return err
		}); err != nil {
			return paths, digests, during("write CSV", err)
		}
		paths, digests = append(paths, path), append(digests, digest)
	}
	return paths, digests, nil
}

func writeCSVChain(to io.Writer, path string, d, warmup *draws.Draws, chain int, opt csvHead) (digest string,
	err error) {
	opt.Draws = max(d.Len(chain), 1) * max(opt.Thin, 1)
	opt.SaveWarmup = warmup != nil && warmup.Len(chain) > 0
	if opt.SaveWarmup {
		opt.Warmup = warmup.Len(chain) * max(opt.Thin, 1)
	}
	w, head, err := newCSVWriter(path, d.Sites(), d.Stats(), opt)
	if err != nil {
		return "", err
	}
	w.out = bufio.NewWriterSize(to, 1<<16)
	w.facts = factsOf(d)
	w.write([]byte(head))
	if opt.SaveWarmup {
		if err := w.AppendAll(warmup, chain); err != nil {
			return "", err
		}
	}
	if w.head.HMC {
		if err := w.Adapted(lastStep(chain, d, warmup)); err != nil {
			return "", err
		}
	}
	if err := w.AppendAll(d, chain); err != nil {
		return "", err
	}
	w.write([]byte(elapsed))
	end := w.end()
	if _, err := w.out.WriteString(end); err != nil {
		return "", err
	}
	return strings.TrimSpace(end[strings.LastIndex(strings.TrimSpace(end), " "):]), w.out.Flush()
}

// lastStep is the step size of the last draw, 1 if it is not known.
func lastStep(chain int, of ...*draws.Draws) float64 {
	for _, d := range of {
		if d == nil || d.Len(chain) == 0 {
			continue
		}
		if name, ok := d.StatName(draws.StatStepSize); ok {
			trace, _ := d.Stat(name, chain)
			return trace[len(trace)-1]
		}
	}
	return 1
}
