package store

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
)

// csvRun is what the files of a run hold.
type csvRun struct {
	Posterior, Warmup *draws.Draws // Warmup is nil if the file has no warm-up draws
	Attrs             map[string]any
	Notes             []string
	Digests           []string // of the files, in their order; empty for a file without one
}

// readCSVFiles reads the files of a run, one for each chain.
func readCSVFiles(limits Limits, paths ...string) (*csvRun, error) {
	if len(paths) == 0 {
		return nil, failf(ErrRange, "read CSV: no file was named")
	}
	var chains []*csvChain
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("store: read CSV: %w", err)
		}
		more, err := readCSVChains(f, path, limits)
		_ = f.Close()
		if err != nil {
			return nil, err
		}
		chains = append(chains, more...)
	}
	return joinChains(chains)
}

// readCSV reads one file.
func readCSV(r io.Reader, file string, limits Limits) (*csvRun, error) {
	chains, err := readCSVChains(r, file, limits)
	if err != nil {
		return nil, err
	}
	return joinChains(chains)
}

// readCSVChains reads a file, which holds one chain, or all of an old table.
func readCSVChains(r io.Reader, file string, limits Limits) ([]*csvChain, error) {
	c, err := readCSVChain(r, file, limits)
	if err == nil && c.table {
		return c.split()
	}
	return []*csvChain{c}, err
}

func joinChains(chains []*csvChain) (*csvRun, error) {
	first := chains[0]
	sites, stats := first.layout.Placed(), first.layout.Stats
	run := &csvRun{Attrs: first.attrs()}
	var steps []any
	var err error
	if run.Posterior, err = draws.New(sites, stats, len(chains)); err != nil {
		return nil, &ParseError{File: first.file, Err: err}
	}
	warmup, _ := draws.New(sites, stats, len(chains))
	for k, c := range chains {
		if !sameSites(c.layout.Placed(), sites) || !slices.Equal(c.layout.Stats, stats) {
			return nil, failf(ErrLayout, "%s and %s are not of one run: their columns differ", first.file,
				c.file)
		}
		if err := c.fill(warmup, k, 0, c.warmup); err != nil {
			return nil, err
		}
		if err := c.fill(run.Posterior, k, c.warmup, c.n); err != nil {
			return nil, err
		}
		if c.step > 0 {
			steps = append(steps, c.step)
		}
		c.facts.Give(run.Posterior)
		run.Notes = append(run.Notes, c.notes...)
		run.Digests = append(run.Digests, c.digest)
		c.rows = nil
	}
	if warmup.MaxLen() > 0 {
		run.Warmup = warmup
	}
	if len(steps) == len(chains) {
		run.Attrs["step_size"] = steps
	}
	return run, nil
}

// csvChain is one file as it was read.
type csvChain struct {
	file   string
	config map[string]string // the comments "# key = value", without "(Default)"
	own    *layout           // Kelvin's layout, if it fits the header
	layout layout
	width  int
	rows   []float64 // flat vectors and statistics, one after the other
	n      int
	table  bool  // of all chains
	lines  []int // of its draws
	warmup int   // how many of the rows are of the warm-up
	step   float64
	block  adaptBlock
	facts  runFacts
	digest string
	notes  []string
	budget *readBudget
}

// readCSVChain reads a chain. Errors are [ParseError]s, or those of r.
func readCSVChain(r io.Reader, file string, limits Limits) (*csvChain, error) {
	c := &csvChain{file: file, config: map[string]string{}, budget: newBudget(limits)}
	scan := newCSVScanner(c.budget.Reader(r))
	var header []string
	var source []int
	var written *layout // before it is known to fit
	adaptedAt := -1
	for {
		ok, err := scan.next()
		if err != nil {
			return nil, during("read "+file, err)
		}
		if !ok {
			break
		}
		switch {
		case scan.comment():
			if err := scan.digest(); err != nil {
				return nil, &ParseError{File: file, Line: scan.line, Err: err}
			}
			text := string(scan.text)
			if l, ok := scan.own(layoutKey); ok && header == nil {
				written = parseLayout(l)
			}
			if strings.HasPrefix(text, adaptedLine) && header != nil {
				adaptedAt = c.n
			}
			c.block.add(text)
			c.setting(scan)
		case scan.blank():
		case header == nil:
			if header, source, err = c.header(scan, written); err != nil {
				return nil, err
			}
		default:
			c.block.open, c.digest = false, ""
			if err := c.row(scan, header, source); err != nil {
				return nil, err
			}
		}
	}
	if header == nil {
		return nil, &ParseError{File: file, Line: scan.line,
			Err: because(ErrFormat, "the file ends before the names of the columns")}
	}
	if scan.torn {
		c.notes = append(c.notes, fmt.Sprintf("%s: line %d is incomplete, as a killed run leaves it, and was dropped",
			file, scan.line+1))
	}
	c.countWarmup(adaptedAt)
	if c.config["method"] == "variational" && c.n > 0 {
		c.rows, c.n = c.rows[c.width:], c.n-1
		c.notes = append(c.notes, file+": the first row, the mean of the approximation, is no draw and was left out")
	}
	return c, nil
}

