package cmdstan

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/store/internal/content"
)

// Writer writes the file of one chain while the run goes. What has been flushed outlives the program: a kill leaves at
// most one incomplete line at the end, which readers drop with a note and [Append] cuts off.
//
// After each flush the file ends in a trailer of comments: attributes, notes, and the digest of all lines before it.
// The next draw cuts the trailer off first, so a reader that finds one knows that nothing is missing.
//
// A writer is for one goroutine.
type Writer struct {
	path    string
	f       *os.File // nil where the whole file is written at once
	out     *bufio.Writer
	opt     Options
	dim     int
	stats   int
	source  []int
	line    []byte
	rows    int // in the file
	pending int // draws since the last flush
	adapted string
	facts   content.Facts
	sum     uint32 // digest of all that was written, without the trailer
	size    int64  // bytes of all that was written, without the trailer
	trailer bool   // the file has one
	done    bool   // the times are written
	err     error
}

// Create begins the file of one chain and writes its head. sites and stats are the layout, as for [draws.New]. A layout
// without any column is an [content.ErrLayout]. The file must not be there already ([io/fs.ErrExist]).
func Create(path string, sites []draws.Site, stats []string, opt Options) (*Writer, error) {
	w, head, err := newWriter(path, sites, stats, opt)
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

func newWriter(path string, sites []draws.Site, stats []string, opt Options) (*Writer, string, error) {
	d, err := draws.New(sites, stats, 1)
	if err != nil {
		return nil, "", fmt.Errorf("store: create CSV: %w", err)
	}
	if err := opt.fill(stats); err != nil {
		return nil, "", err
	}
	columns, source := columnsOf(sites, stats)
	if len(columns) == 0 {
		return nil, "", content.Failf(content.ErrLayout, "create CSV: %s: a draw has neither elements nor statistics", path)
	}
	return &Writer{path: path, opt: opt, dim: d.Dim(), stats: len(stats), source: source},
		head(opt, content.NewLayout(sites, stats), columns), nil
}

func (w *Writer) attach(f *os.File) { w.f, w.out = f, bufio.NewWriterSize(f, 1<<16) }

// write keeps the first error, after which the file may end anywhere.
func (w *Writer) write(text []byte) {
	if w.err != nil {
		return
	}
	if w.trailer {
		w.trailer = false
		if w.failed(w.f.Truncate(w.size)) {
			return
		}
		if _, err := w.f.Seek(w.size, io.SeekStart); w.failed(err) {
			return
		}
	}
	_, err := w.out.Write(text)
	w.failed(err)
	w.sum = content.Sum(w.sum, text)
	w.size += int64(len(text))
}

func (w *Writer) failed(err error) bool {
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("store: write CSV: %w", err)
	}
	return err != nil
}

// Rows is the number of draws in the file, those of the warm-up among them.
func (w *Writer) Rows() int { return w.rows }

// Digest is that of all lines without the trailer.
func (w *Writer) Digest() string { return content.Digest(w.sum) }

// Describe sets the attributes and notes, which the next flush writes.
func (w *Writer) Describe(f content.Facts) {
	if f != w.facts {
		w.facts = f
		w.write(nil) // cuts off a trailer that has the old ones
	}
}

