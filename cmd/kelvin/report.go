package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	page "github.com/kelvin-ppl/kelvin/internal/report"
	"github.com/kelvin-ppl/kelvin/store"
)

const reportUsage = `usage: kelvin report FILE... [-o out.html] [-vars a,b] [-pair a,b[0]] [-title text] [-compare FILE]

Writes a page with warnings, summary, and plots of draws; with PSIS-LOO if the file has log likelihoods, and a
comparison with the models of other files; with predictive checks if it has predictions and observed data. FILE is
what Kelvin, CmdStan or ArviZ have stored: CSV files of one run, a JSON file, or a Zarr folder. The page is one file and
needs no network.
`

// errReportUsage is wrapped by the error of a call that is wrong.
var errReportUsage = errors.New("see kelvin report -help")

// report runs `kelvin report`. Asked for help, it shows it on stderr and returns [flag.ErrHelp].
func report(args []string, stdout, stderr io.Writer) error {
	var out string
	var others []string
	var o page.Options
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&out, "o", "report.html", "write the page to `FILE`; - is standard output")
	flags.StringVar(&o.Title, "title", "", "head the page with `TEXT` (default: the model, or the first file)")
	flags.IntVar(&o.Details, "details", 0, "draw the worst `N` elements when the page opens (default 40)")
	flags.Func("vars", "show only the sites of this comma-separated `LIST`", into(&o.Sites))
	flags.Func("compare", "compare with the model of this `FILE`, by PSIS-LOO; may be given several times",
		func(file string) error { others = append(others, file); return nil })
	flags.Func("pair",
		"show the elements of this comma-separated `LIST` in the pair plot, such as mu,theta[0] (default: chosen)",
		into(&o.Pair))
	files, err := mixed(flags, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stderr, reportUsage)
		flags.SetOutput(stderr)
		flags.PrintDefaults()
		return err
	case err != nil:
		return fmt.Errorf("report: %w; %w", err, errReportUsage)
	case len(files) == 0:
		return fmt.Errorf("report: no file is given; %w", errReportUsage)
	}
	inf, err := store.Open(files...)
	if errors.Is(err, store.ErrRange) && len(files) > 1 {
		err = fmt.Errorf("%w; -compare FILE compares with the model of another file", err)
	}
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if inf.Posterior == nil {
		return fmt.Errorf("report: %s: there is no posterior", files[0])
	}
	describe(&o, inf, files)
	if o.LOO, err = crossValidation(inf); err != nil {
		o.Notes = append(o.Notes, fmt.Sprintf("Pareto k was not checked: %v", err))
	}
	if o.Comparison, err = comparison(o.Title, o.LOO, others); err != nil {
		return err
	}
	var unchecked []string
	o.Predictive, unchecked = predictive(inf)
	o.Notes = append(o.Notes, unchecked...)
	if out == "-" {
		return page.Report(stdout, inf.Posterior, o)
	}
	for _, file := range files {
		if sameFile(file, out) {
			return fmt.Errorf("report: %s is one of the files to read; choose another one with -o", out)
		}
	}
	if err := replace(out, func(w io.Writer) error { return page.Report(w, inf.Posterior, o) }); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "wrote %s\n", out)
	return nil
}

// describe takes from the attributes of a run what the page says of it.
func describe(o *page.Options, inf *store.Inference, files []string) {
	o.Sources, o.Notes = files, inf.Notes
	model, _ := inf.Attrs["model_name"].(string)
	for _, f := range [][2]string{{"model", "model_name"}, {"seed", "seed"}, {"thinning", "thin"}} {
		if v, ok := inf.Attrs[f[1]]; ok {
			o.Facts = append(o.Facts, [2]string{f[0], fmt.Sprint(v)})
		}
	}
	if w := inf.Warmup; w != nil {
		o.Facts = append(o.Facts, [2]string{"stored warm-up draws in a chain", fmt.Sprint(w.MaxLen())})
	}
	if v, ok := inf.Attrs["max_treedepth"].(float64); ok && v >= 1 {
		o.MaxTreeDepth = int(v)
	}
	if o.Title == "" {
		if o.Title = model; model == "" {
			o.Title = filepath.Base(files[0])
		}
	}
}

// mixed parses flags that stand before, between or after other arguments, which it returns.
func mixed(flags *flag.FlagSet, args []string) (others []string, err error) {
	for {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		rest := flags.Args()
		if len(rest) == 0 {
			return others, nil
		}
		if stop := len(args) - len(rest); stop > 0 && args[stop-1] == "--" {
			return append(others, rest...), nil
		}
		others, args = append(others, rest[0]), rest[1:]
	}
}

// into appends the parts of a comma-separated list; commas in brackets, as in theta[0,1], belong to a name.
func into(list *[]string) func(string) error {
	return func(text string) error {
		depth, from := 0, 0
		for i, r := range text + "," {
			switch {
			case r == '[':
				depth++
			case r == ']':
				depth--
			case r == ',' && (depth <= 0 || i == len(text)):
				if name := strings.TrimSpace(text[from:i]); name != "" {
					*list = append(*list, name)
				}
				from = i + 1
			}
		}
		return nil
	}
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// replace writes a file beside the old one and puts it in its place when it is whole. What is no regular file, such as
// a pipe, is written to as it is.
func replace(path string, write func(io.Writer) error) error {
	done, err := atomicfile.Stream(path, write)
	if !done && err == nil {
		err = atomicfile.Replace(path, write)
	}
	if err != nil {
		err = fmt.Errorf("report: write %s: %w", path, err)
	}
	return err
}
