package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"

	"github.com/kelvin-ppl/kelvin/diag"
)

const summaryUsage = `usage: kelvin summary FILE... [-vars a,b] [-hdi 0.94] [-json]

Prints one row for each element: mean, standard deviation, highest-density interval, Monte-Carlo errors, effective
sample sizes, R-hat.
`

// summaryJSON is what -json prints. Figures that are not defined are null.
type summaryJSON struct {
	Chains  int       `json:"chains"`
	Draws   int       `json:"draws"`
	HDIProb float64   `json:"hdi_prob"`
	Rows    []rowJSON `json:"rows"`
	Notes   []string  `json:"notes"`
}

type rowJSON struct {
	Name     string   `json:"name"`
	Mean     *float64 `json:"mean"`
	SD       *float64 `json:"sd"`
	HDILow   *float64 `json:"hdi_low"`
	HDIHigh  *float64 `json:"hdi_high"`
	MCSEMean *float64 `json:"mcse_mean"`
	MCSESD   *float64 `json:"mcse_sd"`
	ESSBulk  *float64 `json:"ess_bulk"`
	ESSTail  *float64 `json:"ess_tail"`
	RHat     *float64 `json:"r_hat"`
}

// summary runs `kelvin summary`.
func summary(args []string, stdout, stderr io.Writer) error {
	var o diag.SummaryOptions
	var asJSON bool
	flags := flag.NewFlagSet("summary", flag.ContinueOnError)
	flags.Float64Var(&o.HDIProb, "hdi", 0.94, "show the highest-density interval of the probability `P`")
	flags.Func("vars", "show only the sites of this comma-separated `LIST`", into(&o.Sites))
	flags.BoolVar(&asJSON, "json", false, "print one JSON object")
	inf, err := open(flags, summaryUsage, args, stderr)
	if err != nil {
		return err
	}
	if !(o.HDIProb > 0 && o.HDIProb <= 1) {
		return fmt.Errorf("summary: -hdi is %v, want a probability above 0 and at most 1%w", o.HDIProb, silent{errUsage})
	}
	table, err := diag.Summary(inf.Posterior, o)
	if err != nil {
		return err
	}
	if !asJSON {
		return table.Format(stdout)
	}
	out := summaryJSON{Chains: table.Chains, Draws: table.Draws, HDIProb: table.HDIProb, Rows: []rowJSON{},
		Notes: append([]string{}, inf.Notes...)}
	for _, r := range table.Rows {
		out.Rows = append(out.Rows, rowJSON{r.Name, finite(r.Mean), finite(r.SD), finite(r.HDILow), finite(r.HDIHigh),
			finite(r.MCSEMean), finite(r.MCSESD), finite(r.ESSBulk), finite(r.ESSTail), finite(r.RHat)})
	}
	return printJSON(stdout, out)
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