// Append writes a draw: the flat vector and the statistics, which are copied. An [content.ErrLayout] says which length
// is wrong, and then nothing is written. An error of the disk stays: all further calls return it.
func (w *Writer) Append(x, stats []float64) error {
	switch {
	case w.err != nil:
		return w.err
	case len(x) != w.dim:
		return content.Failf(content.ErrLayout, "append to %s: x has %d numbers, want %d", w.path, len(x), w.dim)
	case len(stats) != w.stats:
		return content.Failf(content.ErrLayout, "append to %s: stats has %d numbers, want %d", w.path, len(stats), w.stats)
	case w.done:
		return content.Failf(content.ErrLayout, "append to %s: the times of the run are written already", w.path)
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

// AppendAll writes the draws of one chain.
func (w *Writer) AppendAll(d *draws.Draws, chain int) error {
	stats, traces := make([]float64, w.stats), make([][]float64, w.stats)
	for k, name := range d.Stats() {
		traces[k], _ = d.Stat(name, chain)
	}
	for i := range d.Len(chain) {
		for k := range stats {
			stats[k] = traces[k][i]
		}
		if err := w.Append(d.Row(chain, i), stats); err != nil {
			return err
		}
	}
	return nil
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

func number(v float64) string { return string(appendNumber(nil, v)) }

// Finish writes how long warm-up and sampling took, as CmdStan does at the end, and flushes. No draw may follow. Close
// without Finish leaves a file that is as readable, and can be resumed in the same way.
func (w *Writer) Finish(warmup, sampling time.Duration) error {
	if w.err != nil {
		return w.err
	}
	if w.done {
		return content.Failf(content.ErrLayout, "finish %s: the times of the run are written already", w.path)
	}
	w.done = true
	w.write(fmt.Appendf(nil, "# \n#  Elapsed Time: %.6g seconds (Warm-up)\n#                %.6g seconds (Sampling)\n"+
		"#                %.6g seconds (Total)\n# \n", warmup.Seconds(), sampling.Seconds(), (warmup + sampling).Seconds()))
	return w.Flush()
}

// Flush hands all draws to the operating system, with a trailer.
func (w *Writer) Flush() error {
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
func (w *Writer) end() string {
	text := ""
	for _, c := range [][2]string{{content.AttrsKey, w.facts.Attrs}, {content.NotesKey, w.facts.Notes}} {
		if c[1] != "" {
			text += "# " + c[0] + " " + strings.ReplaceAll(c[1], "=", `\u003d`) + "\n"
		}
	}
	return text + "# " + content.DigestKey + " " + content.Digest(content.Sum(w.sum, []byte(text))) + "\n"
}

// Sync flushes and waits for the disk. A file that was removed or replaced since it was opened is an error.
func (w *Writer) Sync() error {
	if w.Flush() == nil && !w.failed(atomicfile.Sync(w.f)) {
		w.failed(atomicfile.Present(w.f))
	}
	return w.err
}

// Close flushes, waits for the disk and closes the file. After it, every call returns [content.ErrClosed].
func (w *Writer) Close() error {
	if w.err == content.ErrClosed {
		return nil
	}
	err := w.Sync()
	if e := w.f.Close(); err == nil && e != nil {
		err = fmt.Errorf("store: write CSV: %w", e)
	}
	w.err = content.ErrClosed
	return err
}

// WriteFiles writes base_1.csv, base_2.csv, ... and returns the paths and the digests.
func WriteFiles(base string, posterior, warmup *draws.Draws, opt Options) (paths, digests []string, err error) {
	d := posterior
	if d == nil {
		return nil, nil, content.Failf(content.ErrLayout, "write CSV: there is no posterior")
	}
	if w := warmup; w != nil && (w.Chains() != d.Chains() || !content.SameSites(w.Sites(), d.Sites()) ||
		!slices.Equal(w.Stats(), d.Stats())) {
		return nil, nil, content.Failf(content.ErrLayout,
			"write CSV: the warm-up has other chains, sites or statistics than the posterior")
	}
	opt.Metric = "unit_e"
	for chain := range d.Chains() {
		path := fmt.Sprintf("%s_%d.csv", base, chain+1)
		opt.Chain = chain + 1
		digest := ""
		if err := atomicfile.Replace(path, func(to io.Writer) (err error) {
			digest, err = writeChain(to, path, d, warmup, chain, opt)
			return err
		}); err != nil {
			return paths, digests, content.During("write CSV", err)
		}
		paths, digests = append(paths, path), append(digests, digest)
	}
	return paths, digests, nil
}

func writeChain(to io.Writer, path string, d, warmup *draws.Draws, chain int, opt Options) (digest string, err error) {
	opt.Draws = max(d.Len(chain), 1) * max(opt.Thin, 1)
	opt.SaveWarmup = warmup != nil && warmup.Len(chain) > 0
	if opt.SaveWarmup {
		opt.Warmup = warmup.Len(chain) * max(opt.Thin, 1)
	}
	w, head, err := newWriter(path, d.Sites(), d.Stats(), opt)
	if err != nil {
		return "", err
	}
	w.out = bufio.NewWriterSize(to, 1<<16)
	w.facts = content.FactsOf(d)
	w.write([]byte(head))
	if opt.SaveWarmup {
		if err := w.AppendAll(warmup, chain); err != nil {
			return "", err
		}
	}
	if w.opt.Algorithm == "hmc" {
		if err := w.Adapted(Adaptation{StepSize: lastStep(chain, d, warmup)}); err != nil {
			return "", err
		}
	}
	if err := w.AppendAll(d, chain); err != nil {
		return "", err
	}
	if err := w.Finish(0, 0); err != nil {
		return "", err
	}
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
