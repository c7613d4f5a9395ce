package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	"gonum.org/v1/gonum/stat"
)

// report is the table of a test: means over seeds and their standard errors.
type report struct {
	Test     string   `json:"test"`
	Question string   `json:"question"`
	Tuning   string   `json:"tuning"` // what of the settings was tuned
	Columns  []string `json:"columns"`
	Rows     []line   `json:"rows"`
	Findings []string `json:"findings"` // which temperature is best
}

type line struct {
	Name  string    `json:"name"`
	Seeds int       `json:"seeds"`
	Mean  []float64 `json:"mean"`
	SE    []float64 `json:"se,omitempty"` // none with one seed
}

// report gathers the values of a test. That of -predictive has a picture beside the table, of the first seed.
func (t test) report(o options, results map[string]values) (report, error) {
	r := report{Test: t.name, Question: t.question, Tuning: t.tuning(o)}
	for _, c := range t.columns {
		r.Columns = append(r.Columns, c.title)
	}
	losses := map[string]map[float64][]float64{} // by group, temperature and seed
	var groups []string
	for _, row := range t.rows(o) {
		l := line{Name: row.name, Seeds: o.seeds}
		var all []values
		for i := range o.seeds {
			name, _, err := key(row.trial(o, o.seed+uint64(i)))
			if err != nil {
				return r, err
			}
			all = append(all, results[name])
		}
		for _, c := range t.columns {
			mean, se := across(all, c.value)
			if c.percent {
				mean, se = 100*mean, 100*se
			}
			l.Mean = append(l.Mean, mean)
			if o.seeds > 1 {
				l.SE = append(l.SE, se)
			}
		}
		r.Rows = append(r.Rows, l)
		if t.loss != "" {
			if losses[row.group] == nil {
				losses[row.group] = map[float64][]float64{}
				groups = append(groups, row.group)
			}
			for _, v := range all {
				losses[row.group][row.temperature] = append(losses[row.group][row.temperature], v[t.loss])
			}
		}
	}
	for _, g := range groups {
		r.Findings = append(r.Findings, g+": "+best(losses[g]))
	}
	var drawn []histograms
	for _, row := range t.rows(o) {
		if h, ok := row.trial(o, o.seed).(histograms); ok {
			drawn = append(drawn, h)
		}
	}
	if len(drawn) > 0 {
		r.Findings = append(r.Findings, fmt.Sprintf("predictive.png has the classes of %d networks from each prior, and of "+
			"the average", shown))
		return r, drawHistograms(o.dir, drawn)
	}
	return r, nil
}

// across is the mean of a value over seeds, and its standard error.
func across(all []values, name string) (mean, se float64) {
	var x []float64
	for _, v := range all {
		x = append(x, v[name])
	}
	mean, sd := stat.MeanStdDev(x, nil)
	return mean, stat.StdErr(sd, float64(len(x)))
}

// best says at which temperature the loss is least, and what T = 1 loses, in pairs of one seed.
func best(losses map[float64][]float64) string {
	at, least := math.NaN(), math.Inf(1)
	for temperature, x := range losses {
		if m := stat.Mean(x, nil); m < least || m == least && temperature < at {
			at, least = temperature, m
		}
	}
	if at == 1 {
		return fmt.Sprintf("least NLL at T = 1, %.4f", least)
	}
	var more []float64
	for i, x := range losses[1] {
		more = append(more, x-losses[at][i])
	}
	mean, sd := stat.MeanStdDev(more, nil)
	if len(more) == 1 {
		return fmt.Sprintf("least NLL at T = %g, %.4f; at T = 1 it is higher by %.4f", at, least, mean)
	}
	return fmt.Sprintf("least NLL at T = %g, %.4f; at T = 1 it is higher by %.4f ± %.4f", at, least, mean,
		stat.StdErr(sd, float64(len(more))))
}

// printReports writes the tables in Markdown.
func printReports(w io.Writer, reports []report) {
	for i, r := range reports {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "## %s\n\n%s Means ± standard errors over %d seeds. %s\n\n", r.Test, r.Question, r.Rows[0].Seeds,
			r.Tuning)
		fmt.Fprintf(w, "| | %s |\n|---|%s\n", strings.Join(r.Columns, " | "), strings.Repeat("---|", len(r.Columns)))
		for _, l := range r.Rows {
			fmt.Fprintf(w, "| %s |", l.Name)
			for j, m := range l.Mean {
				se := 0.0
				if len(l.SE) > 0 {
					se = l.SE[j]
				}
				fmt.Fprintf(w, " %s |", estimate(m, se))
			}
			fmt.Fprintln(w)
		}
		if len(r.Findings) > 0 {
			fmt.Fprintln(w)
		}
		for _, f := range r.Findings {
			fmt.Fprintf(w, "- %s\n", f)
		}
	}
}

// estimate writes a mean with its standard error to two digits; a standard error of 0 is none.
func estimate(mean, se float64) string {
	if se == 0 || math.IsNaN(se) || math.IsInf(se, 0) {
		return fmt.Sprintf("%.4g", mean)
	}
	digits := max(0, 1-int(math.Floor(math.Log10(se))))
	return fmt.Sprintf("%.*f ± %.*f", digits, mean, digits, se)
}
