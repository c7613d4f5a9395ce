package main

import (
	"fmt"
	"io"
	"math"

	"github.com/kelvin-ppl/kelvin/examples/internal/classify"
)

// curve is a way to predict, at all temperatures.
type curve struct {
	sampler, line string
	title, atZero string // what it is called, and what it is at temperature 0
}

func curves(s settings) []curve {
	return []curve{
		{"cyclical", oneChain, "cyclical SGHMC, one chain", "snapshots of one cyclical SGD"},
		{"cyclical", allChains, fmt.Sprintf("cyclical SGHMC, %d chains", s.Members),
			fmt.Sprintf("snapshots of %d cyclical SGD", s.Members)},
		{"constant", oneChain, "constant steps, one chain", "iterates of one SGD"},
		{"constant", lastStates, fmt.Sprintf("parallel SGHMC, last of %d", s.Members),
			fmt.Sprintf("deep ensemble of %d", s.Members)},
	}
}

// find is the result of a sampler at a temperature.
func find(results []*result, sampler string, temperature float64) *result {
	for _, r := range results {
		if r.Sampler == sampler && r.Temperature == temperature {
			return r
		}
	}
	return nil
}

// metric is a column of the table and a picture.
type metric struct {
	name, title, axis string
	part              int // of Metrics.Parts
	percent, log      bool
}

var columns = []metric{
	{name: "nll", title: "NLL", axis: "negative log likelihood", part: 0, log: true},
	{name: "accuracy", title: "accuracy %", axis: "accuracy, %", part: 1, percent: true},
	{name: "brier", title: "Brier", axis: "Brier score", part: 2, log: true},
	{name: "ece", title: "ECE", axis: "expected calibration error", part: 3, log: true},
	{name: "gibbs_nll", title: "Gibbs NLL", axis: "mean negative log likelihood of single networks", part: 4, log: true},
	{name: "epistemic", title: "epistemic", axis: "epistemic uncertainty, nats", part: 5, log: true},
	{name: "aleatoric", title: "aleatoric", axis: "aleatoric uncertainty, nats", part: 6, log: true},
}

// of is the mean of a metric and its standard error.
func (m metric) of(e estimate) (mean, se float64) {
	mean, se = *e.Mean.Parts()[m.part], *e.SE.Parts()[m.part]
	if m.percent {
		mean, se = 100*mean, 100*se
	}
	return mean, se
}

func printTable(w io.Writer, s settings, t *classify.Task, results []*result) error {
	p := &printer{w: w}
	p.f("%d images of digits to train with, %d to test with; a network of %d parameters.\n", t.N, len(t.Labels),
		t.Net.NumParams())
	p.f("Means ± standard errors over chains, or over ensembles (of all chains: by the jackknife). The test images are " +
		"the same for all.\n")
	p.f("T = 1 is the Bayes posterior, 0 optimisation.\n")
	row := func(first string, e estimate) {
		p.f("%-40s %5d", first, e.Networks)
		for _, m := range columns {
			mean, se := m.of(e)
			if m.percent {
				p.f("  %6.2f ± %4.2f  ", mean, se)
			} else {
				p.f("  %7.4f ± %6.4f", mean, se)
			}
		}
		p.f("\n")
	}
	for _, c := range curves(s) {
		p.f("\n%-40s %5s", c.title, "nets")
		for _, m := range columns {
			p.f("  %16s", m.title)
		}
		p.f("\n")
		row("T = 0: "+c.atZero, find(results, c.sampler, 0).Lines[c.line])
		for _, temperature := range s.Temperatures {
			row(fmt.Sprintf("T = %g", temperature), find(results, c.sampler, temperature).Lines[c.line])
		}
	}
	p.f("\nFor comparison\n")
	row("one network by SGD (MAP)", find(results, "constant", 0).Lines[oneNetwork])

	p.f("\nDid it simulate its target? Measured temperatures over the temperature set; " +
		"99 %% of kinetic readings should be inside.\n")
	p.f("%-16s %6s  %8s %7s %9s  %-17s  %s\n", "", "T", "readings", "inside", "kinetic", "configurational", "findings")
	for _, sampler := range s.samplers() {
		for _, temperature := range s.Temperatures {
			m := find(results, sampler.name, temperature).Simulation
			p.f("%-16s %6g  %8d %6.1f%% %9.4f  %.4f ± %.4f", sampler.name, temperature, m.Readings, 100*m.Inside, m.Kinetic,
				m.Configurational, m.SE)
			for i, finding := range m.Findings {
				if i == 2 && len(m.Findings) > 3 {
					p.f("\n%70sand %d more", "", len(m.Findings)-i)
					break
				}
				if i > 0 {
					p.f("\n%68s", "")
				}
				p.f("  %s", finding)
			}
			if len(m.Findings) == 0 {
				p.f("  none")
			}
			p.f("\n")
		}
	}
	diverged := 0
	for _, r := range results {
		diverged += r.Diverged
	}
	p.f("\n%d updates of chains were held because something was not finite.\n\n", diverged)
	for _, c := range curves(s) {
		p.f("%s\n", coldEffect(c, s, results))
	}
	return p.err
}

// coldEffect says at which temperature above 0 the NLL is lowest, and what T = 1 loses.
func coldEffect(c curve, s settings, results []*result) string {
	nll := columns[0]
	best, lowest, lowestSE := 0.0, math.Inf(1), 0.0
	for _, temperature := range s.Temperatures {
		if mean, se := nll.of(find(results, c.sampler, temperature).Lines[c.line]); mean < lowest {
			best, lowest, lowestSE = temperature, mean, se
		}
	}
	if best == 1 {
		return fmt.Sprintf("%s: lowest NLL at T = 1, %.4f ± %.4f", c.title, lowest, lowestSE)
	}
	bayes, se := nll.of(find(results, c.sampler, 1).Lines[c.line])
	return fmt.Sprintf("%s: lowest NLL at T = %g, %.4f ± %.4f; at T = 1 it is higher by %.4f ± %.4f", c.title, best,
		lowest, lowestSE, bayes-lowest,
		math.Hypot(se, lowestSE))
}

// printer keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) f(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}