// header reads the names of the columns.
func (c *csvChain) header(scan *csvScanner, own *layout) (header []string, source []int, err error) {
	if header, c.table, err = headerOf(string(scan.text)); err != nil {
		return nil, nil, &ParseError{File: c.file, Line: scan.line, Err: err}
	}
	source, err = c.columns(header, own, scan.line)
	return header, source, err
}

// columns finds the layout in the header, or Kelvin's own.
func (c *csvChain) columns(header []string, own *layout, line int) (source []int, err error) {
	c.width = len(header)
	wrong := func(at int, err error) error {
		e := &ParseError{File: c.file, Line: line, Err: err}
		if at >= 0 {
			e.Column, e.What = at+1, header[at]
		}
		return e
	}
	if own != nil {
		if err := c.budget.Named(len(own.Sites) + len(own.Stats)); err != nil {
			return nil, wrong(-1, err)
		}
		dim := 0
		for _, s := range own.Placed() {
			dim += s.Size
		}
		if dim <= len(header) {
			if names, source := columnsOf(own.Placed(), own.Stats); slices.Equal(names, header) {
				c.own, c.layout = own, *own
				return source, nil
			}
		}
	}
	l, source, at, err := parseColumns(header, c.table)
	if err == nil {
		at, err = -1, c.budget.Named(len(l.Sites)+len(l.Stats))
	}
	if err != nil {
		return nil, wrong(at, err)
	}
	c.layout = l
	return source, nil
}

// row reads a draw.
func (c *csvChain) row(scan *csvScanner, header []string, source []int) error {
	if err := checkRow(scan.text, len(header)); err != nil {
		return &ParseError{File: c.file, Line: scan.line, Err: err}
	}
	start := len(c.rows)
	if err := c.budget.Count(start + len(header)); err != nil {
		return &ParseError{File: c.file, Line: scan.line, Err: err}
	}
	c.rows = append(c.rows, make([]float64, len(header))...)
	row, rest := c.rows[start:], scan.text
	for i, to := range source {
		field := rest
		if k := bytes.IndexByte(rest, ','); k >= 0 {
			field, rest = rest[:k], rest[k+1:]
		}
		v, err := strconv.ParseFloat(string(bytes.TrimSpace(field)), 64)
		if err != nil {
			return &ParseError{File: c.file, Line: scan.line, Column: i + 1, What: header[i],
				Err: notNumber(string(field), err)}
		}
		row[to] = v
	}
	c.n++
	if c.table {
		c.lines = append(c.lines, scan.line)
	}
	return nil
}

// checkRow checks the number of values of a line.
func checkRow(text []byte, want int) error {
	if n := bytes.Count(text, []byte(",")) + 1; n != want {
		return because(ErrFormat, "%d values, want %d, one for each column", n, want)
	}
	return nil
}

// setting keeps a comment of the form key = value, and those of Kelvin.
func (c *csvChain) setting(scan *csvScanner) {
	if text, ok := scan.own(attrsKey); ok {
		c.facts.Attrs = text
		return
	}
	if text, ok := scan.own(notesKey); ok {
		c.facts.Notes = text
		return
	}
	if text, ok := scan.own(digestKey); ok {
		c.digest = text
		return
	}
	key, value, ok := strings.Cut(strings.Trim(string(scan.text), "# \t"), " = ")
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

// countWarmup says how many of the draws are of the warm-up: those before the adaptation block. Without a block, in a
// file that says that it has draws of the warm-up, it is as many as were asked for.
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

// attrs are the attributes that a file's comments give.
func (c *csvChain) attrs() map[string]any {
	out := map[string]any{}
	for key, name := range map[string]string{"model": "model_name", "start_datetime": "start_datetime"} {
		if v := c.config[key]; v != "" {
			out[name] = v
		}
	}
	for key, name := range map[string]string{
		"seed": "seed", "thin": "thin", "num_warmup": "num_warmup", "num_samples": "num_samples",
		"max_depth": "max_treedepth",
	} {
		if v, err := strconv.ParseFloat(c.config[key], 64); err == nil {
			out[name] = v
		}
	}
	if major := c.config["stan_version_major"]; major != "" {
		out["inference_library"] = "cmdstan"
		out["inference_library_version"] = fmt.Sprintf("%s.%s.%s", major, c.config["stan_version_minor"],
			c.config["stan_version_patch"])
	} else if c.own != nil {
		out["inference_library"] = "kelvin"
	}
	return out
}
