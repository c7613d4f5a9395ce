package main

import (
	"fmt"
	"io"
	"path/filepath"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/kelvin-ppl/kelvin/examples/internal/classify"
)

// Names of methods.
const (
	mle         = "MLE"
	mapMode     = "MAP"
	ensemble    = "deep ensemble"
	laplaceEF   = "Laplace, Fisher"
	laplaceGGN  = "Laplace, GGN"
	variational = "VI"
	linear      = ", linearised"
)

// entry is what one cell found of a method at a temperature; 0 is optimisation.
type entry struct {
	Method      string               `json:"method"`
	Temperature float64              `json:"temperature"`
	Networks    int                  `json:"networks"` // in the average; 1 where it is linearised
	Scores      classify.Metrics     `json:"scores"`
	Simulation  *classify.Simulation `json:"simulation,omitempty"` // of samplers
	Held        int                  `json:"held"`                 // updates of all chains that were held
}

// row is a method at a temperature, over the seeds.
type row struct {
	Method      string   `json:"method"`
	Temperature float64  `json:"temperature"`
	Scores      estimate `json:"scores"`
	// Of the chains that the networks are of: the share of kinetic temperatures that are inside their intervals of 99 %,
	// and kinetic and configurational ones over T.
	Inside          *average `json:"inside,omitempty"`
	Kinetic         *average `json:"kinetic,omitempty"`
	Configurational *average `json:"configurational,omitempty"`
	Held            int      `json:"held"`
}

// average is the mean over the seeds, and its standard error.
type average struct {
	Mean float64 `json:"mean"`
	SE   float64 `json:"se"` // 0 of one seed
}

// Names of methods by their pictures, in the order of the table: those of optimisation are in all.
func methodNames() (optimised []string, pictures map[string][]string, order []string) {
	optimised = []string{mle, mapMode, ensemble}
	order = []string{"serial", "parallel", "normal"}
	pictures = map[string][]string{
		"normal": {variational, variational + linear, laplaceEF, laplaceEF + linear, laplaceGGN, laplaceGGN + linear}}
	for _, w := range walks {
		for _, way := range order[:2] {
			pictures[way] = append(pictures[way], w.name+", "+way)
		}
	}
	return optimised, pictures, order
}

// allMethods are the names in the order of the table.
func allMethods() []string {
	names, pictures, order := methodNames()
	for _, picture := range order {
		names = append(names, pictures[picture]...)
	}
	return names
}

// rowsOf are means over the seeds with their standard errors.
func rowsOf(s studySettings, all []entry) (rows []row) {
	for _, name := range allMethods() {
		for _, temperature := range append([]float64{0}, s.Temperatures...) {
			var these []entry
			for _, e := range all {
				if e.Method == name && e.Temperature == temperature {
					these = append(these, e)
				}
			}
			if len(these) > 0 {
				rows = append(rows, rowOf(these))
			}
		}
	}
	return rows
}

func rowOf(these []entry) row {
	scores := make([]classify.Metrics, len(these))
	for i, e := range these {
		scores[i] = e.Scores
	}
	r := row{Method: these[0].Method, Temperature: these[0].Temperature,
		Scores: estimateOf(these[0].Networks, scores)}
	var inside, kinetic, configurational []float64
	for _, e := range these {
		r.Held += e.Held
		if e.Simulation != nil && e.Simulation.Readings > 0 {
			inside = append(inside, e.Simulation.Inside)
			kinetic = append(kinetic, e.Simulation.Kinetic)
		}
		if e.Simulation != nil && e.Simulation.Chains > 0 {
			configurational = append(configurational, e.Simulation.Configurational)
		}
	}
	r.Inside, r.Kinetic, r.Configurational = meanOf(inside), meanOf(kinetic), meanOf(configurational)
	return r
}

// meanOf is nil for no numbers.
func meanOf(x []float64) *average {
	if len(x) == 0 {
		return nil
	}
	mean, sd := stat.MeanStdDev(x, nil)
	a := &average{Mean: mean}
	if len(x) > 1 {
		a.SE = stat.StdErr(sd, float64(len(x)))
	}
	return a
}

