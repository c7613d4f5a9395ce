package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"gonum.org/v1/gonum/stat"

	"github.com/kelvin-ppl/kelvin/diag/thermo"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/torch"
)

// thermometer is an [infer.Thermometer] that writes its readings to a file, because a checkpoint does not hold
// them. The file is written before the checkpoint of the same update, so that a run that goes on finds all
// readings up to there.
type thermometer struct {
	infer.Thermometer
	path string
	seen bool
}

// newThermometer reads configurational temperatures on all training data.
func newThermometer(t *task, when func(updates int64) bool, path string) (*thermometer, error) {
	sum := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		mean, aux := t.logPosterior(p, b)
		return mean.Mul(float64(t.n)), aux
	}
	gradient, err := infer.NewGradient(infer.Sum(sum, 1))
	if err != nil {
		return nil, err
	}
	m := &thermometer{path: path, Thermometer: infer.Thermometer{When: when, Gradient: gradient,
		Next: infer.Full(t.train).Next}}
	switch text, err := os.ReadFile(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		if err := json.Unmarshal(text, &m.Readings); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return m, nil
}

// Observe reads the temperatures when it is time to.
func (t *thermometer) Observe(p infer.Progress) {
	if !t.seen { // readings after the checkpoint that the run goes on from will come again
		t.seen = true
		for n := len(t.Readings); n > 0 && t.Readings[n-1].Updates > p.Resumed; n-- {
			t.Readings = t.Readings[:n-1]
		}
	}
	before := len(t.Readings)
	t.Thermometer.Observe(p)
	if len(t.Readings) > before {
		t.Err = writeJSON(t.path, t.Readings)
	}
}

// writeJSON replaces a file in one move.
func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Replace(path, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}

// simulation says whether a cell simulated its target. All temperatures are over the temperature set.
type simulation struct {
	Readings        int     `json:"readings"` // of kinetic temperatures: of each site of each chain at the ends of cycles
	Inside          float64 `json:"inside"`   // the share that is in the interval of 99 %
	Kinetic         float64 `json:"kinetic"`
	Configurational float64 `json:"configurational"` // mean over all parameters
	SE              float64 `json:"configurational_se"`
	Worst           string  `json:"worst"` // severity of the worst finding, or "none"
	// Findings are those of thermo.Diagnose, in words.
	Findings []string `json:"findings"`
}

// judge looks at the readings of the runs of a cell, at temperature T.
func judge(layout *infer.Layout, temperature float64, runs [][]infer.Reading) (*simulation, error) {
	kinetic := &thermo.Kinetic{}
	sites := make([]thermo.SiteReadings, len(layout.Sites))
	for i, site := range layout.Sites {
		sites[i] = thermo.SiteReadings{Site: site.Name, Target: temperature}
	}
	var chains []float64 // mean configurational temperature of each
	chain := 0
	for _, readings := range runs {
		for k := range readings[0].Configurational {
			of := 0.0
			for i, site := range layout.Sites {
				values := make([]float64, len(readings))
				for j, r := range readings {
					if _, err := kinetic.AddValue(site.Name, chain, site.Size, r.Kinetic[k][i], temperature); err != nil {
						return nil, err
					}
					values[j] = r.Configurational[k][i]
				}
				sites[i].Readings = append(sites[i].Readings, values)
				of += stat.Mean(values, nil) * float64(site.Size) / float64(layout.Dim()) / temperature
			}
			chains = append(chains, of)
			chain++
		}
	}
	report, err := thermo.Diagnose(thermo.Simulation{Kinetic: kinetic, Configurational: sites}, thermo.Options{})
	if err != nil {
		return nil, err
	}
	s := &simulation{Readings: report.Kinetic.Readings, Inside: report.Kinetic.Fraction, Kinetic: report.Kinetic.Ratio,
		Worst: "none", Findings: []string{}}
	mean, sd := stat.MeanStdDev(chains, nil)
	s.Configurational, s.SE = mean, stat.StdErr(sd, float64(len(chains)))
	for i, f := range report.Findings {
		if i == 0 {
			s.Worst = f.Severity.String()
		}
		s.Findings = append(s.Findings, f.Severity.String()+": "+f.Message)
	}
	return s, nil
}
