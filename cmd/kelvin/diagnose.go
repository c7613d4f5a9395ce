package main

import (
	"flag"
	"fmt"
	"io"
	"slices"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/diag/loo"
	"github.com/kelvin-ppl/kelvin/store"
)

const diagnoseUsage = `usage: kelvin diagnose FILE... [-vars a,b] [-depth 10] [-json]

Says in words whether the draws can be trusted: divergences, tree depth, E-BFMI, R-hat, effective sample sizes, and
Pareto k if the file has log likelihoods. It exits with 0 if there is nothing serious, 1 if there is, or if the
draws cannot be read, and 2 if it was called wrongly.
`

// diagnoseJSON is what -json prints.
type diagnoseJSON struct {
	Chains   int           `json:"chains"`
	Draws    int           `json:"draws"`
	OK       bool          `json:"ok"`
	Checked  []diag.Code   `json:"checked"`
	Findings []findingJSON `json:"findings"`
	Notes    []string      `json:"notes"`
}

type findingJSON struct {
	Code        diag.Code `json:"code"`
	Severity    string    `json:"severity"`
	Site        string    `json:"site,omitempty"`
	Chain       int       `json:"chain"`
	Observation int       `json:"observation"`
	Figure      *float64  `json:"figure"`
	Threshold   *float64  `json:"threshold"`
	Message     string    `json:"message"`
	Advice      string    `json:"advice,omitempty"`
}

// diagnose runs `kelvin diagnose`. Draws with a serious warning are an errSerious, after it has been printed.
func diagnose(args []string, stdout, stderr io.Writer) error {
	var o diag.DiagnoseOptions
	var asJSON bool
	flags := flag.NewFlagSet("diagnose", flag.ContinueOnError)
	flags.Func("vars", "look only at the sites of this comma-separated `LIST`", into(&o.Sites))
	flags.IntVar(&o.MaxTreeDepth, "depth", 0,
		"take `N` for the tree depth at which the sampler stopped (default: as the file says, or 10)")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object")
	inf, err := open(flags, diagnoseUsage, args, stderr)
	if err != nil {
		return err
	}
	if o.MaxTreeDepth < 0 {
		return fmt.Errorf("diagnose: -depth is %d, want at least 1%w", o.MaxTreeDepth, silent{errUsage})
	}
	if depth, ok := inf.Attrs["max_treedepth"].(float64); ok && o.MaxTreeDepth == 0 && depth >= 1 {
		o.MaxTreeDepth = int(depth)
	}
	r, err := diag.Diagnose(inf.Posterior, o)
	if err != nil {
		return err
	}
	switch result, err := crossValidation(inf); {
	case err != nil:
		fmt.Fprintf(stderr, "note: Pareto k was not checked: %v\n", err)
	case result != nil:
		r.Join(result.Diagnose())
	}
	if asJSON {
		err = printJSON(stdout, reportJSON(r, inf))
	} else {
		err = r.Format(stdout)
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(r.Findings, func(f diag.Finding) bool { return f.Severity == diag.Serious }) {
		return errSerious
	}
	return nil
}

func reportJSON(r *diag.Report, inf *store.Inference) diagnoseJSON {
	out := diagnoseJSON{Chains: r.Chains, Draws: r.Draws, OK: r.OK(), Checked: r.Checked, Findings: []findingJSON{},
		Notes: append([]string{}, inf.Notes...)}
	for _, f := range r.Findings {
		out.Findings = append(out.Findings, findingJSON{f.Code, f.Severity.String(), f.Site, f.Chain, f.Observation,
			finite(f.Figure), finite(f.Threshold), f.Message, f.Advice})
	}
	return out
}

// crossValidation is the PSIS-LOO of the stored log likelihoods, nil if none are stored.
func crossValidation(inf *store.Inference) (*loo.Result, error) {
	d := inf.LogLikelihood
	if d == nil || d.Dim() == 0 {
		return nil, nil
	}
	if d.MinLen() != d.MaxLen() {
		d, _ = d.Slice(0, d.MinLen())
	}
	loglik := d.Rows()
	efficiency, err := loo.RelativeEfficiency(loglik, d.Chains())
	if err != nil {
		return nil, err
	}
	return loo.LOO(loglik, efficiency)
}
