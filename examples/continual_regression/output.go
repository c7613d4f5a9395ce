package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

// summaryJSON is the JSON output. Losses are mean squared errors of the mean of the function.
type summaryJSON struct {
	Settings string             `json:"settings"`
	Seeds    int                `json:"seeds"`
	Single   [episodes]estimate `json:"single"` // loss on an episode of a model trained on it alone
	Methods  []methodJSON       `json:"methods"`
}

type methodJSON struct {
	Name  string                       `json:"name"`
	Title string                       `json:"title"`
	Loss  [episodes][episodes]estimate `json:"loss"` // [after][of]
	// over the models of single episodes, mean over the episodes seen
	Excess  [episodes]estimate `json:"excess"`
	NLPD    [episodes]estimate `json:"nlpd"`    // negative log predictive density, mean over the episodes seen
	Seconds estimate           `json:"seconds"` // of training, a seed
}

func summarise(o options, all []method, outcomes []outcome) summaryJSON {
	s := summaryJSON{Settings: o.settings, Seeds: len(outcomes)}
	each := func(f func(r outcome) float64) estimate {
		values := make([]float64, len(outcomes))
		for i, r := range outcomes {
			values[i] = f(r)
		}
		return over(values)
	}
	for j := range s.Single {
		s.Single[j] = each(func(r outcome) float64 { return r.single[j] })
	}
	for i, m := range all {
		line := methodJSON{Name: m.name, Title: m.title, Seconds: each(
			func(r outcome) float64 { return r.histories[i].seconds })}
		for n := range episodes {
			for j := range episodes {
				line.Loss[n][j] = each(func(r outcome) float64 { return r.histories[i].loss[n][j] })
			}
			line.Excess[n] = each(func(r outcome) float64 { return excess(r.histories[i].loss, r.single)[n] })
			line.NLPD[n] = each(func(r outcome) float64 {
				return excess(r.histories[i].nlpd, [episodes]float64{})[n]
			})
		}
		s.Methods = append(s.Methods, line)
	}
	return s
}

// printSummary prints the tables.
func printSummary(w io.Writer, s summaryJSON) {
	row := func(first string, cells ...string) {
		line := fmt.Sprintf("%-20s", first)
		for _, c := range cells {
			line += fmt.Sprintf("  %-14s", c)
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
	header := func(first, column string) {
		var cells []string
		for j := range episodes {
			cells = append(cells, fmt.Sprintf("%s %d", column, j+1))
		}
		row(first, cells...)
	}
	cells := func(estimates []estimate) (c []string) {
		for _, e := range estimates {
			c = append(c, fmt.Sprintf("%.3f (%.3f)", e.Mean, e.SE))
		}
		return c
	}
	fmt.Fprintf(w, "Mean squared error on each episode, mean (standard error) over %d seeds; %s settings.\n", s.Seeds,
		s.Settings)
	for _, m := range s.Methods {
		fmt.Fprintln(w)
		header(m.Title, "on episode")
		for n := range episodes {
			row(fmt.Sprintf("  after episode %d", n+1), cells(m.Loss[n][:n+1])...)
		}
	}
	fmt.Fprintln(w)
	row("that episode alone", cells(s.Single[:])...)
	fmt.Fprint(w, "\nLoss minus that of a model of the episode alone, mean over the episodes seen\n")
	header("", "after")
	for _, m := range s.Methods {
		row(m.Title, cells(m.Excess[:])...)
	}
	fmt.Fprintf(w, "\nNegative log predictive density of a new observation, mean over the episodes seen; "+
		"with the true function it is %.3f\n", 0.5*math.Log(2*math.Pi*noise*noise)+0.5)
	header("", "after")
	for _, m := range s.Methods {
		row(m.Title, append(cells(m.NLPD[:]), fmt.Sprintf("%.0f s a seed", m.Seconds.Mean))...)
	}
}

// writeFiles writes summary.json and the pictures.
func writeFiles(dir string, s summaryJSON, all []method, outcomes []outcome) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(dir, "summary.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	if err := plotFits(filepath.Join(dir, "fits.png"), all, outcomes[0]); err != nil {
		return err
	}
	return plotExcess(filepath.Join(dir, "excess.png"), s)
}