// print prints the table.
func (s *study) print(w io.Writer) error {
	p := &printer{w: w}
	p.f("%s: %d cases to train with, %d to test with; a network of %d parameters, prior N(0, %g).\n", s.Settings.Problem,
		s.Settings.Train, s.Settings.Tests, s.task.Net.NumParams(), s.Settings.Variance)
	if s.fewer != "" {
		p.f("%s\n", s.fewer)
	}
	p.f("Means ± standard errors over %d seeds. T = 1 is the Bayes posterior. Inside: kinetic temperatures in their "+
		"intervals of 99 %%;\nconf.: configurational temperature over T; both of the chains that the networks are of, and "+
		"shown in temperatures.png.\n\n", s.Settings.Seeds)
	p.f("%-36s %6s %5s", "", "T", "nets")
	for _, m := range columns[:4] {
		p.f("  %17s", m.title)
	}
	p.f("  %8s %6s\n", "inside %", "conf.")
	for _, r := range s.Rows {
		p.f("%-36s %6s %5d", r.Method, temperatureText(r.Temperature), r.Scores.Networks)
		for _, m := range columns[:4] {
			mean, se := m.of(r.Scores)
			digits := 4
			if m.percent {
				digits = 2
			}
			p.f("  %17s", fmt.Sprintf("%.*f ± %.*f", digits, mean, digits, se))
		}
		p.f("  %8s %6s", number("%.1f", 100, r.Inside), number("%.2f", 1, r.Configurational))
		if r.Held > 0 {
			p.f("  %d updates held in all chains", r.Held)
		}
		p.f("\n")
	}
	return p.err
}

func temperatureText(t float64) string {
	if t == 0 {
		return ""
	}
	return fmt.Sprintf("%g", t)
}

// number formats the average times the factor; a nil v gives "".
func number(format string, factor float64, v *average) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf(format, factor*v.Mean)
}

// plot draws NLL, accuracy and ECE over the temperature, of samplers in series and in parallel, and of normal
// distributions; and the temperatures that were measured.
func (s *study) plot() error {
	optimised, pictures, order := methodNames()
	for _, m := range []metric{columns[0], columns[1], columns[3]} {
		for _, picture := range order {
			var all []series
			for i, name := range pictures[picture] {
				style := draw.LineStyle{Color: colours[i], Width: vg.Points(1.8)}
				if one := s.series(m, name, style, shapes[i%len(shapes)]); len(one.mean) > 0 { // presets lack some
					all = append(all, one)
				}
			}
			for i, name := range optimised {
				style := draw.LineStyle{Color: black, Width: vg.Points(1.4), Dashes: [][]vg.Length{nil, dots, dashes}[i]}
				if one := s.series(m, name, style, nil); len(one.mean) > 0 {
					all = append(all, one)
				}
			}
			if len(all) == 0 {
				continue
			}
			path := filepath.Join(s.dir, m.name+"-"+picture+".png")
			if err := plotSeries(path, m.axis, s.Settings.Temperatures, all, m.log); err != nil {
				return err
			}
		}
	}
	return s.plotTemperatures()
}

// plotTemperatures says whether the samplers simulated their targets: kinetic and configurational temperatures over T,
// of all chains of a method.
func (s *study) plotTemperatures() error {
	var all []series
	for i, w := range walks {
		for _, kind := range []struct {
			title  string
			of     func(row) *average
			dashes []vg.Length
		}{{"kinetic", func(r row) *average { return r.Kinetic }, dashes},
			{"configurational", func(r row) *average { return r.Configurational }, nil}} {
			one := series{title: w.name + ": " + kind.title, shape: shapes[i%len(shapes)],
				style: draw.LineStyle{Color: colours[i], Width: vg.Points(1.8), Dashes: kind.dashes}}
			for _, r := range s.Rows {
				if a := kind.of(r); r.Method == w.name+", parallel" && a != nil {
					one.mean, one.se = append(one.mean, a.Mean), append(one.se, a.SE)
				}
			}
			if len(one.mean) == len(s.Settings.Temperatures) { // SGLD has no momenta; not all studies read both
				all = append(all, one)
			}
		}
	}
	all = append(all, series{title: "exact", mean: []float64{1}, level: true,
		style: draw.LineStyle{Color: black, Width: vg.Points(1.4)}})
	return plotSeries(filepath.Join(s.dir, "temperatures.png"), "measured temperature / T", s.Settings.Temperatures, all,
		false)
}

// series is the curve of a method, or its level where it has no temperature.
func (s *study) series(m metric, name string, style draw.LineStyle, shape draw.GlyphDrawer) series {
	one := series{title: name, style: style, shape: shape, level: shape == nil}
	for _, r := range s.Rows {
		if r.Method == name {
			mean, se := m.of(r.Scores)
			one.mean, one.se = append(one.mean, mean), append(one.se, se)
		}
	}
	return one
}
