package classify

import (
	"encoding/json"
	"io"

	"gonum.org/v1/gonum/stat"

	"github.com/kelvin-ppl/kelvin/diag/thermo"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Thermometer reads the temperatures of a run at the ends of cycles; configurational ones are of all training data.
func (t *Task) Thermometer(when func(updates int) bool) (infer.Thermometer, error) {
	sum := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		mean, aux := t.LogPosterior(p, b)
		return mean.Mul(float64(t.N)), aux
	}
	gradient, err := infer.NewGradient(infer.Sum(sum, 1))
	return infer.Thermometer{When: when, Gradient: gradient, Next: infer.Full(t.Train).Next}, err
}

// Simulation says whether a run simulated its target. All temperatures are over the temperature set.
type Simulation struct {
	Readings        int     `json:"readings"` // of kinetic temperatures: of each site of each chain at the ends of cycles
	Inside          float64 `json:"inside"`   // the share that is in the interval of 99 %
	Kinetic         float64 `json:"kinetic"`
	Chains          int     `json:"configurational_chains"` // of which there are configurational temperatures
	Configurational float64 `json:"configurational"`        // mean over all parameters
	SE              float64 `json:"configurational_se"`     // over two chains and more
	Worst           string  `json:"worst"`                  // severity of the worst finding, or "none"
	// Findings are those of thermo.Diagnose, in words.
	Findings []string `json:"findings"`
}

// Judge looks at the readings of runs at temperature T. Kinetic temperatures may be missing, as of a method without
// momenta, and configurational ones, which a thermometer need not read: there are no Readings, or no Chains, then.
func Judge(layout *infer.Layout, temperature float64, runs [][]infer.Reading) (*Simulation, error) {
	kinetic := &thermo.Kinetic{}
	sites := make([]thermo.SiteReadings, len(layout.Sites))
	for i, site := range layout.Sites {
		sites[i] = thermo.SiteReadings{Site: site.Name, Target: temperature}
	}
	var chains []float64 // mean configurational temperature of each
	chain := 0
	for _, readings := range runs {
		for k := range readings[0].Kinetic {
			for i, site := range layout.Sites {
				for _, r := range readings {
					if _, err := kinetic.AddValue(site.Name, chain+k, site.Size, r.Kinetic[k][i], temperature); err != nil {
						return nil, err
					}
				}
			}
		}
		for k := range readings[0].Configurational {
			of := 0.0
			for i, site := range layout.Sites {
				values := make([]float64, len(readings))
				for j, r := range readings {
					values[j] = r.Configurational[k][i]
				}
				sites[i].Readings = append(sites[i].Readings, values)
				of += stat.Mean(values, nil) * float64(site.Size) / float64(layout.Dim()) / temperature
			}
			chains = append(chains, of)
		}
		chain += len(readings[0].Kinetic)
	}
	measured := thermo.Simulation{}
	if chain > 0 {
		measured.Kinetic = kinetic
	}
	if len(chains) > 0 {
		measured.Configurational = sites
	}
	report, err := thermo.Diagnose(measured, thermo.Options{})
	if err != nil {
		return nil, err
	}
	s := &Simulation{Chains: len(chains), Worst: "none", Findings: []string{}}
	if chain > 0 {
		s.Readings, s.Inside, s.Kinetic = report.Kinetic.Readings, report.Kinetic.Fraction, report.Kinetic.Ratio
	}
	if len(chains) > 0 {
		s.Configurational = stat.Mean(chains, nil)
	}
	if len(chains) > 1 {
		_, sd := stat.MeanStdDev(chains, nil)
		s.SE = stat.StdErr(sd, float64(len(chains)))
	}
	for i, f := range report.Findings {
		if i == 0 {
			s.Worst = f.Severity.String()
		}
		s.Findings = append(s.Findings, f.Severity.String()+": "+f.Message)
	}
	return s, nil
}

// WriteJSON replaces a file in one move.
func WriteJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Replace(path, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}
