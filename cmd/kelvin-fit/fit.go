package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kelvin-ppl/kelvin/infer"
)

// job is one fit.
type job struct {
	saved
	out   string
	force bool
}

// jobFlags are the flags of fit.
func jobFlags(j *job) *flag.FlagSet {
	flags := flag.NewFlagSet("fit", flag.ContinueOnError)
	flags.StringVar(&j.Family, "family", "gaussian", "the law of the outcome is `FAMILY`, as bernoulli or negbinomial")
	flags.StringVar(&j.Link, "link", "", "the link is `LINK`, as probit (default: the family's own)")
	flags.StringVar(&j.Method, "method", "nuts", "sample by `METHOD`: "+methodNames())
	flags.Float64Var(&j.TargetAccept, "target-accept", 0, "nuts makes steps that are accepted with probability `P` "+
		"(default 0.95)")
	flags.IntVar(&j.Chains, "chains", 0, "run `N` chains (default: the method's own, mostly 4)")
	flags.IntVar(&j.Warmup, "warmup", 0, "make `N` updates of each chain before its draws (default: the method's own)")
	flags.IntVar(&j.Draws, "draws", 0, "keep `N` draws of each chain (default: the method's own)")
	flags.Uint64Var(&j.Seed, "seed", 0, "take the random numbers of `SEED`")
	flags.StringVar(&j.out, "out", "fit", "make the folder `DIR`")
	flags.BoolVar(&j.force, "force", false, "replace the folder, if it is one of an earlier fit")
	flags.BoolVar(&j.DropMissing, "drop-missing", false, "leave out rows with missing values in columns of the formula")
	character := func(r *rune) func(string) error {
		return func(text string) error { *r, _ = utf8.DecodeRuneInString(text); return nil }
	}
	flags.Func("comma", "the `CHARACTER` between values (default ,)", character(&j.Reader.Comma))
	flags.Func("decimal", "the `CHARACTER` before decimals (default .)", character(&j.Reader.Decimal))
	for name, list := range map[string]*[]string{"factor": &j.Reader.Factors, "missing": &j.Reader.Missing} {
		flags.Func(name, map[string]string{"factor": "the `COLUMN` has codes, not numbers (several)",
			"missing": "the `WORD` means a missing value, in the place of NA, NaN and nan (several)"}[name],
			func(text string) error { *list = append(*list, text); return nil })
	}
	j.Params, j.Priors, j.Reader.Levels = map[string]string{}, map[string]string{}, map[string][]string{}
	pair := func(name, separator, what, example string, set func(key, value string) error) {
		flags.Func(name, "the "+what+", as '"+example+"' (several)", func(text string) error {
			at := strings.LastIndex(text, separator) // a name may have an = in it, as that of a basis
			if at < 1 {
				return fmt.Errorf("write it as '%s'", example)
			}
			return set(strings.TrimSpace(text[:at]), strings.TrimSpace(text[at+1:]))
		})
	}
	pair("param", "~", "formula of another parameter", "sigma ~ x", func(name, text string) error {
		j.Params[name] = "~ " + text
		return nil
	})
	pair("prior", "=", "prior in the place of the default", "b[age]=normal(0, 1)", func(name, text string) (err error) {
		j.Priors[name] = text
		_, _, err = parseLaw(text)
		return err
	})
	pair("levels", "=", "levels of a factor in their order", "rating=low,mid,high", func(name, text string) error {
		j.Reader.Levels[name] = strings.Split(text, ",")
		return nil
	})
	return flags
}

// given are the priors that the user gave.
func (s *saved) given() (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(s.Priors)) {
		lines = append(lines, "given: "+name+" = "+s.Priors[name])
	}
	return lines
}

// check refuses what needs no data to be wrong.
func (j *job) check() error {
	switch {
	case methods[j.Method] == nil:
		return wrong("-method %q: the methods are %s", j.Method, methodNames())
	case j.Chains < 0 || j.Warmup < 0 || j.Draws < 0:
		return wrong("-chains, -warmup and -draws are at least 1")
	case j.TargetAccept != 0 && (j.Method != "nuts" || !(j.TargetAccept > 0 && j.TargetAccept < 1)):
		return wrong("-target-accept %g: it is of the method nuts, and between 0 and 1", j.TargetAccept)
	}
	j.out = filepath.Clean(j.out)
	_, err := os.Lstat(j.out)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !j.force:
		return fmt.Errorf("%s is there already: choose another folder with --out, or replace it with --force", j.out)
	}
	if _, err = os.Stat(filepath.Join(j.out, modelFile)); err != nil { // nothing else is removed
		err = fmt.Errorf("--force: %s is not the folder of a fit: %w", j.out, err)
	}
	return err
}

// fit runs `kelvin fit`.
func (a *app) fit(ctx context.Context, args []string) error {
	begin := time.Now()
	j := &job{saved: saved{Version: version}}
	others, err := a.parse(jobFlags(j), args, 2, 2)
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
	model, err := j.saved.fit(raw, j.Source)
	if err != nil {
		return err
	}
	fmt.Fprint(a.out, model)
	for _, line := range j.given() {
		fmt.Fprintln(a.out, line)
	}
	fmt.Fprintf(a.err, "sampling by %s …\n", j.Method)
	posterior, err := infer.Sample(ctx, model, j.method(), j.options())
	if err != nil {
		return err
	}
	fmt.Fprintf(a.err, "%d chains of %d draws, after %.1f s\n", posterior.Chains(), posterior.MinLen(),
		time.Since(begin).Seconds())
	r, err := newResults(j, model, posterior)
	if err != nil {
		return err
	}
	err = r.write(ctx, raw) // before a reader of the summary ends the program, as head does
	if err == nil {
		fmt.Fprintf(a.err, "wrote %s, with %s, after %.1f s\n", j.out, pageFile, time.Since(begin).Seconds())
	}
	return errors.Join(err, r.print(a.out))
}
