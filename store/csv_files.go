package store

import (
	"cmp"
	"fmt"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/kelvin-ppl/kelvin/draws"
)

// ReadCSV reads the CSV files of a run, one per chain, as Kelvin or CmdStan writes them: with or without draws of the
// warm-up (which go into Warmup), thinned, with comments anywhere. Chains may differ in length; columns may not.
//
// CmdStan's names of statistics become Kelvin's: lp__ is lp. Columns are put in place by the indices in their names,
// whatever their order. An incomplete last line, which a killed run leaves, is dropped and mentioned in Notes. A wrong
// file is a [ParseError] with file, line and column; files that do not fit together are an [ErrLayout].
//
// Attrs have, as far as the files tell, model_name, seed, thin, num_warmup, num_samples, max_treedepth, the
// inference_library with its version, and for each chain the step_size.
func ReadCSV(paths ...string) (*Inference, error) {
	if len(paths) == 0 {
		return nil, failf(ErrRange, "read CSV: no file was named")
	}
	chains := make([]*csvChain, len(paths))
	for i, path := range paths {
		c, err := readCSVFile(path)
		if err != nil {
			return nil, err
		}
		chains[i] = c
	}
	return joinCSV(chains)
}

// ReadCSVFrom reads one chain from a reader.
func ReadCSVFrom(r io.Reader) (*Inference, error) {
	c, err := readCSVChain(r, "CSV")
	if err != nil {
		return nil, err
	}
	return joinCSV([]*csvChain{c})
}

func joinCSV(chains []*csvChain) (*Inference, error) {
	first := chains[0]
	sites, stats := first.layout.sites(), first.layout.Stats
	inf := &Inference{Attrs: first.attrs()}
	var steps []any
	var err error
	if inf.Posterior, err = draws.New(sites, stats, len(chains)); err != nil {
		return nil, &ParseError{File: first.file, Err: err}
	}
	warmup, _ := draws.New(sites, stats, len(chains))
	for k, c := range chains {
		if !sameSites(c.layout.sites(), sites) || !slices.Equal(c.layout.Stats, stats) {
			return nil, failf(ErrLayout, "%s and %s are not of one run: their columns differ", first.file, c.file)
		}
		if err := c.fill(warmup, k, 0, c.warmup); err != nil {
			return nil, err
		}
		if err := c.fill(inf.Posterior, k, c.warmup, c.n); err != nil {
			return nil, err
		}
		if c.step > 0 {
			steps = append(steps, c.step)
		}
		inf.Notes = append(inf.Notes, c.notes...)
		c.rows = nil
	}
	if warmup.MaxLen() > 0 {
		inf.Warmup = warmup
	}
	if len(steps) == len(chains) {
		inf.Attrs["step_size"] = steps
	}
	return inf, nil
}

// attrs are the attributes that a file's comments give.
func (c *csvChain) attrs() map[string]any {
	out := map[string]any{}
	for key, name := range map[string]string{"model": "model_name", "start_datetime": "start_datetime"} {
		if v := c.config[key]; v != "" {
			out[name] = v
		}
	}
	for key, name := range map[string]string{"seed": "seed", "thin": "thin", "num_warmup": "num_warmup", "num_samples": "num_samples", "max_depth": "max_treedepth"} {
		if v, err := strconv.ParseFloat(c.config[key], 64); err == nil {
			out[name] = v
		}
	}
	if major := c.config["stan_version_major"]; major != "" {
		out["inference_library"] = "cmdstan"
		out["inference_library_version"] = fmt.Sprintf("%s.%s.%s", major, c.config["stan_version_minor"], c.config["stan_version_patch"])
	} else if c.own != nil {
		out["inference_library"] = "kelvin"
	}
	return out
}

// WriteCSV writes the posterior, and the warm-up if there is one, as base_1.csv, base_2.csv, ... and returns the paths;
// files of these names are replaced, each in one move. Chain, SaveWarmup and the number of warm-up draws are set from
// inf; a missing Algorithm is hmc if there is a step size, and then the adaptation block has the last one and the unit
// metric. Other groups have no place in CSV and are left out.
func WriteCSV(base string, inf *Inference, opt CSVOptions) ([]string, error) {
	d := inf.Posterior
	if d == nil {
		return nil, failf(ErrLayout, "write CSV: there is no posterior")
	}
	if w := inf.Warmup; w != nil && (w.Chains() != d.Chains() || !sameSites(w.Sites(), d.Sites()) || !slices.Equal(w.Stats(), d.Stats())) {
		return nil, failf(ErrLayout, "write CSV: the warm-up has other chains, sites or statistics than the posterior")
	}
	opt.Metric = "unit_e"
	var paths []string
	for chain := range d.Chains() {
		path := fmt.Sprintf("%s_%d.csv", base, chain+1)
		opt.Chain = chain + 1
		if err := atomicfile.Replace(path, func(w io.Writer) error { return writeCSVChain(w, path, inf, chain, opt) }); err != nil {
			return paths, during("write CSV", err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

func writeCSVChain(to io.Writer, path string, inf *Inference, chain int, opt CSVOptions) error {
	d := inf.Posterior
	opt.Draws = max(d.Len(chain), 1) * max(opt.Thin, 1)
	opt.SaveWarmup = inf.Warmup != nil && inf.Warmup.Len(chain) > 0
	if opt.SaveWarmup {
		opt.Warmup = inf.Warmup.Len(chain) * max(opt.Thin, 1)
	}
	w, head, err := newCSVWriter(path, d.Sites(), d.Stats(), opt)
	if err != nil {
		return err
	}
	w.out = newBuffer(to)
	w.write([]byte(head))
	if opt.SaveWarmup {
		if err := w.appendAll(inf.Warmup, chain); err != nil {
			return err
		}
	}
	if w.opt.Algorithm == "hmc" {
		a := Adaptation{StepSize: 1}
		for _, in := range []*draws.Draws{d, inf.Warmup} {
			if in == nil || in.Len(chain) == 0 {
				continue
			}
			if name, ok := in.StatName(draws.StatStepSize); ok {
				trace, _ := in.Stat(name, chain)
				a.StepSize = trace[len(trace)-1]
				break
			}
		}
		if err := w.Adapted(a); err != nil {
			return err
		}
	}
	if err := w.appendAll(d, chain); err != nil {
		return err
	}
	return w.Finish(0, 0)
}

func (w *CSVWriter) appendAll(d *draws.Draws, chain int) error {
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

// naturalOrder sorts chain_2 before chain_10.
func naturalOrder(a, b string) int {
	for a != "" && b != "" {
		x, y := leading(a), leading(b)
		if x != "" && y != "" {
			p, q := strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if c := cmp.Or(cmp.Compare(len(p), len(q)), cmp.Compare(p, q)); c != 0 {
				return c
			}
			a, b = a[len(x):], b[len(y):]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// leading are the digits at the start.
func leading(s string) string {
	if i := strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsDigit(r) }); i >= 0 {
		return s[:i]
	}
	return s
}
