package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strings"

	"gonum.org/v1/gonum/stat"
)

// outputJSON is the JSON output.
type outputJSON struct {
	Rows    []rowJSON   `json:"rows"`
	Shared  sharedJSON  `json:"parallel_shared_batches"`
	Machine machineJSON `json:"machine"`
}

// rowJSON is a row: means over the runs, with their standard deviations. What was not run is null.
type rowJSON struct {
	Method        string   `json:"method"`
	Batch         *int     `json:"batch"` // null: all data
	KSDPaper      float64  `json:"ksd_paper"`
	KSDPaperSD    float64  `json:"ksd_paper_sd"`
	KSD           *float64 `json:"ksd"`
	KSDSD         *float64 `json:"ksd_sd"`
	KSDStandard   *float64 `json:"ksd_standard"`
	KSDStandardSD *float64 `json:"ksd_standard_sd"`
	// Z is the difference of ksd and ksd_paper in combined standard errors, Within4 says that it is below 4, and
	// WithinSpread that the difference is within the published spread.
	Z            *float64 `json:"z"`
	Within4      *bool    `json:"within_4_se"`
	WithinSpread *bool    `json:"within_spread"`
	Seconds      *float64 `json:"seconds"` // of one run; in the parallel row of one chain alone
	SecondsSD    *float64 `json:"seconds_sd"`
	SecondsWhole *float64 `json:"seconds_all_chains"` // of the parallel row
	SecondsPaper float64  `json:"seconds_paper"`
	SpreadPaper  float64  `json:"seconds_paper_sd"`
}

// sharedJSON is the parallel row with the same batches for all chains of a run.
type sharedJSON struct {
	KSD           float64 `json:"ksd"`
	KSDSD         float64 `json:"ksd_sd"`
	KSDStandard   float64 `json:"ksd_standard"`
	KSDStandardSD float64 `json:"ksd_standard_sd"`
}

type machineJSON struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	Go    string `json:"go"`
}

// thisMachine says what the times were taken on.
func thisMachine() machineJSON {
	m := machineJSON{CPU: runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version()}
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return m // not Linux
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	return m
}

func (r tableRow) title() string {
	if r.batch > 0 {
		return fmt.Sprintf("%s, batches of %d", r.method, r.batch)
	}
	return r.method
}

// rounding is the standard deviation of the error of a number that was rounded to thousandths.
var rounding = 0.001 / math.Sqrt(12)

// compare compares the runs of a row with the published ones. The parallel row's runs are ensembles from the same
// chains: what they spread is the error of one, not of their mean.
func compare(r tableRow, own runs, scores []score) rowJSON {
	out := rowJSON{Method: r.method, KSDPaper: r.ksd, KSDPaperSD: r.sd, SecondsPaper: r.seconds, SpreadPaper: r.spread}
	if r.batch > 0 {
		out.Batch = &r.batch
	}
	if len(scores) == 0 {
		return out
	}
	var ours, standard []float64
	for _, s := range scores {
		ours, standard = append(ours, s.table), append(standard, s.standard)
	}
	out.KSD, out.KSDSD = meanSD(ours)
	out.KSDStandard, out.KSDStandardSD = meanSD(standard)
	n, published := float64(len(scores)), 10.0
	if r.kind == parallel {
		n, published = 1, 1
	}
	difference := math.Abs(*out.KSD - r.ksd)
	z := difference / math.Hypot(rounding, math.Hypot(*out.KSDSD/math.Sqrt(n), r.sd/math.Sqrt(published)))
	within4, withinSpread := z < 4, difference <= r.sd
	out.Z, out.Within4, out.WithinSpread = &z, &within4, &withinSpread
	if len(own.seconds) > 0 {
		out.Seconds, out.SecondsSD = meanSD(own.seconds)
	}
	if own.whole > 0 {
		out.SecondsWhole = &own.whole
	}
	return out
}

func meanSD(x []float64) (mean, sd *float64) {
	m, s := stat.MeanStdDev(x, nil)
	return &m, &s
}

const line = "%-30s  %-15s  %-15s  %5s  %-6s  %-6s  %-15s  %-14s  %-14s\n"

func printHead(w io.Writer) {
	fmt.Fprintf(w, line, "", "published", "Kelvin", "z", "spread", "4 s.e.", "standard KSD", "published s", "Kelvin s")
}

func printRow(w io.Writer, t tableRow, r rowJSON) {
	paper, paperSeconds := plusMinus(&r.KSDPaper, &r.KSDPaperSD, 3), plusMinus(&r.SecondsPaper, &r.SpreadPaper, 2)
	if r.KSD == nil {
		fmt.Fprintf(w, line, t.title(), paper, "–", "–", "–", "–", "–", paperSeconds, "–")
		return
	}
	fmt.Fprintf(w, line, t.title(), paper, plusMinus(r.KSD, r.KSDSD, 4), fmt.Sprintf("%.1f", *r.Z), yesNo(*r.WithinSpread),
		yesNo(*r.Within4), plusMinus(r.KSDStandard, r.KSDStandardSD, 3), paperSeconds, plusMinus(r.Seconds, r.SecondsSD, 2))
}

// printFoot prints what follows the rows.
func printFoot(w io.Writer, out outputJSON) error {
	s := out.Shared
	fmt.Fprintf(w, line, "  the same batches for all", "", plusMinus(&s.KSD, &s.KSDSD, 4), "", "", "",
		plusMinus(&s.KSDStandard, &s.KSDStandardSD, 3), "", "")
	fmt.Fprintln(w, "\nMeans ± standard deviations of the runs. z: the difference from the published mean in combined "+
		"standard errors; spread: is it within the published one?")
	fmt.Fprint(w, "Seconds are of one run, in the parallel row of one chain alone")
	for _, r := range out.Rows {
		if r.SecondsWhole != nil {
			fmt.Fprintf(w, " (all chains together: %.1f s)", *r.SecondsWhole)
		}
	}
	_, err := fmt.Fprintf(w, ".\nMachine: %s, %d cores, %s.\n", out.Machine.CPU, out.Machine.Cores, out.Machine.Go)
	return err
}

func plusMinus(mean, sd *float64, digits int) string {
	return fmt.Sprintf("%.*f ± %.*f", digits, *mean, digits, *sd)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
