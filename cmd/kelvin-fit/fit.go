package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/regression"
)

const fitUsage = `usage: kelvin fit data.csv 'y ~ x + (1 | g)' [flags]

Fits a regression, prints its priors, the summary and what is wrong with the draws, and makes a folder with the data, the
model, the draws, a report and pictures of the effect of each column. kelvin predict, effects, compare and code take the
folder; kelvin summary, diagnose and report take its draws.zarr.
`

// job is one fit.
type job struct {
	saved
	out   string
	force bool
}

// jobFlags are the flags of fit.
func jobFlags(j *job) *flag.FlagSet {
	j.Params, j.Priors, j.Reader.Levels = map[string]string{}, map[string]string{}, map[string][]string{}
	flags := flag.NewFlagSet("fit", flag.ContinueOnError)
	flags.StringVar(&j.Family, "family", "gaussian", "the law of the outcome is `FAMILY`, as bernoulli or negbinomial")
	flags.StringVar(&j.Link, "link", "", "the link is `LINK`, as probit (default: the family's own)")
	flags.StringVar(&j.Method, "method", "nuts", "sample by `METHOD`: "+methodNames())
	flags.IntVar(&j.Chains, "chains", 0, "run `N` chains (default: the method's own, mostly 4)")
	flags.IntVar(&j.Warmup, "warmup", 0, "make `N` updates of each chain before its first draw (default: the method's own)")
	flags.IntVar(&j.Draws, "draws", 0, "keep `N` draws of each chain (default: the method's own)")
	flags.Uint64Var(&j.Seed, "seed", 0, "take the random numbers of `SEED`")
	flags.Float64Var(&j.TargetAccept, "target-accept", 0, "nuts takes steps that are accepted with probability `P` "+
		"(default 0.8)")
	flags.StringVar(&j.out, "out", "fit", "make the folder `DIR`")
	flags.BoolVar(&j.force, "force", false, "replace the folder, if it is one of an earlier fit")
	flags.BoolVar(&j.DropMissing, "drop-missing", false, "leave out rows with missing values in columns of the formula")
	flags.StringVar(&j.Reader.Comma, "comma", "", "`CHARACTER` between the values of the file (default ,)")
	flags.StringVar(&j.Reader.Decimal, "decimal", "", "`CHARACTER` of decimals in the file (default .)")
	several(flags, "param", "the formula of another parameter, as 'sigma ~ x'", func(text string) error {
		name, _, ok := strings.Cut(text, "~")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return fmt.Errorf("%q: write it as 'sigma ~ x'", text)
		}
		j.Params[name] = text[strings.Index(text, "~"):]
		return nil
	})
	several(flags, "prior", "a prior in the place of the default, as 'b[age]=normal(0, 1)'", func(text string) error {
		name, says, err := parsePrior(text)
		j.Priors[name] = says
		return err
	})
	into := func(list *[]string) func(string) error {
		return func(text string) error { *list = append(*list, text); return nil }
	}
	several(flags, "factor", "the `COLUMN` has codes, not numbers", into(&j.Reader.Factors))
	several(flags, "number", "the `COLUMN` has numbers", into(&j.Reader.Numbers))
	several(flags, "missing", "the `WORD` means a missing value (default: NA, NaN and nan)", into(&j.Reader.Missing))
	several(flags, "levels", "levels of a factor in their order, as rating=low,mid,high", func(text string) error {
		name, list, ok := strings.Cut(text, "=")
		if !ok {
			return fmt.Errorf("%q: write it as rating=low,mid,high", text)
		}
		j.Reader.Levels[name] = strings.Split(list, ",")
		return nil
	})
	return flags
}

