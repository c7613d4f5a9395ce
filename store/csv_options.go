package store

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kelvin-ppl/kelvin/draws"
)

// CSVOptions are what a CSV file says about its run, and how it is written. The zero value is a file of chain 1 with
// CmdStan's defaults.
type CSVOptions struct {
	// Model is the name of the model; empty is "model".
	Model string
	// Seed is the seed of the run. Chain is the number of the chain, from 1; 0 is 1.
	Seed  uint64
	Chain int
	// Run identifies the run, so that another one cannot go on with its files; empty is not compared. [CSVSink] sets it.
	Run string
	// Warmup and Draws are the numbers of iterations that were asked for; 0 is 1000. Thin keeps every Thin-th; 0 is 1.
	Warmup, Draws, Thin int
	// SaveWarmup says that the draws before [CSVWriter.Adapted] are those of the warm-up.
	SaveWarmup bool
	// Algorithm is hmc or fixed_param; empty is hmc for draws with the statistic step_size, else fixed_param.
	Algorithm string
	// Metric is unit_e, diag_e or dense_e, which [CSVWriter.Adapted] must fit; empty is diag_e.
	Metric string
	// TargetAccept is the acceptance that adaptation aimed at; 0 is 0.8. MaxTreeDepth is the limit; 0 is 10.
	TargetAccept float64
	MaxTreeDepth int
	// Start is when the run began; the zero time is left out.
	Start time.Time
	// FlushEvery is after how many draws they are handed to the operating system, so that they outlive the program; 0
	// is 100.
	FlushEvery int
}

// fill sets the defaults and checks.
func (o *CSVOptions) fill(stats []string) error {
	for _, f := range []struct {
		name  string
		value *int
		or    int
	}{
		{"Chain", &o.Chain, 1}, {"Warmup", &o.Warmup, 1000}, {"Draws", &o.Draws, 1000}, {"Thin", &o.Thin, 1},
		{"MaxTreeDepth", &o.MaxTreeDepth, 10}, {"FlushEvery", &o.FlushEvery, 100},
	} {
		if *f.value < 0 {
			return failf(ErrRange, "CSV: %s is %d, want a positive number, or 0 for %d", f.name, *f.value, f.or)
		}
		if *f.value == 0 {
			*f.value = f.or
		}
	}
	if !(o.TargetAccept >= 0 && o.TargetAccept < 1) {
		return failf(ErrRange, "CSV: TargetAccept is %v, want a number between 0 and 1, or 0 for 0.8", o.TargetAccept)
	}
	if o.TargetAccept == 0 {
		o.TargetAccept = 0.8
	}
	if o.Model == "" {
		o.Model = "model"
	}
	if o.Algorithm == "" {
		o.Algorithm = "fixed_param"
		if d, err := draws.New(nil, stats, 1); err == nil {
			if _, ok := d.StatName(draws.StatStepSize); ok {
				o.Algorithm = "hmc"
			}
		}
	}
	if o.Metric == "" {
		o.Metric = "diag_e"
	}
	if allowed := []string{"hmc", "fixed_param"}; !slices.Contains(allowed, o.Algorithm) {
		return failf(ErrRange, "CSV: Algorithm is %q, want one of %q", o.Algorithm, allowed)
	}
	if allowed := []string{"unit_e", "diag_e", "dense_e"}; !slices.Contains(allowed, o.Metric) {
		return failf(ErrRange, "CSV: Metric is %q, want one of %q", o.Metric, allowed)
	}
	return nil
}

// csvHead is the head of a file: CmdStan's comments, Kelvin's layout, the names of the columns.
func csvHead(o CSVOptions, l layout, columns []string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "# "+format+"\n", args...) }
	line("model = %s", oneLine(o.Model))
	if !o.Start.IsZero() {
		line("start_datetime = %s", o.Start.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	line("method = sample (Default)")
	line("  sample")
	line("    num_samples = %d", o.Draws)
	line("    num_warmup = %d", o.Warmup)
	line("    save_warmup = %t", o.SaveWarmup)
	line("    thin = %d", o.Thin)
	if o.Algorithm == "hmc" {
		line("    adapt")
		line("      engaged = true (Default)")
		line("      delta = %s", csvNumber(o.TargetAccept))
		line("    algorithm = hmc (Default)")
		line("      hmc")
		line("        engine = nuts (Default)")
		line("          nuts")
		line("            max_depth = %d", o.MaxTreeDepth)
		line("        metric = %s", o.Metric)
	} else {
		line("    algorithm = fixed_param")
	}
	line("id = %d", o.Chain)
	line("random")
	line("  seed = %d", o.Seed)
	line("%s %s", libraryKey, libraryVersion())
	if o.Run != "" {
		line("%s %s", runKey, oneLine(o.Run))
	}
	line("%s %s", layoutKey, l)
	b.WriteString(strings.Join(columns, ",") + "\n")
	return b.String()
}

// runKey begins the comment with the run's identity, which AppendCSV compares.
const runKey = "kelvin_run"

// libraryKey begins the comment with Kelvin's version. It has no =, which CmdStan's readers would take for an option.
const libraryKey = "kelvin_version"

// oneLine makes a text fit for a comment.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == '=' }), " ")
}
