package store

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
)

// csvHead is what the head of a file says.
type csvHead struct {
	CSVOptions
	NoSeed     bool // Seed is not known
	SaveWarmup bool
	HMC        bool   // draws have the statistic step_size; the others are of fixed_param
	Chain      int    // from 1; 0 is 1
	Run        string // the run's identity; empty is not compared
}

// fill sets the defaults and checks.
func (o *csvHead) fill(stats []string) error {
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
		return failf(ErrRange, "CSV: TargetAccept is %v, want a number between 0 and 1, or 0 for 0.8",
			o.TargetAccept)
	}
	o.TargetAccept = cmp.Or(o.TargetAccept, 0.8)
	o.Model = cmp.Or(o.Model, "model")
	if d, err := draws.New(nil, stats, 1); err == nil {
		_, o.HMC = d.StatName(draws.StatStepSize)
	}
	return nil
}

// csvHeader is the head of a file: CmdStan's comments, Kelvin's layout, the names of the columns.
func csvHeader(o csvHead, l layout, columns []string) string {
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
	if o.HMC {
		line("    adapt")
		line("      engaged = true (Default)")
		line("      delta = %s", csvNumber(o.TargetAccept))
		line("    algorithm = hmc (Default)")
		line("      hmc")
		line("        engine = nuts (Default)")
		line("          nuts")
		line("            max_depth = %d", o.MaxTreeDepth)
		line("        metric = unit_e")
		line("        (draws do not keep their metric: unit_e stands in its place, as readers want one)")
	} else {
		line("    algorithm = fixed_param")
	}
	line("id = %d", o.Chain)
	if !o.NoSeed {
		line("random")
		line("  seed = %d", o.Seed)
	}
	line("%s %s", libraryKey, libraryVersion())
	if o.Run != "" {
		line("%s %s", runKey, oneLine(o.Run))
	}
	line("%s %s", layoutKey, l)
	b.WriteString(strings.Join(columns, ",") + "\n")
	return b.String()
}

// oneLine makes a text fit for a comment.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == '=' }), " ")
}