// check refuses what needs no data to be wrong.
func (j *job) check() error {
	if _, ok := methods[j.Method]; !ok {
		return wrong("-method %q: the methods are %s", j.Method, methodNames())
	}
	if a := j.TargetAccept; a != 0 && (j.Method != "nuts" || !(a > 0 && a < 1)) {
		return wrong("-target-accept %g: it is of the method nuts, and between 0 and 1", a)
	}
	for name, n := range map[string]int{"chains": j.Chains, "warmup": j.Warmup, "draws": j.Draws} {
		if n < 0 {
			return wrong("-%s is %d, want at least 1", name, n)
		}
	}
	for name, text := range map[string]string{"comma": j.Reader.Comma, "decimal": j.Reader.Decimal} {
		if len([]rune(text)) > 1 {
			return wrong("-%s is %q, want one character", name, text)
		}
	}
	j.out = filepath.Clean(j.out)
	if _, err := os.Lstat(j.out); err == nil {
		if !j.force {
			return fmt.Errorf("%s is there already: choose another folder with --out, or replace it with --force", j.out)
		}
		if _, err := readSaved(j.out); err != nil {
			return fmt.Errorf("--force: %w", err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// fit runs `kelvin fit`.
func (a *app) fit(ctx context.Context, args []string) error {
	begin := time.Now()
	j := &job{saved: saved{Format: version}}
	others, err := a.parse(jobFlags(j), fitUsage, args, 2, 2)
	if err != nil {
		return err
	}
	j.Source, j.Formula = others[0], others[1]
	if err := j.check(); err != nil {
		return err
	}
	raw, err := os.ReadFile(j.Source)
	if err != nil {
		return err
	}
	j.SHA256 = digest(raw)
	f, err := j.formula()
	if err != nil {
		return err
	}
	table, err := j.table(f, raw, j.Source)
	if err != nil {
		return err
	}
	model, err := f.Fit(table)
	if err != nil {
		return inFile(err, j.Source)
	}
	fmt.Fprintln(a.out, j.describe(model))
	r, err := a.sample(ctx, j, model)
	if err != nil {
		return err
	}
	err = r.write(ctx, j, raw) // before a reader of the summary ends the program, as head does
	if err == nil {
		fmt.Fprintf(a.err, "wrote %s, with %s (%.1f s in all)\n", j.out, pageFile, time.Since(begin).Seconds())
	}
	return errors.Join(err, r.print(a.out))
}

// sample runs the method and what follows it.
func (a *app) sample(ctx context.Context, j *job, model *regression.Model) (*results, error) {
	fmt.Fprintf(a.err, "sampling by %s …\n", j.Method)
	begin := time.Now()
	posterior, err := infer.Sample(ctx, model, j.method().of,
		infer.Options{Chains: j.Chains, Warmup: j.Warmup, Draws: j.Draws, Seed: j.Seed})
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	took := time.Since(begin)
	fmt.Fprintf(a.err, "%d chains of %d draws took %.1f s\n", posterior.Chains(), posterior.MinLen(), took.Seconds())
	return newResults(j, model, posterior, took)
}

// print shows the summary and the findings.
func (r *results) print(w io.Writer) error {
	table, err := r.model.Summary(r.posterior)
	if err != nil {
		return err
	}
	if err := table.Format(w); err != nil {
		return err
	}
	report, err := diag.Diagnose(r.posterior, diag.DiagnoseOptions{})
	if err != nil {
		return err
	}
	if r.loo != nil {
		report.Join(r.loo.Diagnose())
	}
	fmt.Fprintln(w)
	fmt.Fprint(w, inShell(report.String()))
	for _, note := range r.notes {
		fmt.Fprintln(w, note)
	}
	return nil
}

// kept are the draws without the numbers that others are made of: reported sites first.
func kept(model *regression.Model, posterior *draws.Draws) (*draws.Draws, error) {
	names := model.Reported(posterior)
	shown := map[string]bool{}
	for _, name := range names {
		shown[name] = true
	}
	for _, s := range posterior.Sites() {
		made := strings.HasPrefix(s.Name, "z_") && !strings.HasPrefix(s.Name, "z_s(")
		if !shown[s.Name] && !made {
			names = append(names, s.Name)
		}
	}
	return posterior.Select(names...)
}
